#include "text/bpe.h"

#include <stdlib.h>
#include <string.h>

enum {
    SHORT_WORD = 32, /* up to here a scan over all pairs is faster than a heap */
    CACHED_BYTES = 14,
    CACHED_IDS = 4,
    CACHE_SLOTS = 4096
};

#define NO_MERGE  UINT64_MAX
#define NO_SYMBOL UINT32_MAX

typedef struct symbol {
    uint32_t id; /* NO_SYMBOL: merged into the one on its left */
    uint32_t previous, next;
} symbol;

typedef struct cached {
    uint8_t size, n; /* size 0: empty */
    char word[CACHED_BYTES];
    uint32_t ids[CACHED_IDS];
} cached;

void bpe_free(bpe *b)
{
    free(b->slots);
    *b = (bpe){0};
}

static size_t slot_of(const bpe *b, uint64_t pair)
{
    uint64_t h = (pair ^ pair >> 29) * 0x9e3779b97f4a7c15u;
    return (size_t)(h >> 32) & (b->n_slots - 1);
}

/* Where a pair is, or the free slot where it would be. */
static merge *seek(const bpe *b, uint64_t pair)
{
    size_t i = slot_of(b, pair);
    while (b->slots[i].pair != pair && b->slots[i].pair != UINT64_MAX) i = (i + 1) & (b->n_slots - 1);
    return &b->slots[i];
}

bool bpe_add(bpe *b, uint32_t left, uint32_t right, uint32_t rank, uint32_t both)
{
    if ((b->n + 1) * 5 > b->n_slots * 3) {
        bpe bigger = *b;
        bigger.n_slots = b->n_slots ? b->n_slots * 2 : 1024;
        bigger.slots = malloc(bigger.n_slots * sizeof *bigger.slots);
        if (!bigger.slots) return false;
        memset(bigger.slots, 0xff, bigger.n_slots * sizeof *bigger.slots);
        for (size_t i = 0; i < b->n_slots; i++)
            if (b->slots[i].pair != UINT64_MAX) *seek(&bigger, b->slots[i].pair) = b->slots[i];
        free(b->slots);
        *b = bigger;
    }
    uint64_t pair = (uint64_t)left << 32 | right;
    merge *m = seek(b, pair);
    if (m->pair == UINT64_MAX) b->n++;
    *m = (merge){pair, (uint64_t)rank << 32 | both};
    return true;
}

/* Rank and result of merging two ids, NO_MERGE if they don't. */
static uint64_t merged(const bpe *b, uint32_t left, uint32_t right)
{
    if (!b->n_slots) return NO_MERGE;
    const merge *m = seek(b, (uint64_t)left << 32 | right);
    return m->pair == UINT64_MAX ? NO_MERGE : m->rank_new;
}

void bpe_work_free(bpe_work *w)
{
    free(w->symbols);
    free(w->heap);
    free(w->cache);
    *w = (bpe_work){0};
}

void bpe_remember(bpe_work *w)
{
    if (!w->cache) w->cache = calloc(CACHE_SLOTS, sizeof *w->cache);
}

/* Merges a short word; returns how many ids are left in `word_ids`. */
static size_t merge_short(const bpe *b, const uint8_t *word, size_t size, uint32_t *word_ids)
{
    uint64_t best[SHORT_WORD]; /* of each id with its right neighbour */
    size_t n = size;
    for (size_t i = 0; i < n; i++) word_ids[i] = b->byte_ids[word[i]];
    for (size_t i = 0; i + 1 < n; i++) best[i] = merged(b, word_ids[i], word_ids[i + 1]);
    while (n > 1) {
        size_t least = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (best[i] < best[least]) least = i;
        if (best[least] == NO_MERGE) break;
        word_ids[least] = (uint32_t)best[least];
        n--;
        size_t behind = n - least - 1;
        memmove(word_ids + least + 1, word_ids + least + 2, behind * sizeof *word_ids);
        memmove(best + least, best + least + 1, behind * sizeof *best);
        if (behind) best[least] = merged(b, word_ids[least], word_ids[least + 1]);
        if (least) best[least - 1] = merged(b, word_ids[least - 1], word_ids[least]);
    }
    return n;
}

/* A heap of rank << 32 | position: the least comes first, so of equal ranks the leftmost. Four children each: they
 * share a cache line. */
static bool heap_push(bpe_work *w, uint64_t key)
{
    if (w->n_heap == w->heap_capacity) {
        size_t capacity = w->heap_capacity ? w->heap_capacity * 2 : 256;
        uint64_t *heap = realloc(w->heap, capacity * sizeof *heap);
        if (!heap) return false;
        w->heap = heap;
        w->heap_capacity = capacity;
    }
    size_t i = w->n_heap++;
    while (i && w->heap[(i - 1) / 4] > key) {
        w->heap[i] = w->heap[(i - 1) / 4];
        i = (i - 1) / 4;
    }
    w->heap[i] = key;
    return true;
}

static uint64_t heap_pop(bpe_work *w)
{
    uint64_t *heap = w->heap, top = heap[0], last = heap[--w->n_heap];
    size_t i = 0, n = w->n_heap;
    for (size_t first = 1; first < n; first = 4 * i + 1) {
        size_t least = first, end = first + 4 < n ? first + 4 : n;
        for (size_t k = first + 1; k < end; k++) least = heap[k] < heap[least] ? k : least;
        if (heap[least] >= last) break;
        heap[i] = heap[least];
        i = least;
    }
    heap[i] = last;
    return top;
}

/* Notes the pair of the symbol at `at` with its right neighbour, if it merges. */
static bool note_pair(const bpe *b, bpe_work *w, uint32_t at)
{
    const symbol *s = &w->symbols[at];
    if (s->next == NO_SYMBOL) return true;
    uint64_t m = merged(b, s->id, w->symbols[s->next].id);
    return m == NO_MERGE || heap_push(w, (m & 0xffffffff00000000u) | at);
}

static bool start_long(const bpe *b, bpe_work *w, const uint8_t *word, uint32_t size)
{
    if (size > w->n_symbols) {
        symbol *symbols = realloc(w->symbols, size * sizeof *symbols);
        if (!symbols) return false;
        w->symbols = symbols;
        w->n_symbols = size;
    }
    for (uint32_t i = 0; i < size; i++)
        w->symbols[i] = (symbol){b->byte_ids[word[i]], i ? i - 1 : NO_SYMBOL, i + 1 < size ? i + 1 : NO_SYMBOL};
    w->n_heap = 0;
    for (uint32_t i = 0; i < size; i++)
        if (!note_pair(b, w, i)) return false;
    return true;
}

/* A long word: symbols in a doubly linked list, the pairs that merge in a heap. A pair whose symbols have changed
 * since is found out by its rank: a symbol only ever grows, so the pair at a position never returns to an earlier one. */
static bool merge_long(const bpe *b, bpe_work *w, const uint8_t *word, size_t size, ids *out)
{
    if (!start_long(b, w, word, (uint32_t)size)) return false;
    while (w->n_heap) {
        uint64_t key = heap_pop(w);
        uint32_t at = (uint32_t)key;
        symbol *s = &w->symbols[at];
        if (s->id == NO_SYMBOL || s->next == NO_SYMBOL) continue;
        symbol *right = &w->symbols[s->next];
        uint64_t m = merged(b, s->id, right->id);
        if (m == NO_MERGE || m >> 32 != key >> 32) continue;
        s->id = (uint32_t)m;
        right->id = NO_SYMBOL;
        s->next = right->next;
        if (s->next != NO_SYMBOL) w->symbols[s->next].previous = at;
        if (!note_pair(b, w, at)) return false;
        if (s->previous != NO_SYMBOL && !note_pair(b, w, s->previous)) return false;
    }
    for (uint32_t i = 0; i != NO_SYMBOL; i = w->symbols[i].next)
        if (!ids_add(out, w->symbols[i].id)) return false;
    return true;
}

static cached *cache_slot(bpe_work *w, const char *word, size_t size)
{
    uint64_t a = 0, b = 0;
    memcpy(&a, word, size < 8 ? size : 8);
    if (size > 8) memcpy(&b, word + 8, size - 8);
    uint64_t h = (a ^ (b + size) * 0xff51afd7ed558ccdu) * 0x9e3779b97f4a7c15u;
    return &w->cache[(h >> 40) & (CACHE_SLOTS - 1)];
}

static bool add_all(ids *out, const uint32_t *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!ids_add(out, list[i])) return false;
    return true;
}

bool bpe_word(const bpe *b, bpe_work *w, const char *word, size_t size, ids *out)
{
    ensure(size && size <= BPE_MAX_WORD);
    if (size == 1) return ids_add(out, b->byte_ids[(uint8_t)word[0]]);
    if (size > SHORT_WORD) return merge_long(b, w, (const uint8_t *)word, size, out);
    cached *c = w->cache && size <= CACHED_BYTES ? cache_slot(w, word, size) : NULL;
    if (c && c->size == size && memcmp(c->word, word, size) == 0) return add_all(out, c->ids, c->n);
    uint32_t word_ids[SHORT_WORD];
    size_t n = merge_short(b, (const uint8_t *)word, size, word_ids);
    if (c && n <= CACHED_IDS) {
        c->size = (uint8_t)size;
        c->n = (uint8_t)n;
        memcpy(c->word, word, size);
        memcpy(c->ids, word_ids, n * sizeof *word_ids);
    }
    return add_all(out, word_ids, n);
}
