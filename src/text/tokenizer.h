/* Hugging Face tokenizer.json of the Qwen kind: NFC, split pattern, byte-level BPE by rank, added tokens. Bytes <-> token ids.
 *
 * A loaded tokenizer is never written to: any number of threads may use it. */
#ifndef TEXT_TOKENIZER_H
#define TEXT_TOKENIZER_H

#include "base/error.h"
#include "text/ids.h"

typedef struct tokenizer tokenizer;

/* Reads a tokenizer.json. What is not supported is refused with a line that names file, field, expected and found. */
outrider_status tokenizer_open(tokenizer **out, const char *path, outrider_error *err);

/* The same from memory; `name` stands for the path in messages. The bytes are not needed afterwards. */
outrider_status tokenizer_open_memory(tokenizer **out, const char *json, size_t size, const char *name, outrider_error *err);

void tokenizer_close(tokenizer *t); /* NULL is allowed */

/* Highest id + 1. Ids below it may have no token (padding). */
size_t tokenizer_size(const tokenizer *t);

/* The raw bytes of a token, zero-terminated, valid as long as the tokenizer; "" and 0 for an id without one. */
const char *tokenizer_bytes(const tokenizer *t, uint32_t id, size_t *size);

/* An added token with special = true: a decoder leaves it out of text. */
bool tokenizer_is_special(const tokenizer *t, uint32_t id);

/* An added token of either kind. */
bool tokenizer_is_added(const tokenizer *t, uint32_t id);

/* The id of the token with exactly these bytes; added tokens first. */
bool tokenizer_find(const tokenizer *t, const char *bytes, size_t size, uint32_t *id);

/* A run of bytes in which special tokens are not matched. */
typedef struct text_range {
    size_t begin, end;
} text_range;

/* Appends the ids of a text of `size` bytes (any bytes: those that are not UTF-8 go through byte by byte and round-trip).
 * specials: whether special tokens written in the text are matched. When not, `<|im_end|>` is spelled out like any text; added tokens that are not
 * special (`<think>`, `<tool_call>`) are matched either way. */
outrider_status tokenizer_encode(const tokenizer *t, const char *text, size_t size, bool specials, ids *out, outrider_error *err);

/* tokenizer_encode with specials, except that no special token is matched where it overlaps one of the guarded ranges (ascending, apart). */
outrider_status tokenizer_encode_guarded(const tokenizer *t, const char *text, size_t size, const text_range *guarded,
                                         size_t n_guarded, ids *out, outrider_error *err);

/* Whether two tokenizers give every id the same bytes and kind; one may have more padding. A difference is OUTRIDER_USAGE: the line names
 * the first id that differs and both texts. */
outrider_status tokenizer_same(const tokenizer *verifier, const tokenizer *draft, outrider_error *err);

#endif
