/* Text -> ids: added tokens are cut out first; what is between them is normalised, split into words and merged. */
#include "text/tokenizer_inside.h"

#include <stdlib.h>
#include <string.h>

#include "text/nfc.h"
#include "text/utf8.h"

enum { REMEMBER_FROM = 1024 }; /* bytes of text from which a memory of words pays off */

/* One call. */
typedef struct encoder {
    const tokenizer *t;
    split_cursor *cursor;
    bpe_work bpe;
    nfc_work nfc;
    bytes normal; /* the NFC of a stretch */
    ids *out;
    outrider_error *err;
} encoder;

static outrider_status no_memory(const encoder *e)
{
    return error_memory(e->err, "token ids", e->out->capacity * 2 * sizeof *e->out->data);
}

/* A stretch of valid UTF-8 without added tokens. */
static outrider_status encode_valid(encoder *e, const char *text, size_t size)
{
    const tokenizer *t = e->t;
    if (t->fields.nfc && nfc_may_change(text, size)) {
        e->normal.size = 0;
        if (!nfc_add(&e->nfc, text, size, &e->normal)) return no_memory(e);
        text = e->normal.data;
        size = e->normal.size;
    }
    split_start(e->cursor, text, size);
    for (;;) {
        const char *word;
        size_t n;
        outrider_status s = split_next(e->cursor, &word, &n, e->err);
        if (s || !n) return s;
        uint32_t whole = t->fields.ignore_merges ? vocab_find(&t->vocab, word, n) : UINT32_MAX;
        bool added = whole != UINT32_MAX ? ids_add(e->out, whole) : bpe_word(&t->bpe, &e->bpe, word, n, e->out);
        if (!added) return no_memory(e);
    }
}

/* A stretch without added tokens. Bytes that are not UTF-8 are tokens of their own, and end the text on both sides of
 * them. */
static outrider_status encode_stretch(encoder *e, const char *text, size_t size)
{
    while (size) {
        size_t valid = utf8_valid_prefix(text, size);
        if (valid) {
            outrider_status s = encode_valid(e, text, valid);
            if (s) return s;
        } else {
            if (!ids_add(e->out, e->t->bpe.byte_ids[(uint8_t)*text])) return no_memory(e);
            valid = 1;
        }
        text += valid;
        size -= valid;
    }
    return OUTRIDER_OK;
}

/* Narrows [*low, *high) of the added tokens, which share their first `depth` bytes, to those with this byte next. */
static void narrow(const tokenizer *t, size_t *low, size_t *high, size_t depth, uint8_t byte)
{
    for (int side = 0; side < 2; side++) {
        size_t a = *low, b = *high;
        while (a < b) {
            size_t middle = a + (b - a) / 2;
            const token_info *token = &t->vocab.tokens[t->added[middle]];
            int there = token->size > depth ? (uint8_t)t->vocab.text.data[token->at + depth] : -1;
            if (there < byte + side)
                a = middle + 1;
            else
                b = middle;
        }
        if (side)
            *high = a;
        else
            *low = a;
    }
}

/* The longest added token at the front of text that may be matched there, or false. Special ones must end within
 * `special_room`. */
static bool match_added(const tokenizer *t, const char *text, size_t size, size_t special_room, uint32_t *id)
{
    size_t low = 0, high = t->n_added;
    bool found = false;
    for (size_t depth = 0; depth < size; depth++) {
        narrow(t, &low, &high, depth, (uint8_t)text[depth]);
        if (low == high) break;
        uint32_t shortest = t->added[low];
        if (t->vocab.tokens[shortest].size != depth + 1) continue;
        if (t->vocab.tokens[shortest].kind == TOKEN_SPECIAL && depth + 1 > special_room) continue;
        *id = shortest;
        found = true;
    }
    return found;
}

/* How far a special token may reach from `at` on: to the next guarded range, not at all inside one. */
static size_t room_at(size_t at, size_t size, const text_range **guarded, const text_range *end)
{
    while (*guarded < end && ((*guarded)->end <= at || (*guarded)->end <= (*guarded)->begin)) ++*guarded;
    if (*guarded == end || (*guarded)->begin >= size) return size - at;
    return (*guarded)->begin > at ? (*guarded)->begin - at : 0;
}

static outrider_status encode_text(encoder *e, const char *text, size_t size, bool specials, const text_range *guarded,
                                   size_t n_guarded)
{
    const text_range *end = guarded ? guarded + n_guarded : NULL;
    size_t begin = 0, at = 0;
    while (at < size) {
        uint32_t id;
        if (!e->t->first[(uint8_t)text[at]]) {
            at++;
            continue;
        }
        size_t room = specials ? room_at(at, size, &guarded, end) : 0;
        if (!match_added(e->t, text + at, size - at, room, &id)) {
            at++;
            continue;
        }
        outrider_status s = encode_stretch(e, text + begin, at - begin);
        if (s) return s;
        if (!ids_add(e->out, id)) return no_memory(e);
        at += e->t->vocab.tokens[id].size;
        begin = at;
    }
    return encode_stretch(e, text + begin, size - begin);
}

static outrider_status encode(const tokenizer *t, const char *text, size_t size, bool specials, const text_range *guarded,
                              size_t n_guarded, ids *out, outrider_error *err)
{
    if (size > BPE_MAX_WORD)
        return error_set(err, OUTRIDER_USAGE, "a text of %zu bytes is too long for the tokenizer (at most %d)", size,
                         BPE_MAX_WORD);
    encoder e = {.t = t, .out = out, .err = err, .cursor = split_cursor_new(t->fields.pattern)};
    size_t had = out->size;
    if (size >= REMEMBER_FROM) bpe_remember(&e.bpe);
    outrider_status s = e.cursor ? encode_text(&e, text, size, specials, guarded, n_guarded) : no_memory(&e);
    if (s) out->size = had;
    split_cursor_free(e.cursor);
    bpe_work_free(&e.bpe);
    free(e.nfc.points);
    bytes_free(&e.normal);
    return s;
}

outrider_status tokenizer_encode(const tokenizer *t, const char *text, size_t size, bool specials, ids *out,
                                 outrider_error *err)
{
    return encode(t, text, size, specials, NULL, 0, out, err);
}

outrider_status tokenizer_encode_guarded(const tokenizer *t, const char *text, size_t size, const text_range *guarded,
                                         size_t n_guarded, ids *out, outrider_error *err)
{
    return encode(t, text, size, true, guarded, n_guarded, out, err);
}
