#include "text/ends.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

typedef struct source {
    const char *path; /* for messages */
    const tokenizer *t;
    ids *out;
    size_t had; /* ids in *out before */
    outrider_error *err;
} source;

static outrider_status refuse(const source *s, const char *field, const char *expected, const json_t *found)
{
    char *text = json_dumps(found, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);
    error_set(s->err, OUTRIDER_BAD_FILE, "%s: %s: expected %s, found %.80s", s->path, field, expected, text ? text : "another");
    free(text);
    return OUTRIDER_BAD_FILE;
}

static outrider_status add(const source *s, uint32_t id)
{
    for (size_t i = s->had; i < s->out->size; i++)
        if (s->out->data[i] == id) return OUTRIDER_OK;
    return ids_add(s->out, id) ? OUTRIDER_OK : error_memory(s->err, "end ids", sizeof id);
}

/* Reads an object from `dir`/`file`. *root is NULL where there is no such file. */
static outrider_status load(const char *dir, const char *file, bytes *path, json_t **root, outrider_error *err)
{
    bytes text = {0};
    json_error_t why;
    *root = NULL;
    path->size = 0;
    if (!bytes_add_format(path, "%s/%s", dir, file)) return error_memory(err, "a path", strlen(dir));
    if (!bytes_read_file(&text, path->data)) {
        if (errno == ENOENT) return OUTRIDER_OK;
        return error_set(err, OUTRIDER_FAILURE, "%s: cannot be read: %s", path->data, strerror(errno));
    }
    *root = json_loadb(text.data ? text.data : "", text.size, 0, &why);
    bytes_free(&text);
    if (!*root)
        return error_set(err, OUTRIDER_BAD_FILE, "%s: expected JSON, found line %d: %s", path->data, why.line, why.text);
    if (json_is_object(*root)) return OUTRIDER_OK;
    json_decref(*root);
    *root = NULL;
    return error_set(err, OUTRIDER_BAD_FILE, "%s: expected an object, found another value", path->data);
}

static outrider_status add_number(const source *s, const json_t *number)
{
    if (!json_is_integer(number) || json_integer_value(number) < 0 ||
        (size_t)json_integer_value(number) >= tokenizer_size(s->t)) {
        char expected[80];
        snprintf(expected, sizeof expected, "ids from 0 to %zu", tokenizer_size(s->t) - 1);
        return refuse(s, "eos_token_id", expected, number);
    }
    return add(s, (uint32_t)json_integer_value(number));
}

static outrider_status from_generation_config(const source *s, const json_t *value)
{
    if (!json_is_array(value)) return add_number(s, value);
    if (!json_array_size(value)) return refuse(s, "eos_token_id", "at least one id", value);
    for (size_t i = 0; i < json_array_size(value); i++) {
        outrider_status status = add_number(s, json_array_get(value, i));
        if (status) return status;
    }
    return OUTRIDER_OK;
}

/* The names of end tokens: eos_token (text, or an object with content), then the usual ones. */
static outrider_status from_names(const source *s, const json_t *eos)
{
    const char *names[3] = {NULL, "<|im_end|>", "<|endoftext|>"};
    if (eos && !json_is_null(eos)) {
        const json_t *text = json_is_object(eos) ? json_object_get(eos, "content") : eos;
        if (!json_is_string(text)) return refuse(s, "eos_token", "a token's text", eos);
        names[0] = json_string_value(text);
    }
    for (int i = 0; i < 3; i++) {
        uint32_t id;
        if (!names[i] || !tokenizer_find(s->t, names[i], strlen(names[i]), &id)) continue;
        outrider_status status = add(s, id);
        if (status) return status;
    }
    return OUTRIDER_OK;
}

outrider_status ends_read(const char *dir, const tokenizer *t, ids *out, outrider_error *err)
{
    bytes path = {0};
    json_t *root = NULL;
    source s = {.t = t, .out = out, .had = out->size, .err = err};
    outrider_status status = load(dir, "generation_config.json", &path, &root, err);
    const json_t *value = json_object_get(root, "eos_token_id");
    if (!status && value && !json_is_null(value)) {
        s.path = path.data;
        status = from_generation_config(&s, value);
    } else if (!status) {
        json_decref(root);
        status = load(dir, "tokenizer_config.json", &path, &root, err);
        s.path = path.data;
        if (!status) status = from_names(&s, json_object_get(root, "eos_token"));
    }
    if (status) out->size = s.had;
    json_decref(root);
    bytes_free(&path);
    return status;
}
