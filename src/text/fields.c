#include "text/fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const char *name;
    outrider_error *err;
} reader;

static outrider_status refuse(const reader *r, const char *field, const char *expected, const json_t *found)
{
    char *text = found ? json_dumps(found, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    error_set(r->err, OUTRIDER_BAD_FILE, "%s: %s: expected %s, found %.80s", r->name, field, expected, text ? text : "nothing");
    free(text);
    return OUTRIDER_BAD_FILE;
}

static bool is_text(const json_t *value, const char *text)
{
    return json_is_string(value) && json_string_length(value) == strlen(text) && strcmp(json_string_value(value), text) == 0;
}

/* A member that is missing, null or as expected: what it would switch on is not here. */
static outrider_status want_absent(const reader *r, const json_t *object, const char *prefix, const char *key, bool or_empty)
{
    char field[100];
    const json_t *value = json_object_get(object, key);
    if (!value || json_is_null(value) || json_is_false(value)) return OUTRIDER_OK;
    if (or_empty && is_text(value, "")) return OUTRIDER_OK;
    if (or_empty && json_is_number(value) && json_number_value(value) == 0) return OUTRIDER_OK;
    snprintf(field, sizeof field, "%s%s", prefix, key);
    return refuse(r, field, or_empty ? "null" : "false", value);
}

static outrider_status want_type(const reader *r, const json_t *object, const char *field, const char *type)
{
    char inner[100], expected[40];
    snprintf(expected, sizeof expected, "\"%s\"", type);
    if (!json_is_object(object)) {
        snprintf(expected, sizeof expected, "an object of type %s", type);
        return refuse(r, field, expected, object);
    }
    snprintf(inner, sizeof inner, "%s.type", field);
    return is_text(json_object_get(object, "type"), type) ? OUTRIDER_OK
                                                          : refuse(r, inner, expected, json_object_get(object, "type"));
}

/* Split by a regular expression, each match a piece of its own. */
static outrider_status read_split(const reader *r, const json_t *object, fields *out)
{
    char where[400];
    outrider_status s = want_type(r, object, "pre_tokenizer.pretokenizers[0]", "Split");
    if (s) return s;
    const json_t *regex = json_object_get(json_object_get(object, "pattern"), "Regex");
    if (!json_is_string(regex))
        return refuse(r, "pre_tokenizer.pretokenizers[0].pattern", "{\"Regex\": ...}", json_object_get(object, "pattern"));
    if (!is_text(json_object_get(object, "behavior"), "Isolated"))
        return refuse(r, "pre_tokenizer.pretokenizers[0].behavior", "\"Isolated\"", json_object_get(object, "behavior"));
    s = want_absent(r, object, "pre_tokenizer.pretokenizers[0].", "invert", false);
    if (s) return s;
    snprintf(where, sizeof where, "%.300s: pre_tokenizer.pretokenizers[0].pattern.Regex", r->name);
    return split_open(&out->pattern, json_string_value(regex), json_string_length(regex), where, r->err);
}

static outrider_status read_pre_tokenizer(const reader *r, const json_t *object, fields *out)
{
    outrider_status s = want_type(r, object, "pre_tokenizer", "Sequence");
    if (s) return s;
    const json_t *list = json_object_get(object, "pretokenizers");
    if (json_array_size(list) != 2) return refuse(r, "pre_tokenizer.pretokenizers", "Split and ByteLevel", list);
    const json_t *level = json_array_get(list, 1), *regex = json_object_get(level, "use_regex");
    const json_t *space = json_object_get(level, "add_prefix_space");
    if ((s = want_type(r, level, "pre_tokenizer.pretokenizers[1]", "ByteLevel"))) return s;
    if (!json_is_false(space)) return refuse(r, "pre_tokenizer.pretokenizers[1].add_prefix_space", "false", space);
    if (!json_is_false(regex)) return refuse(r, "pre_tokenizer.pretokenizers[1].use_regex", "false", regex);
    return read_split(r, json_array_get(list, 0), out);
}

static outrider_status read_model(const reader *r, const json_t *model, fields *out)
{
    static const char *const texts[] = {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"};
    outrider_status s = OUTRIDER_OK;
    if (!json_is_object(model)) return refuse(r, "model", "an object of type BPE", model);
    if (json_object_get(model, "type") && (s = want_type(r, model, "model", "BPE"))) return s;
    for (size_t i = 0; i < sizeof texts / sizeof *texts && !s; i++) s = want_absent(r, model, "model.", texts[i], true);
    if (!s) s = want_absent(r, model, "model.", "fuse_unk", false);
    if (!s) s = want_absent(r, model, "model.", "byte_fallback", false);
    const json_t *ignore = json_object_get(model, "ignore_merges");
    if (!s && ignore && !json_is_boolean(ignore)) s = refuse(r, "model.ignore_merges", "true or false", ignore);
    out->ignore_merges = json_is_true(ignore);
    return s;
}

/* truncation and padding say what training did with whole batches; they are not part of how a text is encoded. */
outrider_status fields_read(json_t *root, const char *name, fields *out, outrider_error *err)
{
    const reader r = {name, err};
    *out = (fields){0};
    if (!json_is_object(root)) return refuse(&r, "the document", "an object", root);
    const json_t *normalizer = json_object_get(root, "normalizer"), *post = json_object_get(root, "post_processor");
    outrider_status s = OUTRIDER_OK;
    out->nfc = normalizer && !json_is_null(normalizer);
    if (out->nfc) s = want_type(&r, normalizer, "normalizer", "NFC");
    if (!s && post && !json_is_null(post)) s = want_type(&r, post, "post_processor", "ByteLevel");
    if (!s) s = want_type(&r, json_object_get(root, "decoder"), "decoder", "ByteLevel");
    if (!s) s = read_model(&r, json_object_get(root, "model"), out);
    if (!s) s = read_pre_tokenizer(&r, json_object_get(root, "pre_tokenizer"), out);
    return s;
}

/* Gives an added token its id. The vocabulary may have it too, then with the same bytes. */
static outrider_status set_added(const reader *r, vocab *v, uint32_t id, const json_t *content, bool special,
                                 const char *prefix)
{
    char field[100];
    const char *text = json_string_value(content);
    size_t size = json_string_length(content), had_size;
    token_kind kind = special ? TOKEN_SPECIAL : TOKEN_ADDED, had = vocab_kind(v, id);
    const char *had_text = vocab_bytes(v, id, &had_size);
    uint32_t plain = vocab_find(v, text, size);
    if (had == TOKEN_NONE && (plain == UINT32_MAX || plain == id))
        return vocab_set(v, id, text, size, kind) ? OUTRIDER_OK : error_memory(r->err, "the vocabulary", size);
    if ((had == TOKEN_PLAIN || had == TOKEN_FOREIGN) && had_size == size && memcmp(text, had_text, size) == 0) {
        v->tokens[id].kind = kind;
        return OUTRIDER_OK;
    }
    snprintf(field, sizeof field, "%sid", prefix);
    json_t *number = json_integer(id);
    refuse(r, field, had == TOKEN_NONE ? "the id that the vocabulary has for this content" : "an id that no other token has",
           number);
    json_decref(number);
    return OUTRIDER_BAD_FILE;
}

static outrider_status read_added(const reader *r, const json_t *token, size_t index, vocab *v, uint32_t *id)
{
    static const char *const unsupported[] = {"single_word", "lstrip", "rstrip", "normalized"};
    char prefix[60], field[100];
    outrider_status s = OUTRIDER_OK;
    snprintf(prefix, sizeof prefix, "added_tokens[%zu].", index);
    const json_t *number = json_object_get(token, "id"), *content = json_object_get(token, "content");
    const json_t *special = json_object_get(token, "special");
    snprintf(field, sizeof field, "%sid", prefix);
    if (!json_is_integer(number) || json_integer_value(number) < 0 || json_integer_value(number) >= VOCAB_MAX_IDS)
        return refuse(r, field, "an id from 0 to 4194303", number);
    *id = (uint32_t)json_integer_value(number);
    snprintf(field, sizeof field, "%scontent", prefix);
    if (!json_string_length(content) || json_string_length(content) > VOCAB_MAX_TOKEN)
        return refuse(r, field, "text of 1 to 1048576 bytes", content);
    snprintf(field, sizeof field, "%sspecial", prefix);
    if (special && !json_is_boolean(special)) return refuse(r, field, "true or false", special);
    for (size_t i = 0; i < sizeof unsupported / sizeof *unsupported && !s; i++)
        s = want_absent(r, token, prefix, unsupported[i], false);
    return s ? s : set_added(r, v, *id, content, json_is_true(special), prefix);
}

outrider_status fields_added(json_t *root, const char *name, vocab *v, uint32_t **added, size_t *n_added, outrider_error *err)
{
    const reader r = {name, err};
    const json_t *list = json_object_get(root, "added_tokens");
    *added = NULL;
    *n_added = 0;
    if (!list || json_is_null(list)) return OUTRIDER_OK;
    if (!json_is_array(list)) return refuse(&r, "added_tokens", "an array", list);
    size_t n = json_array_size(list);
    if (!n) return OUTRIDER_OK;
    *added = malloc(n * sizeof **added);
    if (!*added) return error_memory(err, "added tokens", n * sizeof **added);
    for (size_t i = 0; i < n; i++) {
        outrider_status s = read_added(&r, json_array_get(list, i), i, v, &(*added)[i]);
        if (s) return s;
    }
    *n_added = n;
    return OUTRIDER_OK;
}
