#include "text/tokenizer_inside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/scan.h"

static int compare_bytes(const char *a, size_t a_size, const char *b, size_t b_size)
{
    int c = memcmp(a, b, a_size < b_size ? a_size : b_size);
    return c ? c : (a_size > b_size) - (a_size < b_size);
}

static int compare_added(const void *a, const void *b, void *context)
{
    size_t a_size, b_size;
    const char *a_text = vocab_bytes(context, *(const uint32_t *)a, &a_size);
    const char *b_text = vocab_bytes(context, *(const uint32_t *)b, &b_size);
    return compare_bytes(a_text, a_size, b_text, b_size);
}

static outrider_status sort_added(tokenizer *t, const char *name, outrider_error *err)
{
    if (!t->n_added) return OUTRIDER_OK;
    qsort_r(t->added, t->n_added, sizeof *t->added, compare_added, &t->vocab);
    for (size_t i = 0; i < t->n_added; i++) {
        size_t size;
        const char *text = vocab_bytes(&t->vocab, t->added[i], &size);
        t->first[(uint8_t)text[0]] = true;
        if (i && compare_added(&t->added[i - 1], &t->added[i], &t->vocab) == 0)
            return error_set(err, OUTRIDER_BAD_FILE,
                             "%s: added_tokens: expected each content once, found that of id %u as id %u too", name,
                             t->added[i - 1], t->added[i]);
    }
    return OUTRIDER_OK;
}

/* Every byte must be a token, or there would be texts without ids; every foreign token of the vocabulary an added one. */
static outrider_status check_vocab(tokenizer *t, const char *name, outrider_error *err)
{
    for (int b = 0; b < 256; b++) {
        t->bpe.byte_ids[b] = vocab_find(&t->vocab, (char[]){(char)b}, 1);
        if (t->bpe.byte_ids[b] == UINT32_MAX)
            return error_set(err, OUTRIDER_BAD_FILE, "%s: model.vocab: expected a token for each byte, found none for 0x%02x",
                             name, b);
    }
    for (uint32_t id = 0; id < t->vocab.size; id++)
        if (vocab_kind(&t->vocab, id) == TOKEN_FOREIGN)
            return error_set(
                err, OUTRIDER_BAD_FILE,
                "%s: model.vocab: expected tokens in the byte alphabet, found another, which is not in added_tokens, as id %u",
                name, id);
    return OUTRIDER_OK;
}

static outrider_status read_document(tokenizer *t, const char *json, size_t size, const char *name, bytes *rest,
                                     outrider_error *err)
{
    scan_span vocab_span, merges_span;
    json_error_t why;
    if (!scan_cut(json, size, &vocab_span, &merges_span, rest)) return error_memory(err, "a tokenizer", size);
    json_t *root = json_loadb(rest->data ? rest->data : "", rest->size, JSON_REJECT_DUPLICATES, &why);
    if (!root) return error_set(err, OUTRIDER_BAD_FILE, "%s: expected JSON, found: %s", name, why.text);
    outrider_status s = fields_read(root, name, &t->fields, err);
    if (!s && !vocab_span.begin)
        s = error_set(err, OUTRIDER_BAD_FILE, "%s: model.vocab: expected an object of ids, found nothing", name);
    if (!s && !merges_span.begin)
        s = error_set(err, OUTRIDER_BAD_FILE, "%s: model.merges: expected an array, found nothing", name);
    if (!s) s = scan_vocab(vocab_span, name, &t->vocab, err);
    if (!s) s = scan_merges(merges_span, name, &t->vocab, &t->bpe, err);
    if (!s) s = fields_added(root, name, &t->vocab, &t->added, &t->n_added, err);
    if (!s) s = sort_added(t, name, err);
    if (!s) s = check_vocab(t, name, err);
    json_decref(root);
    return s;
}

outrider_status tokenizer_open_memory(tokenizer **out, const char *json, size_t size, const char *name, outrider_error *err)
{
    tokenizer *t = calloc(1, sizeof *t);
    if (!t) return error_memory(err, "a tokenizer", sizeof *t);
    bytes rest = {0};
    outrider_status s = read_document(t, json, size, name, &rest, err);
    bytes_free(&rest);
    if (s)
        tokenizer_close(t);
    else
        *out = t;
    return s;
}

outrider_status tokenizer_open(tokenizer **out, const char *path, outrider_error *err)
{
    bytes json = {0};
    if (!bytes_read_file(&json, path)) {
        if (errno == ENOMEM) return error_memory(err, path, 0);
        return error_set(err, OUTRIDER_FAILURE, "%s: cannot be read: %s", path, strerror(errno));
    }
    outrider_status s = tokenizer_open_memory(out, json.data ? json.data : "", json.size, path, err);
    bytes_free(&json);
    return s;
}

void tokenizer_close(tokenizer *t)
{
    if (!t) return;
    vocab_free(&t->vocab);
    bpe_free(&t->bpe);
    split_close(t->fields.pattern);
    free(t->added);
    free(t);
}

size_t tokenizer_size(const tokenizer *t) { return t->vocab.size; }

const char *tokenizer_bytes(const tokenizer *t, uint32_t id, size_t *size) { return vocab_bytes(&t->vocab, id, size); }

bool tokenizer_is_special(const tokenizer *t, uint32_t id) { return vocab_kind(&t->vocab, id) == TOKEN_SPECIAL; }

bool tokenizer_is_added(const tokenizer *t, uint32_t id) { return vocab_kind(&t->vocab, id) >= TOKEN_ADDED; }

bool tokenizer_find(const tokenizer *t, const char *bytes, size_t size, uint32_t *id)
{
    size_t low = 0, high = t->n_added;
    while (low < high) {
        size_t middle = low + (high - low) / 2, there_size;
        const char *there = vocab_bytes(&t->vocab, t->added[middle], &there_size);
        int c = compare_bytes(there, there_size, bytes, size);
        if (c == 0) {
            *id = t->added[middle];
            return true;
        }
        if (c < 0)
            low = middle + 1;
        else
            high = middle;
    }
    uint32_t found = vocab_find(&t->vocab, bytes, size);
    if (found == UINT32_MAX) return false;
    *id = found;
    return true;
}

/* A token's kind and text for a message, printable: bytes outside ASCII as \xNN, long ones cut. */
static void describe(const tokenizer *t, uint32_t id, char *out, size_t room)
{
    static const char *const kinds[] = {"no token", "token", "token", "added token", "special token"};
    size_t size;
    const char *text = vocab_bytes(&t->vocab, id, &size);
    token_kind kind = vocab_kind(&t->vocab, id);
    size_t n = (size_t)snprintf(out, room, "%s", kinds[kind]);
    if (kind == TOKEN_NONE) return;
    n += (size_t)snprintf(out + n, room - n, " \"");
    for (size_t i = 0; i < size; i++) {
        uint8_t c = (uint8_t)text[i];
        if (n + 12 > room) {
            n += (size_t)snprintf(out + n, room - n, "...");
            break;
        }
        n += (size_t)snprintf(out + n, room - n, c < ' ' || c > '~' || c == '\\' || c == '"' ? "\\x%02x" : "%c", c);
    }
    snprintf(out + n, room - n, "\"");
}

outrider_status tokenizer_same(const tokenizer *verifier, const tokenizer *draft, outrider_error *err)
{
    size_t n = verifier->vocab.size > draft->vocab.size ? verifier->vocab.size : draft->vocab.size;
    for (uint32_t id = 0; id < n; id++) {
        size_t a_size, b_size;
        const char *a = vocab_bytes(&verifier->vocab, id, &a_size), *b = vocab_bytes(&draft->vocab, id, &b_size);
        if (vocab_kind(&verifier->vocab, id) == vocab_kind(&draft->vocab, id) && a_size == b_size && memcmp(a, b, a_size) == 0)
            continue;
        char a_text[120], b_text[120];
        describe(verifier, id, a_text, sizeof a_text);
        describe(draft, id, b_text, sizeof b_text);
        return error_set(err, OUTRIDER_USAGE, "the two tokenizers differ: id %u is %s in the verifier, %s in the draft", id,
                         a_text, b_text);
    }
    return OUTRIDER_OK;
}
