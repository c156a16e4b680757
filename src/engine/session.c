/* A timeline: history, caches, and the low-level calls on them. */
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

static outrider_status open_digests(outrider_session *s, outrider_error *err)
{
    s->ids_digest = digest_open();
    s->logits_digest = digest_open();
    return s->ids_digest && s->logits_digest ? OUTRIDER_OK : error_memory(err, "digests", 0);
}

/* Widths left out are interpolated by the controller; the whole takes the time of a few tokens. */
void engine_calibrate(outrider_model *m)
{
    static const size_t widths[] = {1, 2, 3, 4, 5, 6, 8, 12, OUTRIDER_MAX_ROWS};
    enum { CATCH_UP = 8 };
    forward *verifier = m->parts[OUTRIDER_VERIFIER].pass, *draft = m->parts[OUTRIDER_DRAFT].pass;
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < sizeof widths / sizeof *widths && !m->calibrated; i++)
        m->costs.verify[widths[i]] = forward_sample_seconds(verifier, widths[i], widths[i], NULL);
    if (draft && !m->calibrated) {
        m->costs.draft = forward_sample_seconds(draft, 1, 1, &m->draft_head);
        const double several = forward_sample_seconds(draft, CATCH_UP, 1, &m->draft_head) - m->costs.draft;
        m->costs.take_in = several > 0 ? several / (CATCH_UP - 1) : 0;
    }
    m->calibrated = true;
    pthread_mutex_unlock(&m->lock);
}

/* The draft source that was asked for, as far as the model has what it takes. */
static outrider_status open_source(outrider_session *s, outrider_draft_kind kind, outrider_error *err)
{
    const bool model = kind != OUTRIDER_DRAFT_KIND_NGRAM && s->model->parts[OUTRIDER_DRAFT].present;
    outrider_status status = OUTRIDER_OK;
    if (kind != OUTRIDER_DRAFT_KIND_MODEL) status = ngram_open(&s->lookup, s->context, err);
    if (!status && model) status = engine_lane_open(&s->draft, s->model, OUTRIDER_DRAFT, s->context, 1, err);
    if (status || (kind == OUTRIDER_DRAFT_KIND_MODEL && !model)) return status;
    if (model) s->draft.head = &s->model->draft_head;
    if (model) s->source = draft_model_init(&s->draft_state, engine_lane_interface(&s->draft), PASS_ROWS, &s->cancel);
    if (kind != OUTRIDER_DRAFT_KIND_MODEL)
        s->source = model ? draft_both_init(&s->both, &s->lookup, s->source) : ngram_source(&s->lookup);
    s->drafts = true;
    engine_calibrate(s->model);
    return OUTRIDER_OK;
}

static outrider_status fill_session(outrider_session *s, const outrider_session_options *o, outrider_error *err)
{
    outrider_model *m = s->model;
    const bool alone = o->role == OUTRIDER_ROLE_DRAFT;
    if (alone && !m->parts[OUTRIDER_DRAFT].present) return error_set(err, OUTRIDER_USAGE, "this model has no draft");
    if (o->context > m->context)
        return error_set(err, OUTRIDER_USAGE, "a session of %u tokens was asked for; the model was opened for %u", o->context,
                         m->context);
    if (o->draft_kind < OUTRIDER_DRAFT_KIND_MODEL || o->draft_kind > OUTRIDER_DRAFT_KIND_BOTH)
        return error_set(err, OUTRIDER_USAGE, "draft kind: expected model, ngram or both, found %d", (int)o->draft_kind);
    s->role = o->role;
    s->context = o->context ? o->context : m->context;
    s->history = malloc(s->context * sizeof *s->history);
    if (!s->history) return error_memory(err, "the history", s->context * sizeof *s->history);
    outrider_status status =
        engine_lane_open(&s->verifier, m, alone ? OUTRIDER_DRAFT : OUTRIDER_VERIFIER, s->context, OUTRIDER_MAX_ROWS, err);
    if (!status && alone && o->draft_head) s->verifier.head = &m->draft_head;
    if (!status && o->role == OUTRIDER_ROLE_PAIR) status = open_source(s, o->draft_kind, err);
    if (!status && o->digests) status = open_digests(s, err);
    length_init(&s->length, OUTRIDER_MAX_DRAFT, s->drafts ? &m->costs : NULL);
    return status;
}

outrider_status outrider_session_open(outrider_model *model, const outrider_session_options *options,
                                      outrider_session **session, outrider_error *err)
{
    const outrider_session_options none = OUTRIDER_SESSION_OPTIONS_INIT;
    outrider_session *s = calloc(1, sizeof *s);
    if (!s) return error_memory(err, "a session", sizeof *s);
    s->model = model;
    atomic_fetch_add(&model->sessions, 1);
    const outrider_status status = fill_session(s, options ? options : &none, err);
    if (status) {
        outrider_session_close(s);
        return status;
    }
    *session = s;
    return OUTRIDER_OK;
}

void outrider_session_close(outrider_session *s)
{
    if (!s) return;
    if (s->verifier.model) engine_lane_close(&s->verifier);
    if (s->draft.model) engine_lane_close(&s->draft);
    ngram_close(&s->lookup);
    digest_close(s->ids_digest);
    digest_close(s->logits_digest);
    free(s->history);
    atomic_fetch_sub(&s->model->sessions, 1);
    free(s);
}

outrider_status outrider_session_push_tokens(outrider_session *s, const uint32_t *ids, size_t n, outrider_error *err)
{
    const uint32_t vocab = (uint32_t)s->model->parts[s->verifier.part].weights.config.vocab;
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= vocab)
            return error_set(err, OUTRIDER_USAGE, "token id %u is outside the vocabulary of %u ids", ids[i], vocab);
    if (n > s->context - s->n)
        return error_set(err, OUTRIDER_USAGE, "the prompt has %zu tokens; the context holds %zu", s->n + n, s->context);
    memcpy(s->history + s->n, ids, n * sizeof *ids);
    s->n += n;
    s->eval_rows = 0;
    return OUTRIDER_OK;
}

const uint32_t *outrider_session_tokens(const outrider_session *s, size_t *n)
{
    *n = s->n;
    return s->history;
}

void engine_session_cut(outrider_session *s, size_t n)
{
    s->n = n;
    if (s->verifier.kv.positions > n) s->verifier.kv.positions = n;
    if (s->drafts) s->source.settle(s->source.self, n);
}

outrider_status outrider_session_truncate(outrider_session *s, size_t n, outrider_error *err)
{
    if (n > s->n) return error_set(err, OUTRIDER_USAGE, "cannot cut a history of %zu tokens to %zu", s->n, n);
    engine_session_cut(s, n);
    return OUTRIDER_OK;
}

void outrider_session_cancel(outrider_session *s) { atomic_store(&s->cancel, true); }

outrider_status outrider_session_eval(outrider_session *s, const uint32_t *ids, size_t n, outrider_error *err)
{
    if (n < 1 || n > OUTRIDER_MAX_ROWS)
        return error_set(err, OUTRIDER_USAGE, "eval takes 1 to %d tokens, found %zu", OUTRIDER_MAX_ROWS, n);
    const size_t before = s->n;
    outrider_status status = outrider_session_push_tokens(s, ids, n, err);
    if (status) return status;
    const lane l = engine_lane_interface(&s->verifier);
    while (!status && s->verifier.kv.positions < before) {
        const size_t at = s->verifier.kv.positions, left = before - at;
        status = l.eval(l.self, s->history + at, left < PASS_ROWS ? left : PASS_ROWS, 0, err);
    }
    if (!status) status = l.eval(l.self, s->history + before, n, n, err);
    if (status)
        engine_session_cut(s, before);
    else
        s->eval_rows = n;
    return status;
}

const float *outrider_session_logits(const outrider_session *s, size_t row)
{
    if (row >= s->eval_rows) return NULL;
    return s->verifier.logits + row * (size_t)s->model->parts[s->verifier.part].weights.config.vocab;
}

outrider_status outrider_session_argmax(const outrider_session *s, size_t row, uint32_t *id, outrider_error *err)
{
    if (row >= s->eval_rows) return error_set(err, OUTRIDER_USAGE, "row %zu of an eval of %zu rows", row, s->eval_rows);
    const lane l = engine_lane_interface((engine_lane *)&s->verifier);
    return l.pick(l.self, row, id, NULL, err);
}

outrider_status outrider_session_digests(const outrider_session *s, char ids_hex[65], char logits_hex[65], outrider_error *err)
{
    if (!s->ids_digest) return error_set(err, OUTRIDER_USAGE, "this session was opened without digests");
    digest_hex(s->ids_digest, ids_hex);
    digest_hex(s->logits_digest, logits_hex);
    return OUTRIDER_OK;
}
