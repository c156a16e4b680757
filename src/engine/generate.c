/* An answer: the decoder's tokens become digests, text, stop strings and statistics. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/engine.h"

/* One call of outrider_session_generate. */
typedef struct answer {
    outrider_session *s;
    const outrider_generate_options *o;
    outrider_on_text on_text;
    void *user;
    outrider_result *result;
    decoder decoder;
    length_controller own_length; /* fixed or random lengths do not disturb what the session's controller learnt */
    text_decoder text;
    stop_matcher stop;
    bytes raw, shown;  /* text of a step: decoded, and past the stop strings; capacity kept from step to step */
    size_t final_from; /* history index of the first token not handed out yet */
    bool refused;      /* the caller asked to stop: it is not called again */
} answer;

static outrider_status no_text_memory(outrider_error *err) { return error_memory(err, "text", 0); }

static outrider_status check_options(const outrider_session *s, const outrider_generate_options *o, outrider_error *err)
{
    if (o->draft_length < OUTRIDER_DRAFT_RANDOM || o->draft_length > OUTRIDER_MAX_DRAFT)
        return error_set(err, OUTRIDER_USAGE, "draft length: expected 0 to %d, dynamic or random, found %d", OUTRIDER_MAX_DRAFT,
                         o->draft_length);
    if (o->draft_max > OUTRIDER_MAX_DRAFT)
        return error_set(err, OUTRIDER_USAGE, "draft max: expected 0 to %d, found %u", OUTRIDER_MAX_DRAFT, o->draft_max);
    if (o->n_stop) {
        const outrider_status status = engine_need_text(s->model, err);
        if (status) return status;
    }
    if (s->n == 0) return error_set(err, OUTRIDER_USAGE, "the prompt is empty: there is nothing to go on from");
    if (s->n >= s->context)
        return error_set(err, OUTRIDER_USAGE, "the prompt has %zu tokens and the context holds %zu: no room for an answer",
                         s->n, s->context);
    return OUTRIDER_OK;
}

/* The controller for this answer. Without a draft, or with a length of 0, the decoder runs as if there were none. */
static length_controller *choose_length(answer *a)
{
    const outrider_generate_options *o = a->o;
    if (o->draft_length == OUTRIDER_DRAFT_DYNAMIC) {
        a->s->length.max = o->draft_max;
        return &a->s->length;
    }
    if (o->draft_length == OUTRIDER_DRAFT_RANDOM)
        length_init_random(&a->own_length, o->draft_max, o->draft_seed);
    else
        length_init_fixed(&a->own_length, (size_t)o->draft_length);
    return &a->own_length;
}

static void begin(answer *a)
{
    outrider_session *s = a->s;
    const bool drafts = s->drafts && a->o->draft_length != 0 && (a->o->draft_length > 0 || a->o->draft_max > 0);
    const decode_settings settings = {
        .verifier = engine_lane_interface(&s->verifier),
        .draft = drafts ? &s->source : NULL,
        .length = drafts ? choose_length(a) : NULL,
        .history = s->history,
        .n = s->n,
        .context = s->context,
        .ends = s->model->ends,
        .n_ends = a->o->ignore_end ? 0 : s->model->n_ends,
        .max_tokens = a->o->max_tokens,
        .cancel = &s->cancel,
    };
    decode_start(&a->decoder, &settings);
    a->final_from = s->n;
}

/* Hands out the text in a->shown with the tokens up to history index `final`. False: the caller wants to stop. */
static bool hand_out(answer *a, size_t final)
{
    const size_t n = final - a->final_from;
    const uint32_t *list = a->s->history + a->final_from;
    const bool any = a->shown.size > 0 || n > 0;
    a->final_from = final;
    if (a->on_text && any && !a->refused)
        a->refused = !a->on_text(a->user, a->shown.size ? a->shown.data : "", a->shown.size, list, n);
    a->shown.size = 0;
    return !a->refused;
}

/* Text of the step's tokens into a->shown. Returns how many of them belong to the answer: all, unless a stop string ended it. */
static outrider_status take_text(answer *a, const decode_emitted *e, size_t *taken, outrider_error *err)
{
    const tokenizer *t = a->s->model->tokenizer;
    for (*taken = 0; *taken < e->n && a->stop.matched < 0; ++*taken) {
        const uint32_t id = e->ids[*taken];
        if (!t || tokenizer_is_special(t, id)) continue;
        size_t size;
        const char *token = tokenizer_bytes(t, id, &size);
        a->raw.size = 0;
        if (!text_decoder_push(&a->text, token, size, &a->raw) || !stop_push(&a->stop, a->raw.data, a->raw.size, &a->shown))
            return no_text_memory(err);
    }
    return OUTRIDER_OK;
}

static void add_digests(const answer *a, const decode_emitted *e, size_t n)
{
    const outrider_session *s = a->s;
    if (!s->ids_digest) return;
    const size_t vocab = (size_t)s->model->parts[s->verifier.part].weights.config.vocab;
    for (size_t i = 0; i < n; i++) {
        const uint8_t id[4] = {(uint8_t)e->ids[i], (uint8_t)(e->ids[i] >> 8), (uint8_t)(e->ids[i] >> 16),
                               (uint8_t)(e->ids[i] >> 24)};
        digest_add(s->ids_digest, id, sizeof id);
        digest_add(s->logits_digest, s->verifier.logits + e->rows[i] * vocab, vocab * sizeof(float));
    }
}

/* Steps until the answer ends. */
static outrider_status steps(answer *a, outrider_error *err)
{
    outrider_session *s = a->s;
    for (;;) {
        decode_emitted e;
        outrider_status status = decode_step(&a->decoder, &e, err);
        if (status == OUTRIDER_CANCELLED) {
            a->result->finish = OUTRIDER_FINISH_CANCELLED;
            return OUTRIDER_OK;
        }
        if (status) return status;
        size_t taken;
        const size_t before = s->n;
        s->n = a->decoder.n;
        status = take_text(a, &e, &taken, err);
        if (status) return status;
        add_digests(a, &e, taken);
        a->result->tokens += taken;
        if (a->stop.matched >= 0) {
            a->result->finish = OUTRIDER_FINISH_STOP;
            a->result->stop_index = a->stop.matched;
            engine_session_cut(s, before + taken);
            return OUTRIDER_OK;
        }
        if (e.finished) {
            a->result->finish = e.finish;
            return OUTRIDER_OK;
        }
        if (!hand_out(a, s->n)) {
            a->result->finish = OUTRIDER_FINISH_CANCELLED;
            return OUTRIDER_OK;
        }
    }
}

static outrider_status prefill(answer *a, outrider_error *err)
{
    const size_t rows = a->o->prefill_rows && a->o->prefill_rows < PASS_ROWS ? a->o->prefill_rows : PASS_ROWS;
    const double start = clock_seconds();
    outrider_status status = decode_prefill(&a->decoder, rows, err);
    if (!status) status = decode_warm(&a->decoder, err);
    a->result->prefill_seconds = clock_seconds() - start;
    return status;
}

static outrider_status run(answer *a, outrider_error *err)
{
    outrider_status status = prefill(a, err);
    if (status == OUTRIDER_CANCELLED) {
        a->result->finish = OUTRIDER_FINISH_CANCELLED;
        return OUTRIDER_OK;
    }
    if (status) return status;
    const double start = clock_seconds();
    status = steps(a, err);
    a->result->decode_seconds = clock_seconds() - start;
    if (status) return status;
    if (a->result->finish != OUTRIDER_FINISH_STOP) {
        a->raw.size = 0;
        if (!text_decoder_flush(&a->text, &a->raw) || !stop_push(&a->stop, a->raw.data, a->raw.size, &a->shown) ||
            !stop_flush(&a->stop, &a->shown))
            return no_text_memory(err);
    }
    hand_out(a, a->s->n);
    return OUTRIDER_OK;
}

outrider_status outrider_session_generate(outrider_session *s, const outrider_generate_options *options,
                                          outrider_on_text on_text, void *user, outrider_result *result, outrider_error *err)
{
    const outrider_generate_options none = OUTRIDER_GENERATE_OPTIONS_INIT;
    outrider_result counted = {.stop_index = -1};
    answer a = {.s = s, .o = options ? options : &none, .on_text = on_text, .user = user, .result = &counted};
    outrider_status status = check_options(s, a.o, err);
    if (status) return status;
    status = stop_open(&a.stop, a.o->stop, a.o->n_stop, err);
    if (status) return status;
    /* Longest token a few dozen bytes, 17 a step: room that no step outgrows, so that the loop does not allocate. */
    if (!bytes_reserve(&a.raw, 8192) || !bytes_reserve(&a.shown, 16384) || !bytes_reserve(&a.stop.held, 8192))
        status = no_text_memory(err);
    if (!status) {
        atomic_store(&s->cancel, false);
        s->eval_rows = 0;
        begin(&a);
        status = run(&a, err);
        const uint64_t tokens = counted.tokens;
        decode_report(&a.decoder, &counted);
        counted.tokens = tokens;
    }
    stop_close(&a.stop);
    bytes_free(&a.raw);
    bytes_free(&a.shown);
    if (!status && result) *result = counted;
    return status;
}
