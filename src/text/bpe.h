/* Byte-level BPE: the bytes of a word are merged pair by pair, lowest rank first, leftmost first. */
#ifndef TEXT_BPE_H
#define TEXT_BPE_H

#include "text/ids.h"
#include "text/vocab.h"

typedef struct merge {
    uint64_t pair;     /* left id << 32 | right id; UINT64_MAX: free */
    uint64_t rank_new; /* rank << 32 | id of both together */
} merge;

/* Zeroed: no merges. */
typedef struct bpe {
    uint32_t byte_ids[256];
    merge *slots;
    size_t n_slots, n;
} bpe;

void bpe_free(bpe *b);

/* Adds a merge; of two for the same pair the later one counts. False when memory ran out. */
bool bpe_add(bpe *b, uint32_t left, uint32_t right, uint32_t rank, uint32_t both);

/* What one thread needs for merging; zeroed at first. */
typedef struct bpe_work {
    struct symbol *symbols;
    size_t n_symbols;
    uint64_t *heap;
    size_t n_heap, heap_capacity;
    struct cached *cache; /* words seen in this call; NULL: none are kept */
} bpe_work;

void bpe_work_free(bpe_work *w);

/* Lets the work remember short words, which pays off in long texts. Without memory for it, it goes without. */
void bpe_remember(bpe_work *w);

enum { BPE_MAX_WORD = 1 << 30 };

/* Appends the ids of a word of 1 to BPE_MAX_WORD bytes. False when memory ran out. */
bool bpe_word(const bpe *b, bpe_work *w, const char *word, size_t size, ids *out);

#endif
