/* decode/step.h with lookups alone (decode/ngram.h), with lookups before a model (decode/draft_both.h), and with a source that does whatever
 * a source may do. SCRIPT doubles stand for the models; the clock is theirs, so lookups take no time. */
#include "decode/draft_both.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "decode/draft_model.h"
#include "decode/step.h"
#include "support_decode.h"

enum { CONTEXT = 3000, END = 7001 };
enum { LOOKUP, BOTH, MODEL, ANY, KINDS };

/* The true text, and where the model proposes it. */
typedef struct text {
    uint32_t ids[CONTEXT + 64];
    unsigned char right[CONTEXT + 64];
} text;

static uint32_t hash_ids(const uint32_t *ids, size_t n, uint32_t seed)
{
    uint32_t h = seed;
    for (size_t i = n > 24 ? n - 24 : 0; i < n; i++) h = (h ^ ids[i]) * 16777619U + (uint32_t)i;
    return h % 1000;
}

static bool on_text(const text *t, const uint32_t *ids, size_t n) { return memcmp(t->ids, ids, n * sizeof *ids) == 0; }

static uint32_t verifier_rule(const void *rule, const uint32_t *ids, size_t n)
{
    const text *t = rule;
    return on_text(t, ids, n) ? t->ids[n] : 300000 + hash_ids(ids, n, 1);
}

static uint32_t model_rule(const void *rule, const uint32_t *ids, size_t n)
{
    const text *t = rule;
    return on_text(t, ids, n) && t->right[n] ? t->ids[n] : 500000 + hash_ids(ids, n, 2);
}

typedef struct rig {
    text text;
    script verifier, model;
    draft_model model_state;
    ngram ngram;
    draft_both both;
    draft_source inner, source;
    int kind;
    size_t begun, settled, made, drafted;
    uint32_t proposals[OUTRIDER_MAX_DRAFT];
    bool lookup_only; /* ANY: within this step */
    uint64_t random;
    uint32_t history[CONTEXT + 64];
    length_controller length;
    decode_settings settings;
    decoder decoder;
    atomic_bool cancel;
    double clock;
} rig;

static rig shared;

/* ---- a source that may do anything: right, wrong, none, looked up or not ---- */

static void any_begin(void *self, const uint32_t *history, size_t n)
{
    rig *r = self;
    assert_memory_equal(history, r->text.ids, n * sizeof *history);
    assert_int_equal(n, r->decoder.n);
    r->lookup_only = false;
}

static outrider_status any_next(void *self, draft_proposal *out, outrider_error *err)
{
    (void)err;
    rig *r = self;
    if (test_uniform(&r->random) < 0.4) r->lookup_only = true;
    const bool right = test_uniform(&r->random) < 0.7, none = test_uniform(&r->random) < 0.1;
    out->id = none ? DRAFT_NONE : right ? r->text.ids[r->decoder.n + r->made] : 9;
    out->confidence = (float)(10 * test_uniform(&r->random));
    out->passes = r->lookup_only ? 0 : 1;
    return OUTRIDER_OK;
}

static void any_settle(void *self, size_t n) { assert_true(n <= ((rig *)self)->decoder.n); }

static size_t any_missing(const void *self, size_t n) { return (((const rig *)self)->decoder.verifies * 7 + n) % 3; }

static outrider_status any_warm(void *self, const uint32_t *history, size_t n, outrider_error *err)
{
    (void)self;
    (void)history;
    (void)n;
    (void)err;
    return OUTRIDER_OK;
}

/* ---- what stands between decoder and source, to look on ---- */

static void rig_begin(void *self, const uint32_t *history, size_t n)
{
    rig *r = self;
    r->made = 0;
    r->begun++;
    r->inner.begin(r->inner.self, history, n);
}

static outrider_status rig_next(void *self, draft_proposal *out, outrider_error *err)
{
    rig *r = self;
    assert_int_equal(r->begun, r->settled + 1);
    const size_t passes = r->model.evals;
    const outrider_status status = r->inner.next(r->inner.self, out, err);
    if (r->kind != ANY && !status) assert_int_equal(out->passes, r->model.evals - passes);
    if (!status && out->id != DRAFT_NONE) r->proposals[r->made++] = out->id;
    return status;
}

static void rig_settle(void *self, size_t n)
{
    rig *r = self;
    if (r->begun > r->settled) r->settled = r->begun;
    r->inner.settle(r->inner.self, n);
}

static size_t rig_missing(const void *self, size_t n)
{
    return ((const rig *)self)->inner.missing(((const rig *)self)->inner.self, n);
}

static outrider_status rig_warm(void *self, const uint32_t *history, size_t n, outrider_error *err)
{
    return ((rig *)self)->inner.warm(((rig *)self)->inner.self, history, n, err);
}

static double rig_clock(void *user) { return *(double *)user; }

static double row_seconds; /* of each row of a verify but the first; the first takes 1 */

/* Distinct ids: nothing repeats until a test copies something. */
static rig *rig_open(int kind, size_t prompt)
{
    rig *r = &shared;
    if (r->ngram.memory) ngram_close(&r->ngram);
    memset(r, 0, sizeof *r);
    for (size_t i = 0; i < CONTEXT + 64; i++) {
        r->text.ids[i] = (uint32_t)(10000 + i);
        r->text.right[i] = 1;
    }
    r->kind = kind;
    r->random = 99;
    r->verifier = (script){.next = verifier_rule,
                           .rule = &r->text,
                           .clock = &r->clock,
                           .seconds_per_pass = 1 - row_seconds,
                           .seconds_per_id = row_seconds};
    r->model = (script){.next = model_rule, .rule = &r->text, .clock = &r->clock, .seconds_per_pass = 0.125};
    assert_int_equal(ngram_open(&r->ngram, CONTEXT, NULL), OUTRIDER_OK);
    const draft_source model = draft_model_init(&r->model_state, script_lane(&r->model), 64, &r->cancel);
    r->inner = kind == LOOKUP ? ngram_source(&r->ngram)
               : kind == BOTH ? draft_both_init(&r->both, &r->ngram, model)
               : kind == ANY  ? (draft_source){r, any_begin, any_next, any_settle, any_missing, any_warm}
                              : model;
    r->source = (draft_source){r, rig_begin, rig_next, rig_settle, rig_missing, rig_warm};
    length_init(&r->length, OUTRIDER_MAX_DRAFT, NULL);
    r->settings = (decode_settings){.verifier = script_lane(&r->verifier),
                                    .draft = &r->source,
                                    .length = &r->length,
                                    .history = r->history,
                                    .n = prompt,
                                    .context = CONTEXT,
                                    .cancel = &r->cancel,
                                    .clock = rig_clock,
                                    .clock_user = &r->clock};
    return r;
}

static void copy(rig *r, size_t to, size_t from, size_t n)
{
    memcpy(r->text.ids + to, r->text.ids + from, n * sizeof *r->text.ids);
}

/* Runs of text that repeat, of other lengths and from other places each time, and new ids between. */
static void mix(rig *r, size_t from, uint64_t seed, size_t longest)
{
    uint64_t random = seed * 31 + 1;
    for (size_t at = from; at + longest < CONTEXT + 64;) {
        const size_t n = 1 + test_random(&random) % longest;
        if (test_random(&random) % 3 && at > n + 20) copy(r, at, test_random(&random) % (at - n), n);
        at += n;
    }
    for (size_t i = 0; i < CONTEXT; i++) r->text.right[i] = test_uniform(&random) < 0.7;
}

static void rig_start(rig *r)
{
    memcpy(r->history, r->text.ids, r->settings.n * sizeof *r->history);
    decode_start(&r->decoder, &r->settings);
    assert_int_equal(decode_prefill(&r->decoder, 64, NULL), OUTRIDER_OK);
    r->clock = 0;
    r->drafted = 0;
}

/* D1..D3, the index included; and each token is the verifier's own. */
static void check(const rig *r)
{
    const decoder *d = &r->decoder;
    assert_memory_equal(r->history, r->text.ids, d->n * sizeof *r->history);
    if (d->phase >= DECODE_RUNNING) assert_int_equal(r->verifier.n, d->n - 1);
    assert_true(r->model.n <= d->n);
    assert_memory_equal(r->model.ids, r->history, r->model.n * sizeof *r->history);
    assert_true(r->ngram.n == r->ngram.known && r->ngram.n <= d->n);
    assert_memory_equal(r->ngram.ids, r->history, r->ngram.n * sizeof *r->history);
    assert_int_equal(r->begun, r->settled);
}

static decode_emitted step(rig *r)
{
    decode_emitted out;
    const size_t passes = r->verifier.evals;
    const bool first = r->decoder.phase == DECODE_PRIMED;
    r->made = 0;
    assert_int_equal(decode_step(&r->decoder, &out, NULL), OUTRIDER_OK);
    assert_int_equal(r->verifier.evals - passes, !first);              /* D6 */
    if (!first) assert_true(r->verifier.log[passes].n <= r->made + 1); /* proposals that are none are not verified */
    r->drafted += r->made;
    check(r);
    return out;
}

static outrider_finish run(rig *r)
{
    decode_emitted out;
    do {
        out = step(r);
    } while (!out.finished);
    return out.finish;
}

static void check_counts(const rig *r)
{
    const decoder *d = &r->decoder;
    const decode_source *m = &d->sources[LENGTH_MODEL], *k = &d->sources[LENGTH_LOOKUP];
    assert_int_equal(d->emitted, 1 + d->verifies + d->accepted);
    assert_int_equal(m->proposed + k->proposed, d->proposed);
    assert_int_equal(m->accepted + k->accepted, d->accepted);
    assert_true(m->proposed <= m->drafted && k->proposed <= k->drafted);
    assert_int_equal(m->drafted + k->drafted, r->drafted);
    assert_true(m->seconds + k->seconds <= d->draft_seconds + 1e-9);
}

/* Every source, every mode of the length, texts that repeat more and less: the text stays the verifier's (check()), the counts add up. */
static void test_stream_is_plain(void **state)
{
    (void)state;
    static const uint8_t lengths[] = {16, 0, 3, 1, 0, 0, 7};
    row_seconds = 0.1;
    for (int kind = 0; kind < KINDS; kind++)
        for (uint64_t seed = 0; seed < 16; seed++) {
            rig *r = rig_open(kind, 1 + seed * 9);
            mix(r, 1, seed, 4 + seed * 8);
            if (seed % 4 == 1) length_init_random(&r->length, 16, seed);
            if (seed % 4 == 2) length_init_fixed(&r->length, 1 + seed);
            if (seed % 4 == 3) length_init_script(&r->length, lengths, sizeof lengths);
            r->settings.max_tokens = 500;
            rig_start(r);
            if (seed % 3 == 0) assert_int_equal(decode_warm(&r->decoder, NULL), OUTRIDER_OK);
            assert_int_equal(run(r), OUTRIDER_FINISH_LENGTH);
            check_counts(r);
        }
}

/* Up to the last cell of the context, and an end id within a run of lookups. */
static void test_context_and_end(void **state)
{
    (void)state;
    row_seconds = 0.1;
    const uint32_t ends[] = {END};
    for (int kind = LOOKUP; kind <= BOTH; kind++)
        for (size_t prompt = 40; prompt < 60; prompt++) {
            rig *r = rig_open(kind, prompt);
            for (size_t i = 20; i < 100; i++) r->text.ids[i] = r->text.ids[i - 20];
            length_init_fixed(&r->length, 16);
            r->settings.context = 64;
            rig_start(r);
            assert_int_equal(run(r), OUTRIDER_FINISH_CONTEXT);
            assert_int_equal(r->decoder.n, 64);
            assert_true(r->verifier.most <= 63);
            r = rig_open(kind, prompt);
            for (size_t i = 20; i < 100; i++) r->text.ids[i] = r->text.ids[i - 20];
            r->text.ids[70] = END;
            length_init_fixed(&r->length, 16);
            r->settings.ends = ends;
            r->settings.n_ends = 1;
            rig_start(r);
            assert_int_equal(run(r), OUTRIDER_FINISH_END);
            assert_int_equal(r->decoder.n, 71);
        }
}

/* Answers after the history was cut and goes on in another way. */
static void test_cut_and_rewritten(void **state)
{
    (void)state;
    row_seconds = 0.1;
    for (int kind = LOOKUP; kind <= BOTH; kind++)
        for (size_t cut = 0; cut < 12; cut++) {
            rig *r = rig_open(kind, 60);
            mix(r, 1, cut, 40);
            r->settings.max_tokens = 150;
            rig_start(r);
            run(r);
            const size_t n = cut == 0 ? 1 : cut == 11 ? r->decoder.n : cut * 19;
            r->verifier.n = r->verifier.n < n ? r->verifier.n : n;
            r->source.settle(r->source.self, n);
            mix(r, n, cut + 100, 30);
            r->settings.n = n + cut;
            rig_start(r);
            run(r);
            check_counts(r);
        }
}

/* The flag raised at any point, and passes that fail: nothing is lost, and the text goes on. */
static void test_cancel_and_failure(void **state)
{
    (void)state;
    row_seconds = 0.1;
    for (int kind = LOOKUP; kind <= BOTH; kind++)
        for (size_t at = 1; at <= 30; at++) {
            rig *r = rig_open(kind, 40);
            mix(r, 1, at, 12);
            r->settings.max_tokens = 100;
            rig_start(r);
            script *s = at % 2 && kind == BOTH ? &r->model : &r->verifier;
            s->fail_eval = s->evals + at;
            size_t failures = 0, steps = 0;
            for (decode_emitted out = {.finished = false}; !out.finished;) {
                if (++steps == at) atomic_store(&r->cancel, true);
                const size_t n = r->decoder.n;
                if (decode_step(&r->decoder, &out, NULL)) {
                    failures++;
                    assert_int_equal(r->decoder.n, n);
                    assert_int_equal(out.n, 0);
                }
                check(r);
                atomic_store(&r->cancel, false);
            }
            assert_true(failures >= 1 && failures <= 2);
            assert_int_equal(r->decoder.emitted, 100);
        }
}

static double acceptance(const decoder *d) { return (double)d->accepted / (double)d->proposed; }
static double per_verify(const decoder *d) { return (double)d->emitted / (double)d->verifies; }

/* A text that is in the prompt is written again: without a model at all, with costs unknown at first. */
static void test_copy_task(void **state)
{
    (void)state;
    static const double rows[] = {0.02, 0.05, 0.12, 0.2};
    for (size_t i = 0; i < 4; i++)
        for (int kind = LOOKUP; kind <= BOTH; kind++) {
            row_seconds = rows[i];
            rig *r = rig_open(kind, 410);
            copy(r, 400, 0, 400);
            r->settings.max_tokens = 380;
            rig_start(r);
            run(r);
            const decoder *d = &r->decoder;
            check_counts(r);
            print_message("copy, a row %.2f, %s: accepted %.3f, %.1f tokens a verify, %.2f times plain\n", rows[i],
                          kind == BOTH ? "both" : "lookup", acceptance(d), per_verify(d), 380 / r->clock);
            assert_true(acceptance(d) >= 0.9);
            assert_true(per_verify(d) > 5);
            assert_true(r->clock * (i < 2 ? 4 : 2) < 380);
            if (kind == LOOKUP) assert_true(d->drafted_steps == 0 && r->model.evals == 0 && d->draft_seconds == 0);
            if (kind == BOTH) assert_true(r->model.evals <= 40);
        }
}

/* New text for long, or text that repeats a little and misleads, then a copy: it is noticed within a few tokens of the first three that
 * repeat, and nothing is lost until then. */
static void check_late_gain(double row, bool misled, size_t within, double gain)
{
    const size_t late = 1500;
    row_seconds = row;
    rig *r = rig_open(LOOKUP, 10);
    for (size_t i = 0; misled && i + 4 < late; i += 4) /* three ids that repeat, and then another one each time */
        for (size_t j = 0; j < 3; j++) r->text.ids[i + j] = (uint32_t)(20 + j);
    for (size_t i = 0; i < 300; i++) r->text.ids[200 + i] = (uint32_t)(40 + i);
    copy(r, late, 200, 300);
    r->settings.max_tokens = late + 300 - 10;
    rig_start(r);
    size_t found = 0;
    double clock = 0;
    for (decode_emitted out = {.finished = false}; !out.finished;) {
        out = step(r);
        if (r->decoder.n <= late) clock = r->clock;
        if (!found && r->decoder.n > late && out.n > 1) found = r->decoder.n - out.n;
    }
    print_message("late, a row %.2f, %s before: found after %zu tokens, %.4f of plain before, %.2f times plain after\n", row,
                  misled ? "misled" : "nothing", found - late, clock / (double)(late - 10), 300 / (r->clock - clock));
    assert_true(found > late && found - late <= within);
    assert_true(clock <= 1.01 * (double)(late - 10));
    assert_true((r->clock - clock) * gain <= 300);
}

static void test_late_gain_is_found(void **state)
{
    (void)state;
    for (int misled = 0; misled < 2; misled++) {
        check_late_gain(0.05, misled, 8, 7);
        check_late_gain(0.12, misled, 8, 4.5);
        check_late_gain(0.5, misled, 16, 1.6);
    }
}

/* Lookups that are always wrong, sometimes right, or right for a while only, at any price of a row: never below 0.99 of plain. */
static void test_never_below_plain(void **state)
{
    (void)state;
    static const double rows[] = {0.05, 0.12, 0.5, 0.9};
    double worst = 0;
    for (size_t i = 0; i < 4; i++)
        for (uint64_t what = 0; what < 24; what++) {
            row_seconds = rows[i];
            rig *r = rig_open(LOOKUP, 10);
            const size_t period = 4 + what % 6;
            uint64_t random = what + 5;
            for (size_t at = 0; at + period < CONTEXT; at += period)
                for (size_t j = 0; j < period; j++) {
                    const bool changes = what < 6 ? j + 1 == period : test_uniform(&random) < (double)(what / 6) * 0.12;
                    if (!changes) r->text.ids[at + j] = (uint32_t)(20 + j);
                }
            r->settings.max_tokens = 2000;
            rig_start(r);
            run(r);
            if (r->clock / 2000 > worst) worst = r->clock / 2000;
            assert_true(r->clock <= 2000 / 0.99);
        }
    print_message("never below plain: worst %.4f of plain's time\n", worst);
}

/* One step of lookups that look sure, the first `right` of which are. Returns how many were verified. */
static size_t lookup_step(length_controller *l, size_t right)
{
    length_record record = {0};
    const size_t most = length_begin(l, 16, 0);
    for (bool more = most > 0; more; record.drafted++) more = length_more_of(l, LENGTH_LOOKUP, 13);
    record.kept = length_keep(l);
    record.accepted = right < record.kept ? right : record.kept;
    while (record.matched < record.drafted && record.matched <= record.kept && record.matched < right) record.matched++;
    record.emitted = record.accepted + 1;
    record.verify_seconds = 1 + 0.5 * (double)record.kept;
    length_observe(l, &record);
    return record.kept;
}

/* Lookups that look sure and fail are muted: made and compared, not verified. Some hits in a row lift that. */
static void test_muted(void **state)
{
    (void)state;
    length_costs costs = {0};
    for (size_t w = 1; w <= OUTRIDER_MAX_ROWS; w++) costs.verify[w] = 1 + 0.5 * (double)(w - 1);
    length_controller l;
    length_init(&l, OUTRIDER_MAX_DRAFT, &costs);
    size_t steps = 0, hits = 0;
    for (size_t i = 0; i < 20; i++) lookup_step(&l, 16);
    for (; !l.lookups.muted; steps++) lookup_step(&l, 0);
    assert_true(steps <= 8);
    for (size_t i = 0; i < 100; i++) assert_int_equal(lookup_step(&l, 0), 0);
    assert_true(l.lookups.muted);
    while (l.lookups.muted) {
        assert_int_equal(lookup_step(&l, 1), 0);
        hits++;
    }
    assert_int_equal(hits, 5); /* LOSS_LIMIT / (1 - 0.5) */
    steps = 0;
    while (lookup_step(&l, 16) == 0) assert_true(++steps < 24); /* at half a pass a row, half of them must be right */
}

/* With a model: what each kind contributes is told apart, the price of a draft step is the model's own, and the model is idle where the text
 * repeats and takes in what it missed when it is asked again. */
static void test_costs_by_source(void **state)
{
    (void)state;
    row_seconds = 0.125; /* sums of such times are exact */
    rig *r = rig_open(BOTH, 310);
    uint64_t random = 3;
    for (size_t i = 0; i < CONTEXT; i++) r->text.right[i] = test_uniform(&random) < 0.75;
    copy(r, 300, 0, 200);
    copy(r, 900, 100, 150);
    r->settings.max_tokens = 1000;
    rig_start(r);
    size_t in_copies = 0, most_missing = 0;
    for (decode_emitted out = {.finished = false}; !out.finished;) {
        const size_t n = r->decoder.n, evals = r->model.evals, missing = n - r->model.n;
        out = step(r);
        if ((n > 310 && n < 500) || (n > 915 && n < 1050)) in_copies += r->model.evals - evals;
        if (r->model.evals > evals && missing > most_missing) most_missing = missing;
    }
    check_counts(r);
    const decode_source *m = &r->decoder.sources[LENGTH_MODEL], *k = &r->decoder.sources[LENGTH_LOOKUP];
    print_message("model: %zu of %zu accepted; lookup: %zu of %zu; %.2f times plain\n", (size_t)m->accepted,
                  (size_t)m->proposed, (size_t)k->accepted, (size_t)k->proposed, 1000 / r->clock);
    assert_true(r->length.draft.seen > 50 && r->length.draft.value == 0.125);
    assert_true(m->seconds == 0.125 * (double)r->decoder.drafted_steps && k->seconds == 0);
    assert_true(m->accepted > 300 && k->accepted > 200);
    assert_true(k->accepted * 10 >= k->proposed * 9);
    assert_true(m->accepted * 10 <= m->proposed * 9);
    assert_true(in_copies <= 8);
    assert_true(most_missing >= 150);
    const length_chances *c = r->length.of;
    assert_true(c[LENGTH_MODEL].overall.trials > 0 && c[LENGTH_LOOKUP].overall.trials > 0);

    /* Lookups alone leave no trace in what is known of models, and the other way round. */
    const length_chances none = {0};
    r = rig_open(LOOKUP, 100);
    mix(r, 1, 5, 60);
    r->settings.max_tokens = 500;
    rig_start(r);
    run(r);
    assert_memory_equal(&r->length.of[LENGTH_MODEL], &none, sizeof none);
    assert_true(r->length.draft.seen == 0 && r->length.take_in.seen == 0 && r->decoder.sources[LENGTH_MODEL].drafted == 0);
    r = rig_open(MODEL, 100);
    mix(r, 1, 5, 60);
    r->settings.max_tokens = 500;
    rig_start(r);
    run(r);
    assert_memory_equal(&r->length.of[LENGTH_LOOKUP], &none, sizeof none);
    assert_int_equal(r->decoder.sources[LENGTH_LOOKUP].drafted, 0);
}

/* Against the same text with each source alone: both together are at least about as good as the better one, and better where parts
 * repeat and parts do not. */
static void test_better_together(void **state)
{
    (void)state;
    row_seconds = 0.12;
    for (int text = 0; text < 3; text++) {
        double clock[3];
        for (int kind = LOOKUP; kind <= MODEL; kind++) {
            rig *r = rig_open(kind, 300);
            uint64_t random = 17;
            if (text == 1) mix(r, 1, 4, 100);
            if (text == 2) copy(r, 290, 0, 290), copy(r, 580, 0, 290), copy(r, 870, 0, 290);
            for (size_t i = 0; i < CONTEXT; i++) r->text.right[i] = test_uniform(&random) < 0.75;
            r->settings.max_tokens = 800;
            rig_start(r);
            run(r);
            clock[kind] = r->clock;
        }
        print_message("text %d: lookup %.2f, model %.2f, both %.2f times plain\n", text, 800 / clock[LOOKUP],
                      800 / clock[MODEL], 800 / clock[BOTH]);
        const double best = clock[LOOKUP] < clock[MODEL] ? clock[LOOKUP] : clock[MODEL];
        assert_true(clock[BOTH] <= best / (text == 1 ? 1.1 : 0.95));
    }
}

/* While a model's drafts are off for good, lookups go on. */
static void test_lookups_while_the_model_is_off(void **state)
{
    (void)state;
    row_seconds = 0.12;
    rig *r = rig_open(BOTH, 10);
    memset(r->text.right, 0, sizeof r->text.right);
    copy(r, 800, 300, 200);
    r->settings.max_tokens = 1200;
    rig_start(r);
    while (r->decoder.n < 800) step(r);
    assert_false(r->length.on);
    assert_true(r->clock <= 1.01 * 800);
    const double clock = r->clock;
    while (r->decoder.n < 1000) step(r);
    assert_true((r->clock - clock) * 2 < 200);
    assert_int_equal(r->decoder.sources[LENGTH_MODEL].accepted, 0);
    assert_true(r->decoder.sources[LENGTH_LOOKUP].accepted > 150);
    ngram_close(&r->ngram);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream_is_plain),
        cmocka_unit_test(test_context_and_end),
        cmocka_unit_test(test_cut_and_rewritten),
        cmocka_unit_test(test_cancel_and_failure),
        cmocka_unit_test(test_copy_task),
        cmocka_unit_test(test_late_gain_is_found),
        cmocka_unit_test(test_never_below_plain),
        cmocka_unit_test(test_muted),
        cmocka_unit_test(test_costs_by_source),
        cmocka_unit_test(test_better_together),
        cmocka_unit_test(test_lookups_while_the_model_is_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
