/* One pass of a batch of rows through a model. A row is a token at a position of a sequence; what it computes depends on the
 * weights and the tokens before it alone (docs/EXACTNESS.md), so a verify of k proposals is simply k + 1 rows. */
#ifndef FORWARD_FORWARD_H
#define FORWARD_FORWARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/pool.h"
#include "forward/kv.h"
#include "weights/weights.h"

/* Rows of one sequence stand together, with positions that rise by one from the cache's end on. */
typedef struct forward_row {
    kv_cache *kv;
    uint32_t position;
    uint32_t token;
    bool logits; /* whether this row's logits are wanted */
} forward_row;

/* Part of the head: rows [0, low_end) and [high_begin, vocab). The rest of a logits row is not written. */
typedef struct forward_head {
    size_t low_end, high_begin;
} forward_head;

typedef struct forward forward;

/* Scratch for up to max_rows rows a pass, max_logits of them with logits, and sequences of up to max_positions. Weights, table and pool are
 * borrowed and must outlive it. Nothing is allocated after this. */
outrider_status forward_open(forward **out, const weights *w, const kernel_table *table, pool *threads, size_t max_rows,
                             size_t max_logits, size_t max_positions, outrider_error *err);
void forward_close(forward *f);

/* Bytes of scratch that forward_open takes for these sizes; `widest` = rows of the widest matrix product, extra rows included. */
uint64_t forward_scratch_bytes(const model_config *config, size_t widest, int threads, size_t max_rows, size_t max_logits,
                               size_t max_positions);
size_t forward_widest(const weights *w);

/* Runs n rows (1..max_rows). Keys and values are written to the caches and each sequence's `positions` is moved past its rows; the logits of
 * the rows that want them go to `logits`, [number of such rows][vocab] in the order of the rows (NULL when there is none). When a value became
 * NaN or infinite the status is OUTRIDER_FAILURE, the error names the layer, and no `positions` was moved. head NULL: the whole head. One run at a
 * time. */
outrider_status forward_run(forward *f, const forward_row *rows, size_t n, const forward_head *head, float *logits,
                            outrider_error *err);

/* Seconds that a pass of `rows` rows (1..max_rows), `logits` (1..max_logits) of them with logits, would take, by a sample: the matrix products of one
 * layer and a slice of the head, the better of two runs, scaled to the whole model. What it computes is thrown away. */
double forward_sample_seconds(forward *f, size_t rows, size_t logits, const forward_head *head);

#endif
