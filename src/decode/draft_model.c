/* A model as a source of proposals. Its cache holds, between steps, a prefix of the history (how far is the source's own affair: all
 * that was never asked for is missing); after proposals p1..pk also p1..p(k-1): the last proposal is an output that nothing
 * was computed from. So after a step in which all k were accepted the model lacks pk as well as the verifier's token after it, and takes
 * both in with the next first proposal; after steps without proposals it lacks more, and takes them in the same way. */
#include "decode/draft_model.h"

static void model_begin(void *self, const uint32_t *history, size_t n)
{
    draft_model *m = self;
    ensure(n >= 1);
    /* The logits after the last id must be computed anew even if the id itself was taken in as a proposal. */
    if (m->lane.cached(m->lane.self) >= n) m->lane.truncate(m->lane.self, n - 1);
    m->history = history;
    m->n = n;
    m->proposed = 0;
}

static bool is_cancelled(const draft_model *m) { return m->cancel && atomic_load_explicit(m->cancel, memory_order_relaxed); }

/* Takes in history[cached..n), `rows` a pass, with logits for the last id if `logits`. Counts passes. */
static outrider_status take_in(draft_model *m, const uint32_t *history, size_t n, bool logits, uint32_t *passes,
                               outrider_error *err)
{
    for (size_t at; (at = m->lane.cached(m->lane.self)) < n; ++*passes) {
        if (is_cancelled(m)) return error_set(err, OUTRIDER_CANCELLED, "cancelled");
        const size_t part = n - at < m->rows ? n - at : m->rows;
        const outrider_status status = m->lane.eval(m->lane.self, history + at, part, logits && at + part == n, err);
        if (status) return status;
    }
    return OUTRIDER_OK;
}

static outrider_status model_next(void *self, draft_proposal *out, outrider_error *err)
{
    draft_model *m = self;
    ensure(m->n >= 1);
    uint32_t passes = 0;
    outrider_status status;
    if (m->proposed == 0) {
        status = take_in(m, m->history, m->n, true, &passes, err);
    } else {
        ensure(m->lane.cached(m->lane.self) == m->n + m->proposed - 1);
        if (is_cancelled(m)) return error_set(err, OUTRIDER_CANCELLED, "cancelled");
        passes = 1;
        status = m->lane.eval(m->lane.self, &m->last, 1, 1, err);
    }
    if (status) return status;
    float margin = 0;
    status = m->lane.pick(m->lane.self, 0, &m->last, &margin, err);
    if (status) return status;
    m->proposed++;
    *out = (draft_proposal){m->last, margin, passes};
    return OUTRIDER_OK;
}

static void model_settle(void *self, size_t n)
{
    draft_model *m = self;
    if (m->lane.cached(m->lane.self) > n) m->lane.truncate(m->lane.self, n);
    m->history = NULL;
    m->n = 0;
    m->proposed = 0;
}

static size_t model_missing(const void *self, size_t n)
{
    const draft_model *m = self;
    const size_t cached = m->lane.cached(m->lane.self);
    return cached < n ? n - cached : 1;
}

static outrider_status model_warm(void *self, const uint32_t *history, size_t n, outrider_error *err)
{
    uint32_t passes = 0;
    return n < 2 ? OUTRIDER_OK : take_in(self, history, n - 1, false, &passes, err);
}

draft_source draft_model_init(draft_model *m, lane draft, size_t rows, const atomic_bool *cancel)
{
    ensure(rows >= 1);
    *m = (draft_model){.lane = draft, .rows = rows, .cancel = cancel};
    return (draft_source){m, model_begin, model_next, model_settle, model_missing, model_warm};
}
