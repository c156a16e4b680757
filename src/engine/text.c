/* Text in and out of a model: tokenizer, chat template and end ids beside the container. */
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "text/ends.h"

outrider_status engine_text_open(outrider_model *m, const char *dir, const char *chat_template, outrider_error *err)
{
    bytes path = {0};
    if (!bytes_add_format(&path, "%s/tokenizer.json", dir)) return error_memory(err, "a path", strlen(dir));
    outrider_status status = tokenizer_open(&m->tokenizer, path.data, err);
    bytes_free(&path);
    if (status) return status;
    /* A model without a usable chat template still completes raw text: the reason waits until somebody asks for chat. */
    status =
        chat_template ? chat_open_named(&m->chat, chat_template, &m->chat_problem) : chat_open(&m->chat, dir, &m->chat_problem);
    if (status && chat_template) {
        if (err) *err = m->chat_problem;
        return status;
    }
    ids ends = {0};
    status = ends_read(dir, m->tokenizer, &ends, err);
    m->ends = ends.data;
    m->n_ends = ends.size;
    return status;
}

void engine_text_close(outrider_model *m)
{
    chat_close(m->chat);
    tokenizer_close(m->tokenizer);
    free(m->ends);
}

outrider_status engine_need_text(const outrider_model *m, outrider_error *err)
{
    if (m->tokenizer) return OUTRIDER_OK;
    return error_set(err, OUTRIDER_USAGE, "%s was opened without a tokenizer", m->parts[0].path);
}

static outrider_status need_chat(const outrider_model *m, outrider_error *err)
{
    const outrider_status status = engine_need_text(m, err);
    if (status || m->chat) return status;
    if (err) *err = m->chat_problem;
    return m->chat_problem.status;
}

outrider_status outrider_tokenize(const outrider_model *m, const char *text, size_t size, unsigned flags, uint32_t **out,
                                  size_t *n, outrider_error *err)
{
    outrider_status status = engine_need_text(m, err);
    ids list = {0};
    if (!status) status = tokenizer_encode(m->tokenizer, text, size, flags & OUTRIDER_SPECIALS, &list, err);
    if (!status && !list.data && !(list.data = malloc(sizeof *list.data))) status = error_memory(err, "ids", sizeof *list.data);
    if (status) {
        ids_free(&list);
        return status;
    }
    *out = list.data;
    *n = list.size;
    return OUTRIDER_OK;
}

outrider_status outrider_detokenize(const outrider_model *m, const uint32_t *list, size_t n, unsigned flags, char **text,
                                    size_t *size, outrider_error *err)
{
    const outrider_status status = engine_need_text(m, err);
    if (status) return status;
    const uint32_t vocab = (uint32_t)m->parts[OUTRIDER_VERIFIER].weights.config.vocab;
    for (size_t i = 0; i < n; i++)
        if (list[i] >= vocab)
            return error_set(err, OUTRIDER_USAGE, "token id %u is outside the vocabulary of %u ids", list[i], vocab);
    bytes out = {0};
    bool ok = bytes_add(&out, "", 0);
    for (size_t i = 0; i < n && ok; i++) {
        if (!(flags & OUTRIDER_SPECIALS) && tokenizer_is_special(m->tokenizer, list[i])) continue;
        size_t length;
        const char *token = tokenizer_bytes(m->tokenizer, list[i], &length);
        ok = bytes_add(&out, token, length);
    }
    if (!ok) {
        bytes_free(&out);
        return error_memory(err, "text", n);
    }
    *text = out.data;
    *size = out.size;
    return OUTRIDER_OK;
}

static outrider_status parse_array(json_t **out, const char *text, const char *what, outrider_error *err)
{
    json_error_t problem;
    json_t *value = json_loads(text, JSON_REJECT_DUPLICATES, &problem);
    if (!value) return error_set(err, OUTRIDER_USAGE, "%s: not JSON: line %d: %s", what, problem.line, problem.text);
    if (!json_is_array(value)) {
        json_decref(value);
        return error_set(err, OUTRIDER_USAGE, "%s: expected an array", what);
    }
    *out = value;
    return OUTRIDER_OK;
}

/* The two JSON arrays of a chat; *tools is NULL when there are none. */
static outrider_status parse_chat(json_t **messages, json_t **tools, const char *messages_json, const char *tools_json,
                                  outrider_error *err)
{
    *messages = *tools = NULL;
    outrider_status status = parse_array(messages, messages_json, "messages", err);
    if (!status && tools_json) status = parse_array(tools, tools_json, "tools", err);
    if (status) json_decref(*messages);
    return status;
}

static unsigned chat_flags(unsigned flags)
{
    return (flags & OUTRIDER_NO_GENERATION_PROMPT ? 0 : CHAT_ADD_GENERATION_PROMPT) |
           (flags & OUTRIDER_NO_THINKING ? CHAT_NO_THINKING : 0);
}

outrider_status outrider_chat_render(const outrider_model *m, const char *messages_json, const char *tools_json, unsigned flags,
                                     char **text, outrider_error *err)
{
    json_t *messages, *tools;
    outrider_status status = need_chat(m, err);
    if (!status) status = parse_chat(&messages, &tools, messages_json, tools_json, err);
    if (status) return status;
    bytes out = {0};
    status = bytes_add(&out, "", 0) ? chat_render(m->chat, messages, tools, chat_flags(flags), &out, err)
                                    : error_memory(err, "a prompt", 1);
    json_decref(messages);
    json_decref(tools);
    if (status)
        bytes_free(&out);
    else
        *text = out.data;
    return status;
}

static outrider_status push_chat(outrider_session *s, const json_t *messages, const json_t *tools, unsigned flags,
                                 outrider_error *err)
{
    ids list = {0};
    outrider_status status = chat_encode(s->model->chat, s->model->tokenizer, messages, tools, chat_flags(flags), &list, err);
    if (!status) status = outrider_session_push_tokens(s, list.data, list.size, err);
    ids_free(&list);
    return status;
}

outrider_status outrider_session_push_chat_json(outrider_session *s, const char *messages_json, const char *tools_json,
                                                unsigned flags, outrider_error *err)
{
    json_t *messages, *tools;
    outrider_status status = need_chat(s->model, err);
    if (!status) status = parse_chat(&messages, &tools, messages_json, tools_json, err);
    if (status) return status;
    status = push_chat(s, messages, tools, flags, err);
    json_decref(messages);
    json_decref(tools);
    return status;
}

outrider_status outrider_session_push_chat(outrider_session *s, const outrider_message *messages, size_t n, unsigned flags,
                                           outrider_error *err)
{
    outrider_status status = need_chat(s->model, err);
    if (status) return status;
    json_t *list = json_array();
    for (size_t i = 0; i < n && list && !status; i++) {
        /* jansson wants UTF-8, a person's file may hold anything: bytes that are not UTF-8 are passed on, the tokenizer spells them out. */
        json_t *role = json_string(messages[i].role),
               *content = json_stringn_nocheck(messages[i].content, strlen(messages[i].content));
        json_t *message = json_object();
        if (!role) status = error_set(err, OUTRIDER_USAGE, "message %zu: role is not UTF-8", i);
        if (!message || !content || json_object_set_new(message, "role", role) ||
            json_object_set_new(message, "content", content) || json_array_append_new(list, message))
            if (!status) status = error_memory(err, "messages", n);
    }
    if (!list) status = error_memory(err, "messages", n);
    if (!status) status = push_chat(s, list, NULL, flags, err);
    json_decref(list);
    return status;
}

outrider_status outrider_session_push_text(outrider_session *s, const char *text, size_t size, unsigned flags,
                                           outrider_error *err)
{
    ids list = {0};
    outrider_status status = engine_need_text(s->model, err);
    if (!status) status = tokenizer_encode(s->model->tokenizer, text, size, flags & OUTRIDER_SPECIALS, &list, err);
    if (!status) status = outrider_session_push_tokens(s, list.data, list.size, err);
    ids_free(&list);
    return status;
}
