#include "text/chat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "text/chat_json.h"
#include "text/chat_known.h"

#define INSTEAD "; try --chat-template chatml"

struct chat_template {
    chat_known known;
};

/* A prompt that grows. Once memory has run out it stays as it is. */
typedef struct prompt {
    bytes *out;
    text_range *given; /* what came from the conversation, ascending and apart */
    size_t n_given, given_capacity;
    bool failed;
} prompt;

/* A run of text inside a JSON string. */
typedef struct part {
    const char *data;
    size_t size;
} part;

/* What the templates look at in a message, checked. */
typedef struct message {
    part role, content, reasoning;
    bool has_content, has_reasoning;
    const json_t *tool_calls; /* an array with something in it, or NULL */
} message;

/* ---- Opening ---- */

static outrider_status make(chat_template **out, const chat_known *known, outrider_error *err)
{
    *out = malloc(sizeof **out);
    if (!*out) return error_memory(err, "a chat template", sizeof **out);
    (*out)->known = *known;
    return OUTRIDER_OK;
}

/* The template in a tokenizer_config.json: a string, or a list of named ones of which "default" counts. */
static const json_t *find_template(const json_t *config)
{
    const json_t *value = json_object_get(config, "chat_template");
    if (!json_is_array(value)) return value;
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *entry = json_array_get(value, i), *name = json_object_get(entry, "name");
        if (json_is_string(name) && strcmp(json_string_value(name), "default") == 0) return json_object_get(entry, "template");
    }
    return NULL;
}

static outrider_status open_config(chat_template **out, const json_t *config, const char *path, outrider_error *err)
{
    const json_t *text = find_template(config);
    if (!json_is_string(text))
        return error_set(err, OUTRIDER_USAGE, "%s: chat_template: expected a text, found none" INSTEAD, path);
    chat_known known;
    if (!chat_recognise(json_string_value(text), json_string_length(text), &known))
        return error_memory(err, "a chat template", json_string_length(text));
    if (known.kind == CHAT_UNKNOWN)
        return error_set(err, OUTRIDER_USAGE, "%s: chat_template: expected that of Qwen3 or ChatML, found another" INSTEAD,
                         path);
    const outrider_status status = make(out, &known, err);
    if (status) bytes_free(&known.default_system);
    return status;
}

outrider_status chat_open(chat_template **out, const char *dir, outrider_error *err)
{
    *out = NULL;
    bytes path = {0}, text = {0};
    if (!bytes_add_format(&path, "%s/tokenizer_config.json", dir)) return error_memory(err, "a path", strlen(dir));
    outrider_status status;
    json_error_t problem;
    if (!bytes_read_file(&text, path.data))
        status = error_set(err, OUTRIDER_FAILURE, "%s: cannot be read: %s" INSTEAD, path.data, strerror(errno));
    else {
        json_t *config = json_loadb(text.data, text.size, 0, &problem);
        if (!json_is_object(config))
            status = error_set(err, OUTRIDER_BAD_FILE, "%s: expected a JSON object, found %s" INSTEAD, path.data,
                               config ? "another value" : problem.text);
        else
            status = open_config(out, config, path.data, err);
        json_decref(config);
    }
    bytes_free(&text);
    bytes_free(&path);
    return status;
}

outrider_status chat_open_named(chat_template **out, const char *name, outrider_error *err)
{
    *out = NULL;
    chat_known known = {.kind = CHAT_UNKNOWN, .null_is_empty = true};
    if (strcmp(name, "chatml") == 0) known = (chat_known){.kind = CHAT_CHATML};
    if (strcmp(name, "qwen3") == 0) known.kind = CHAT_QWEN3;
    if (known.kind == CHAT_UNKNOWN)
        return error_set(err, OUTRIDER_USAGE, "chat template: expected chatml or qwen3, found \"%s\"", name);
    return make(out, &known, err);
}

void chat_close(chat_template *c)
{
    if (!c) return;
    bytes_free(&c->known.default_system);
    free(c);
}

const char *chat_name(const chat_template *c) { return c->known.kind == CHAT_QWEN3 ? "qwen3" : "chatml"; }

/* ---- Checking ---- */

static const char *kind_of(const json_t *value)
{
    if (!value) return "none";
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "a string";
    case JSON_INTEGER:
    case JSON_REAL: return "a number";
    case JSON_TRUE:
    case JSON_FALSE: return "a boolean";
    case JSON_NULL: break;
    }
    return "null";
}

static bool nothing(const json_t *value) { return !value || json_is_null(value); }

static part part_of(const json_t *string) { return (part){json_string_value(string), json_string_length(string)}; }

static bool part_is(part p, const char *text) { return p.size == strlen(text) && memcmp(p.data, text, p.size) == 0; }

/* One call of an assistant. Name and arguments stand in "function", or, where that is missing or empty, in the call itself. */
static const json_t *call_function(const json_t *call)
{
    const json_t *function = json_object_get(call, "function");
    return json_object_size(function) ? function : call;
}

/* Jinja2 would take calls of other shapes in part, or write nothing for what is missing: refused. */
static outrider_status check_calls(const json_t *calls, size_t index, outrider_error *err)
{
    if (!json_is_array(calls))
        return error_set(err, OUTRIDER_USAGE, "message %zu: tool_calls: expected an array, found %s", index, kind_of(calls));
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *call = json_array_get(calls, i), *given = json_object_get(call, "function");
        if (!json_is_object(call))
            return error_set(err, OUTRIDER_USAGE, "message %zu: tool_calls: call %zu: expected an object, found %s", index, i,
                             kind_of(call));
        if (!nothing(given) && !json_is_object(given))
            return error_set(err, OUTRIDER_USAGE, "message %zu: tool_calls: call %zu: function: expected an object, found %s",
                             index, i, kind_of(given));
        const json_t *name = json_object_get(call_function(call), "name");
        if (!json_is_string(name))
            return error_set(err, OUTRIDER_USAGE, "message %zu: tool_calls: call %zu: name: expected a string, found %s", index,
                             i, kind_of(name));
        if (!json_object_get(call_function(call), "arguments"))
            return error_set(err, OUTRIDER_USAGE, "message %zu: tool_calls: call %zu: arguments: expected a value, found none",
                             index, i);
    }
    return OUTRIDER_OK;
}

/* ChatML takes any role and has no place for calls. The Qwen3 template leaves out messages of roles it does not know, which nobody wants. */
static outrider_status check_kind(const chat_template *c, const message *m, size_t index, outrider_error *err)
{
    if (c->known.kind == CHAT_CHATML) {
        if (!m->tool_calls) return OUTRIDER_OK;
        return error_set(err, OUTRIDER_USAGE,
                         "message %zu: tool_calls: the model's chat template (chatml) has no place for them", index);
    }
    if (part_is(m->role, "system") || part_is(m->role, "user") || part_is(m->role, "assistant") || part_is(m->role, "tool"))
        return OUTRIDER_OK;
    return error_set(err, OUTRIDER_USAGE, "message %zu: role: expected system, user, assistant or tool, found \"%s\"", index,
                     m->role.data);
}

/* Content null is refused as the templates do (they add it to a string and fail), but for the later text of Qwen3's, which makes it empty
 * except in a system prompt at the beginning. */
static outrider_status read_message(const chat_template *c, const json_t *messages, size_t index, message *m,
                                    outrider_error *err)
{
    const json_t *value = json_array_get(messages, index), *role = json_object_get(value, "role"),
                 *content = json_object_get(value, "content"), *reasoning = json_object_get(value, "reasoning_content"),
                 *calls = json_object_get(value, "tool_calls");
    *m = (message){0};
    if (!json_is_object(value))
        return error_set(err, OUTRIDER_USAGE, "message %zu: expected an object, found %s", index, kind_of(value));
    if (!json_is_string(role))
        return error_set(err, OUTRIDER_USAGE, "message %zu: role: expected a string, found %s", index, kind_of(role));
    m->role = part_of(role);
    const bool may_be_null = c->known.null_is_empty && !(index == 0 && part_is(m->role, "system"));
    m->has_content = json_is_string(content);
    if (m->has_content)
        m->content = part_of(content);
    else if (nothing(content) && may_be_null)
        m->content = (part){"", 0};
    else
        return error_set(err, OUTRIDER_USAGE, "message %zu: content: expected a string, found %s%s", index, kind_of(content),
                         nothing(content) ? "; the model's chat template takes \"\" for no content" : "");
    if (!nothing(reasoning)) {
        if (!json_is_string(reasoning))
            return error_set(err, OUTRIDER_USAGE, "message %zu: reasoning_content: expected a string, found %s", index,
                             kind_of(reasoning));
        m->reasoning = part_of(reasoning);
        m->has_reasoning = true;
    }
    if (!nothing(calls)) {
        const outrider_status status = check_calls(calls, index, err);
        if (status) return status;
        if (json_array_size(calls)) m->tool_calls = calls;
    }
    return check_kind(c, m, index, err);
}

static outrider_status check_tools(const chat_template *c, const json_t *tools, outrider_error *err)
{
    if (nothing(tools)) return OUTRIDER_OK;
    if (!json_is_array(tools)) return error_set(err, OUTRIDER_USAGE, "tools: expected an array, found %s", kind_of(tools));
    if (json_array_size(tools) && c->known.kind == CHAT_CHATML)
        return error_set(err, OUTRIDER_USAGE, "tools: the model's chat template (chatml) has no place for them");
    for (size_t i = 0; i < json_array_size(tools); i++)
        if (!json_is_object(json_array_get(tools, i)))
            return error_set(err, OUTRIDER_USAGE, "tools: item %zu: expected an object, found %s", i,
                             kind_of(json_array_get(tools, i)));
    return OUTRIDER_OK;
}

/* ---- Writing ---- */

/* Text of the template. */
static void put(prompt *p, const char *text) { p->failed = p->failed || !bytes_add_text(p->out, text); }

/* From `begin` on the prompt holds what came from the conversation. */
static void mark_given(prompt *p, size_t begin)
{
    if (p->failed || begin == p->out->size) return;
    if (p->n_given && p->given[p->n_given - 1].end == begin) {
        p->given[p->n_given - 1].end = p->out->size;
        return;
    }
    if (p->n_given == p->given_capacity) {
        const size_t capacity = p->given_capacity ? 2 * p->given_capacity : 16;
        text_range *given = realloc(p->given, capacity * sizeof *given);
        if (!given) {
            p->failed = true;
            return;
        }
        p->given = given;
        p->given_capacity = capacity;
    }
    p->given[p->n_given++] = (text_range){begin, p->out->size};
}

static void put_given(prompt *p, part text)
{
    const size_t begin = p->out->size;
    p->failed = p->failed || !bytes_add(p->out, text.data, text.size);
    mark_given(p, begin);
}

static void put_json(prompt *p, const json_t *value)
{
    const size_t begin = p->out->size;
    p->failed = p->failed || !chat_json_dump(value, p->out);
    mark_given(p, begin);
}

static part strip_left(part p)
{
    while (p.size && *p.data == '\n') p.data++, p.size--;
    return p;
}

static part strip_right(part p)
{
    while (p.size && p.data[p.size - 1] == '\n') p.size--;
    return p;
}

/* What stands before the first `mark`; all when there is none. */
static part before_first(part p, const char *mark)
{
    const char *at = memmem(p.data, p.size, mark, strlen(mark));
    return at ? (part){p.data, (size_t)(at - p.data)} : p;
}

/* What stands behind the last `mark`; all when there is none. Marks are looked for from the left, as split does, and do not overlap. */
static part after_last(part p, const char *mark)
{
    for (const char *at; (at = memmem(p.data, p.size, mark, strlen(mark)));) {
        const size_t gone = (size_t)(at - p.data) + strlen(mark);
        p = (part){p.data + gone, p.size - gone};
    }
    return p;
}

static void put_turn(prompt *p, const message *m)
{
    put(p, "<|im_start|>");
    put_given(p, m->role);
    put(p, "\n");
    put_given(p, m->content);
    put(p, "<|im_end|>\n");
}

static void chatml_messages(const chat_template *c, const message *list, size_t n, prompt *p)
{
    const bytes *system = &c->known.default_system;
    if (system->data && !part_is(list[0].role, "system")) {
        put(p, "<|im_start|>system\n");
        put(p, system->data);
        put(p, "<|im_end|>\n");
    }
    for (size_t i = 0; i < n; i++) put_turn(p, &list[i]);
}

static void qwen3_tools(const json_t *tools, const message *first, prompt *p)
{
    put(p, "<|im_start|>system\n");
    if (part_is(first->role, "system")) {
        put_given(p, first->content);
        put(p, "\n\n");
    }
    put(p, "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
           "You are provided with function signatures within <tools></tools> XML tags:\n<tools>");
    for (size_t i = 0; i < json_array_size(tools); i++) {
        put(p, "\n");
        put_json(p, json_array_get(tools, i));
    }
    put(p, "\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
           "<tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n"
           "</tool_call><|im_end|>\n");
}

/* The last message in which a person asks: a user's that is not a tool's result in disguise. Without one the last message of all. */
static size_t last_query(const message *list, size_t n)
{
    static const char begin[] = "<tool_response>", end[] = "</tool_response>";
    const size_t n_begin = sizeof begin - 1, n_end = sizeof end - 1;
    for (size_t i = n; i-- > 0;) {
        const part text = list[i].content;
        if (!part_is(list[i].role, "user") || !list[i].has_content) continue;
        if (text.size < n_begin || memcmp(text.data, begin, n_begin) != 0) return i;
        if (text.size < n_end || memcmp(text.data + text.size - n_end, end, n_end) != 0) return i;
    }
    return n - 1;
}

static void qwen3_calls(const json_t *calls, bool after_content, prompt *p)
{
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *function = call_function(json_array_get(calls, i)), *arguments = json_object_get(function, "arguments");
        if (i || after_content) put(p, "\n");
        put(p, "<tool_call>\n{\"name\": \"");
        put_given(p, part_of(json_object_get(function, "name")));
        put(p, "\", \"arguments\": ");
        if (json_is_string(arguments))
            put_given(p, part_of(arguments));
        else
            put_json(p, arguments);
        put(p, "}\n</tool_call>");
    }
}

/* An assistant's turn. Thoughts are taken from reasoning_content, or out of the content; they are shown only after the last query. */
static void qwen3_assistant(const message *m, bool after_query, bool last, prompt *p)
{
    part content = m->content, reasoning = m->reasoning;
    if (!m->has_reasoning && memmem(content.data, content.size, "</think>", strlen("</think>"))) {
        reasoning = strip_left(after_last(strip_right(before_first(content, "</think>")), "<think>"));
        content = strip_left(after_last(content, "</think>"));
    }
    put(p, "<|im_start|>");
    put_given(p, m->role);
    put(p, "\n");
    if (after_query && (last || reasoning.size)) {
        put(p, "<think>\n");
        put_given(p, strip_right(strip_left(reasoning)));
        put(p, "\n</think>\n\n");
        put_given(p, strip_left(content));
    } else
        put_given(p, content);
    /* A content of newlines only is one, though nothing of it may have been written. */
    qwen3_calls(m->tool_calls, content.size > 0, p);
    put(p, "<|im_end|>\n");
}

static void qwen3_messages(const message *list, size_t n, const json_t *tools, prompt *p)
{
    if (json_array_size(tools))
        qwen3_tools(tools, &list[0], p);
    else if (part_is(list[0].role, "system"))
        put_turn(p, &list[0]);
    const size_t query = last_query(list, n);
    for (size_t i = 0; i < n; i++) {
        if (part_is(list[i].role, "user") || (part_is(list[i].role, "system") && i))
            put_turn(p, &list[i]);
        else if (part_is(list[i].role, "assistant"))
            qwen3_assistant(&list[i], i > query, i + 1 == n, p);
        else if (part_is(list[i].role, "tool")) {
            if (!i || !part_is(list[i - 1].role, "tool")) put(p, "<|im_start|>user");
            put(p, "\n<tool_response>\n");
            put_given(p, list[i].content);
            put(p, "\n</tool_response>");
            if (i + 1 == n || !part_is(list[i + 1].role, "tool")) put(p, "<|im_end|>\n");
        }
    }
}

/* The whole prompt, after all of the conversation was checked. */
static outrider_status render(const chat_template *c, const json_t *messages, const json_t *tools, unsigned flags, prompt *p,
                              outrider_error *err)
{
    const size_t n = json_array_size(messages);
    if (!n)
        return error_set(err, OUTRIDER_USAGE, "messages: expected an array with one at least, found %s",
                         json_is_array(messages) ? "an empty one" : kind_of(messages));
    outrider_status status = check_tools(c, tools, err);
    if (status) return status;
    message *list = malloc(n * sizeof *list);
    if (!list) return error_memory(err, "messages", n * sizeof *list);
    for (size_t i = 0; i < n && !status; i++) status = read_message(c, messages, i, &list[i], err);
    if (!status) {
        if (c->known.kind == CHAT_QWEN3)
            qwen3_messages(list, n, tools, p);
        else
            chatml_messages(c, list, n, p);
        if (flags & CHAT_ADD_GENERATION_PROMPT) {
            put(p, "<|im_start|>assistant\n");
            if (c->known.kind == CHAT_QWEN3 && flags & CHAT_NO_THINKING) put(p, "<think>\n\n</think>\n\n");
        }
        if (p->failed) status = error_memory(err, "a prompt", p->out->size);
    }
    free(list);
    return status;
}

outrider_status chat_render(const chat_template *c, const json_t *messages, const json_t *tools, unsigned flags, bytes *out,
                            outrider_error *err)
{
    const size_t before = out->size;
    prompt p = {.out = out};
    const outrider_status status = render(c, messages, tools, flags, &p, err);
    free(p.given);
    if (status && out->data) {
        out->size = before;
        out->data[before] = 0;
    }
    return status;
}

outrider_status chat_encode(const chat_template *c, const tokenizer *t, const json_t *messages, const json_t *tools,
                            unsigned flags, ids *out, outrider_error *err)
{
    bytes text = {0};
    prompt p = {.out = &text};
    outrider_status status = render(c, messages, tools, flags, &p, err);
    if (!status) status = tokenizer_encode_guarded(t, text.data, text.size, p.given, p.n_given, out, err);
    free(p.given);
    bytes_free(&text);
    return status;
}
