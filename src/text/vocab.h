/* The tokens of a tokenizer: id -> bytes and kind, bytes -> id. */
#ifndef TEXT_VOCAB_H
#define TEXT_VOCAB_H

#include "base/bytes.h"
#include "base/error.h"

enum {
    VOCAB_MAX_IDS = 1 << 22,
    VOCAB_MAX_TOKEN = 1 << 20 /* bytes of one token */
};

typedef enum token_kind {
    TOKEN_NONE,    /* no token: padding */
    TOKEN_PLAIN,   /* made by merging byte pairs */
    TOKEN_FOREIGN, /* in the vocabulary, but not in the byte alphabet: only an added token may claim it */
    TOKEN_ADDED,   /* an added token, matched as it is written */
    TOKEN_SPECIAL  /* an added token that is not text */
} token_kind;

typedef struct token_info {
    uint32_t at, size; /* in vocab.text */
    uint32_t kind;
} token_info;

/* Zeroed: empty. */
typedef struct vocab {
    bytes text; /* the tokens' bytes, each with a zero behind it */
    token_info *tokens;
    size_t size, capacity; /* highest id + 1 */
    uint32_t *slots;       /* id + 1 by hash of the bytes; 0: free */
    size_t n_slots, n_hashed;
} vocab;

void vocab_free(vocab *v);

/* Gives an id that has none its bytes. Plain tokens can be found by vocab_find afterwards. False when memory ran out. */
bool vocab_set(vocab *v, uint32_t id, const char *data, size_t size, token_kind kind);

/* The bytes of an id, zero-terminated; "" for one without a token. */
const char *vocab_bytes(const vocab *v, uint32_t id, size_t *size);

token_kind vocab_kind(const vocab *v, uint32_t id);

/* The id that merging gives these bytes; UINT32_MAX if there is none. */
uint32_t vocab_find(const vocab *v, const char *data, size_t size);

#endif
