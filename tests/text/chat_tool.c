/* Chat prompts and text streaming for the Python tests: a JSON value a line in, one a line out.
 *
 *   chat_tool chat DIR|NAME   {messages, tools, flags} -> the prompt, or {error}; the template of DIR (a path) or one by name
 *   chat_tool decode          {hex, cuts} -> the deltas of the bytes, pushed in pieces that end at the cuts, and of the end
 *   chat_tool json            any value -> a string, what tojson makes of it
 *   chat_tool tags            a template -> its tags, and whether it is known: [kind, null_is_empty, default_system, tags] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/chat.h"
#include "text/chat_json.h"
#include "text/chat_known.h"
#include "text/decoder.h"

static json_t *string_of(const bytes *b)
{
    json_t *s = json_stringn(b->data ? b->data : "", b->size);
    ensure(s); /* UTF-8, whatever went in */
    return s;
}

static json_t *render(const chat_template *chat, const json_t *in)
{
    outrider_error err;
    bytes out = {0};
    const json_t *tools = json_object_get(in, "tools");
    if (chat_render(chat, json_object_get(in, "messages"), json_is_null(tools) ? NULL : tools,
                    (unsigned)json_integer_value(json_object_get(in, "flags")), &out, &err)) {
        ensure(out.size == 0 && !strchr(err.message, '\n'));
        bytes_free(&out);
        return json_pack("{s:s, s:i}", "error", err.message, "status", (int)err.status);
    }
    json_t *value = string_of(&out);
    bytes_free(&out);
    return value;
}

static void take(json_t *deltas, bytes *delta)
{
    json_array_append_new(deltas, string_of(delta));
    delta->size = 0;
}

static json_t *decode(const json_t *in)
{
    const char *hex = json_string_value(json_object_get(in, "hex"));
    const json_t *cuts = json_object_get(in, "cuts");
    const size_t size = strlen(hex) / 2;
    bytes data = {0}, delta = {0};
    for (size_t i = 0; i < size; i++) {
        unsigned byte;
        ensure(sscanf(hex + 2 * i, "%2x", &byte) == 1);
        const char c = (char)byte;
        ensure(bytes_add(&data, &c, 1));
    }
    text_decoder d = {0};
    json_t *deltas = json_array();
    size_t begin = 0;
    for (size_t i = 0; i <= json_array_size(cuts); i++) {
        const size_t end = i < json_array_size(cuts) ? (size_t)json_integer_value(json_array_get(cuts, i)) : size;
        ensure(begin <= end && end <= size);
        ensure(text_decoder_push(&d, data.data ? data.data + begin : "", end - begin, &delta));
        take(deltas, &delta);
        begin = end;
    }
    ensure(text_decoder_flush(&d, &delta));
    take(deltas, &delta);
    bytes_free(&data);
    bytes_free(&delta);
    return deltas;
}

static json_t *dump(const json_t *in)
{
    bytes out = {0};
    ensure(chat_json_dump(in, &out));
    json_t *value = string_of(&out);
    bytes_free(&out);
    return value;
}

static json_t *tags(const json_t *in)
{
    bytes list = {0};
    chat_known known;
    ensure(bytes_add(&list, "", 0) && chat_tags(json_string_value(in), json_string_length(in), &list));
    ensure(chat_recognise(json_string_value(in), json_string_length(in), &known));
    json_t *value = json_pack("[i, b, s?, []]", (int)known.kind, known.null_is_empty, known.default_system.data);
    for (size_t at = 0; at < list.size; at += strlen(list.data + at) + 1)
        json_array_append_new(json_array_get(value, 3), json_string(list.data + at));
    bytes_free(&known.default_system);
    bytes_free(&list);
    return value;
}

int main(int argc, char **argv)
{
    outrider_error err;
    const char *mode = argc > 1 ? argv[1] : "";
    chat_template *chat = NULL;
    if (strcmp(mode, "chat") == 0) {
        const char *from = argc > 2 ? argv[2] : "";
        if (strchr(from, '/') ? chat_open(&chat, from, &err) : chat_open_named(&chat, from, &err)) {
            fprintf(stderr, "%s\n", err.message);
            return (int)err.status;
        }
    }
    char *line = NULL;
    size_t room = 0;
    for (ssize_t n; (n = getline(&line, &room, stdin)) > 0;) {
        json_error_t problem;
        json_t *in = json_loadb(line, (size_t)n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &problem);
        if (!in) {
            fprintf(stderr, "not JSON: %s\n", problem.text);
            return 2;
        }
        json_t *out = chat                          ? render(chat, in)
                      : strcmp(mode, "decode") == 0 ? decode(in)
                      : strcmp(mode, "json") == 0   ? dump(in)
                      : strcmp(mode, "tags") == 0   ? tags(in)
                                                    : NULL;
        ensure(out);
        ensure(json_dumpf(out, stdout, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) == 0);
        putchar('\n');
        json_decref(out);
        json_decref(in);
    }
    free(line);
    chat_close(chat);
    return 0;
}
