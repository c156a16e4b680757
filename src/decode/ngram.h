/* The draft source over the history itself: what followed the last time that the text read like this. No model, no passes. */
#ifndef DECODE_NGRAM_H
#define DECODE_NGRAM_H

#include <stdbool.h>

#include "decode/draft.h"

enum {
    NGRAM_LEAST = 3, /* ids that must repeat before anything is proposed */
    NGRAM_MOST = 8,  /* ids that are compared: longer repeats count as this long */
    NGRAM_LENGTHS = NGRAM_MOST - NGRAM_LEAST + 1,
    NGRAM_PROBES = 32 /* slots that a search looks at before it gives up */
};

/* Decayed counts of predictions and of those that came true. */
typedef struct ngram_rate {
    double hits, trials;
} ngram_rate;

typedef struct ngram {
    size_t context;
    void *memory;
    size_t bytes;
    uint32_t *ids;                   /* what was taken in: history[0..known), then proposals */
    size_t n;                        /* ids in it */
    size_t known;                    /* of them history */
    size_t slots;                    /* of each table, a power of two */
    uint32_t *table[NGRAM_LENGTHS];  /* where the id after the last occurrence of an n-gram stands; 0: free */
    uint32_t *before[NGRAM_LENGTHS]; /* by position: what the slot held before this position was written into it */

    /* What was looked up for position `looked` (SIZE_MAX: nothing). */
    size_t looked;
    uint32_t slot[NGRAM_LENGTHS];
    size_t match; /* ids that repeat before it; 0: fewer than NGRAM_LEAST */
    size_t at;    /* the id that followed */

    /* How predictions of the history's own ids fared. */
    ngram_rate by_match[NGRAM_LENGTHS], recent;
    bool begun;
} ngram;

typedef struct ngram_guess {
    uint32_t id;
    uint32_t match;   /* NGRAM_LEAST..NGRAM_MOST; 0: there is none, and the rest says nothing */
    double chance;    /* of being right, as far as it can tell */
    float confidence; /* the same on a draft model's scale */
} ngram_guess;

/* Memory for histories of up to `context` ids, all that it ever takes: address space, resident as far as it is used. */
outrider_status ngram_open(ngram *g, size_t context, outrider_error *err);
void ngram_close(ngram *g); /* all zero is allowed */
size_t ngram_bytes(size_t context);

/* *g must stay where it is. next says DRAFT_NONE where nothing repeats; missing is always 0. */
draft_source ngram_source(ngram *g);

/* The parts of the source, for one that combines several: takes in history[known..n); what it would propose next; takes in one more
 * proposal, whoever made it. Settling takes all proposals back. */
void ngram_take_in(ngram *g, const uint32_t *history, size_t n);
ngram_guess ngram_look(ngram *g);
void ngram_propose(ngram *g, uint32_t id);
void ngram_settle(ngram *g, size_t n);

#endif
