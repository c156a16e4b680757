/* A timeline of one model: forward pass + KV cache + logits, as decode/lane.h wants it. */
#include <math.h>

#include "base/memory.h"
#include "engine/engine.h"

outrider_status engine_lane_open(engine_lane *l, outrider_model *model, outrider_part part, size_t context, size_t max_logits,
                                 outrider_error *err)
{
    const weights *w = &model->parts[part].weights;
    *l = (engine_lane){.model = model, .part = part, .max_logits = max_logits};
    l->pick_vocab = (size_t)w->config.vocab;
    if (part == OUTRIDER_DRAFT && model->shared_vocab < l->pick_vocab) l->pick_vocab = model->shared_vocab;
    l->logits_bytes = max_logits * (size_t)w->config.vocab * sizeof *l->logits;
    l->logits = memory_map(l->logits_bytes);
    if (!l->logits) return error_memory(err, "logits", l->logits_bytes);
    const outrider_status status = kv_open(&l->kv, &w->config, context, err);
    if (status) engine_lane_close(l);
    return status;
}

void engine_lane_close(engine_lane *l)
{
    memory_unmap(l->logits, l->logits_bytes);
    kv_close(&l->kv);
    *l = (engine_lane){0};
}

/* An id that this model does not have (a padding row that only the other one has) is taken in as id 0: it can only come from
 * the verifier's history into the draft, whose proposals are never trusted. */
static outrider_status lane_eval(void *self, const uint32_t *ids, size_t n, size_t logits_rows, outrider_error *err)
{
    engine_lane *l = self;
    const engine_part *part = &l->model->parts[l->part];
    ensure(n >= 1 && n <= PASS_ROWS && logits_rows <= n && logits_rows <= l->max_logits);
    forward_row rows[PASS_ROWS];
    for (size_t i = 0; i < n; i++)
        rows[i] = (forward_row){.kv = &l->kv,
                                .position = (uint32_t)(l->kv.positions + i),
                                .token = ids[i] < (uint32_t)part->weights.config.vocab ? ids[i] : 0,
                                .logits = i + logits_rows >= n};
    l->n_logits = 0;
    pthread_mutex_lock(&l->model->lock);
    const outrider_status status = forward_run(part->pass, rows, n, l->head, l->logits, err);
    pthread_mutex_unlock(&l->model->lock);
    if (!status) l->n_logits = logits_rows;
    return status;
}

static outrider_status lane_pick(void *self, size_t row, uint32_t *id, float *margin, outrider_error *err)
{
    const engine_lane *l = self;
    ensure(row < l->n_logits);
    const float *logits = l->logits + row * (size_t)l->model->parts[l->part].weights.config.vocab;
    const size_t low_end = l->head && l->head->low_end < l->pick_vocab ? l->head->low_end : l->pick_vocab;
    const size_t high_begin =
        low_end < l->pick_vocab && l->head->high_begin < l->pick_vocab ? l->head->high_begin : l->pick_vocab;
    float second, second_high;
    uint32_t high = 0;
    bool finite = l->model->kernels.argmax(logits, low_end, id, &second);
    if (finite && high_begin < l->pick_vocab) {
        finite = l->model->kernels.argmax(logits + high_begin, l->pick_vocab - high_begin, &high, &second_high);
        high += (uint32_t)high_begin;
        /* The runner-up of the whole is the loser of the two, or the winner's own runner-up. */
        if (finite && logits[high] > logits[*id]) {
            second = logits[*id] > second_high ? logits[*id] : second_high;
            *id = high;
        } else if (finite && logits[high] > second) {
            second = logits[high];
        }
    }
    if (!finite)
        return error_set(err, OUTRIDER_FAILURE, "%s: a logit is not finite (NaN or infinite)", l->model->parts[l->part].path);
    if (margin) *margin = l->pick_vocab > 1 ? logits[*id] - second : INFINITY;
    return OUTRIDER_OK;
}

static void lane_truncate(void *self, size_t n)
{
    engine_lane *l = self;
    ensure(n <= l->kv.positions);
    l->kv.positions = n;
}

static size_t lane_cached(const void *self) { return ((const engine_lane *)self)->kv.positions; }

lane engine_lane_interface(engine_lane *l) { return (lane){l, lane_eval, lane_pick, lane_truncate, lane_cached}; }
