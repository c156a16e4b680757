/* One model's timeline as the decoder sees it: ids that were computed (the cache) and the logits of the last pass. The engine
 * implements it over a forward pass and a KV cache; tests implement it as scripts. */
#ifndef DECODE_LANE_H
#define DECODE_LANE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct lane {
    void *self;

    /* Appends n (>= 1) ids to the cached timeline in one pass. Logits are kept for the last logits_rows (0..n) of them, until the
     * next eval; row 0 is the first of those. On failure the timeline is as it was, and no logits are kept. */
    outrider_status (*eval)(void *self, const uint32_t *ids, size_t n, size_t logits_rows, outrider_error *err);

    /* The id that a kept row chooses (largest logit, lowest id among equals) and, when margin is not NULL, how far the largest
     * logit is above the second. Kept rows stay readable after truncate. */
    outrider_status (*pick)(void *self, size_t row, uint32_t *id, float *margin, outrider_error *err);

    /* Keeps the first n (<= cached) ids. */
    void (*truncate)(void *self, size_t n);

    size_t (*cached)(const void *self);
} lane;

#endif
