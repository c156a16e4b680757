/* The draft source over a model. */
#ifndef DECODE_DRAFT_MODEL_H
#define DECODE_DRAFT_MODEL_H

#include <stdatomic.h>

#include "decode/draft.h"
#include "decode/lane.h"

typedef struct draft_model {
    lane lane;
    size_t rows;               /* ids a pass may take in while catching up, >= 1 */
    const atomic_bool *cancel; /* checked before each pass; NULL: never cancelled */
    const uint32_t *history;   /* since begin; not owned */
    size_t n;                  /* its length; 0: begin was not called since the last settle */
    uint32_t last;             /* the last proposal */
    size_t proposed;           /* proposals since begin */
} draft_model;

/* Fills *m and gives the source over it; both the lane's self and *m must stay where they are. Allocates nothing. */
draft_source draft_model_init(draft_model *m, lane draft, size_t rows, const atomic_bool *cancel);

#endif
