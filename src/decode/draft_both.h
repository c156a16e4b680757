/* The draft source over two: lookups in the history where they do well, else a model. */
#ifndef DECODE_DRAFT_BOTH_H
#define DECODE_DRAFT_BOTH_H

#include "decode/ngram.h"

typedef struct draft_both {
    ngram *lookup;
    draft_source model;
    double rate_hits, rate_trials; /* of the model's proposals, decayed */
    const uint32_t *history;       /* since begin; not owned */
    size_t n;                      /* its length; 0: begin was not called since the last settle */
    bool model_begun;
    size_t by_lookup;                       /* proposals since begin that were looked up: the last ones */
    uint32_t proposals[OUTRIDER_MAX_DRAFT]; /* the model's, [0..waiting), after an `asked` long history: not waiting yet */
    size_t waiting, asked;
} draft_both;

/* Fills *b and gives the source over it; *b, *lookup and what model.self points to must stay where they are. Allocates nothing. */
draft_source draft_both_init(draft_both *b, ngram *lookup, draft_source model);

#endif
