/* decode/step.h over scripts: SCRIPT(T, D) is a verifier that writes T and a draft that proposes D. The numbers D1..D8 are the invariants at
 * the head of step.c. */
#include "decode/step.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "decode/draft_model.h"
#include "support_decode.h"

enum { CONTEXT = 512, END_A = 7001, END_B = 7002, DRAFT_END = 7003 };

/* The true text, position by position, and where the draft proposes it. */
typedef struct text {
    uint32_t true_ids[CONTEXT + 64];
    unsigned char right[CONTEXT + 64];
} text;

static uint32_t hash_ids(const uint32_t *ids, size_t n, uint32_t seed)
{
    uint32_t h = seed;
    for (size_t i = 0; i < n; i++) h = (h ^ ids[i]) * 16777619U + (uint32_t)i;
    return h % 1000;
}

static bool on_text(const text *t, const uint32_t *ids, size_t n) { return memcmp(t->true_ids, ids, n * sizeof *ids) == 0; }

static uint32_t verifier_rule(const void *rule, const uint32_t *ids, size_t n)
{
    const text *t = rule;
    return on_text(t, ids, n) ? t->true_ids[n] : 3000 + hash_ids(ids, n, 1);
}

static uint32_t draft_rule(const void *rule, const uint32_t *ids, size_t n)
{
    const text *t = rule;
    return on_text(t, ids, n) && t->right[n] ? t->true_ids[n] : 5000 + hash_ids(ids, n, 2);
}

/* Everything that a test needs: the two models, a source that records what the draft proposed, the decoder. */
typedef struct rig {
    text text;
    script verifier, draft;
    draft_model model;
    draft_source inner, source;
    uint32_t proposals[OUTRIDER_MAX_DRAFT];
    size_t made, begun, settled;
    uint32_t history[CONTEXT + 64];
    length_controller length;
    decode_settings settings;
    decoder decoder;
    atomic_bool cancel;
    double clock;
} rig;

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
    const outrider_status status = r->inner.next(r->inner.self, out, err);
    if (!status) r->proposals[r->made++] = out->id;
    return status;
}

static void rig_settle(void *self, size_t n)
{
    rig *r = self;
    r->settled++;
    r->inner.settle(r->inner.self, n);
}

static size_t rig_missing(const void *self, size_t n)
{
    return ((const rig *)self)->inner.missing(((const rig *)self)->inner.self, n);
}

static outrider_status rig_warm(void *self, const uint32_t *history, size_t n, outrider_error *err)
{
    rig *r = self;
    return r->inner.warm(r->inner.self, history, n, err);
}

static double rig_clock(void *user) { return *(double *)user; }

static rig shared;

/* A rig with a prompt of n ids and a draft that is always right; the length is fixed at k until a test says otherwise. */
static rig *rig_open(size_t prompt, size_t k)
{
    rig *r = &shared;
    memset(r, 0, sizeof *r);
    for (size_t i = 0; i < CONTEXT + 64; i++) {
        r->text.true_ids[i] = (uint32_t)(10 + (i * i * 7 + i) % 900);
        r->text.right[i] = 1;
    }
    r->verifier = (script){.next = verifier_rule, .rule = &r->text, .clock = &r->clock, .seconds_per_pass = 1};
    r->draft = (script){.next = draft_rule, .rule = &r->text, .clock = &r->clock, .seconds_per_pass = 0.125};
    r->inner = draft_model_init(&r->model, script_lane(&r->draft), 5, &r->cancel);
    r->source = (draft_source){r, rig_begin, rig_next, rig_settle, rig_missing, rig_warm};
    length_init_fixed(&r->length, k);
    r->settings = (decode_settings){.verifier = script_lane(&r->verifier),
                                    .draft = &r->source,
                                    .length = &r->length,
                                    .history = r->history,
                                    .n = prompt,
                                    .context = CONTEXT,
                                    .cancel = &r->cancel,
                                    .clock = rig_clock,
                                    .clock_user = &r->clock};
    memcpy(r->history, r->text.true_ids, prompt * sizeof *r->history);
    return r;
}

static void rig_start(rig *r, size_t rows)
{
    decode_start(&r->decoder, &r->settings);
    assert_int_equal(decode_prefill(&r->decoder, rows, NULL), OUTRIDER_OK);
}

/* D1..D3 in RUNNING or DONE. */
static void check_between_steps(const rig *r)
{
    const decoder *d = &r->decoder;
    assert_true(d->n <= d->s.context);
    assert_memory_equal(r->history, r->text.true_ids, d->n * sizeof *r->history);
    assert_int_equal(r->verifier.n, d->n - 1);
    assert_memory_equal(r->verifier.ids, r->history, (d->n - 1) * sizeof *r->history);
    assert_true(r->draft.n <= d->n);
    assert_memory_equal(r->draft.ids, r->history, r->draft.n * sizeof *r->history);
}

/* What a draft freshly fed history[0..n) would propose, by the rule itself. */
static void check_proposals_are_fresh(const rig *r, size_t n)
{
    uint32_t ids[CONTEXT + 64];
    memcpy(ids, r->history, n * sizeof *ids);
    for (size_t i = 0; i < r->made; i++) {
        const uint32_t fresh = draft_rule(&r->text, ids, n + i);
        assert_int_equal(r->proposals[i], fresh);
        ids[n + i] = fresh;
    }
}

static decode_emitted step(rig *r)
{
    decode_emitted out;
    const size_t n = r->decoder.n;
    r->made = 0;
    assert_int_equal(decode_step(&r->decoder, &out, NULL), OUTRIDER_OK);
    check_between_steps(r);
    check_proposals_are_fresh(r, n);
    assert_int_equal(r->decoder.n, n + out.n);
    assert_memory_equal(out.ids, r->text.true_ids + n, out.n * sizeof *out.ids);
    for (size_t i = 0; i < out.n; i++) {
        assert_int_equal(out.rows[i], i);
        assert_int_equal(r->verifier.picks[out.rows[i]], out.ids[i]); /* D5; the rows can still be read */
    }
    return out;
}

/* Runs to the end; returns the tokens emitted. */
static size_t run(rig *r, outrider_finish *finish)
{
    decode_emitted out;
    size_t all = 0;
    do {
        out = step(r);
        all += out.n;
    } while (!out.finished);
    *finish = out.finish;
    assert_int_equal(r->decoder.phase, DECODE_DONE);
    assert_int_equal(r->decoder.emitted, all);
    return all;
}

/* All (k, a), twice in a row with every pair of a, prompts of one token too. */
static void test_every_k_and_a(void **state)
{
    (void)state;
    for (size_t prompt = 1; prompt <= 9; prompt += 4)
        for (size_t k = 0; k <= 8; k++)
            for (size_t a = 0; a <= k; a++)
                for (size_t b = 0; b <= k; b++) {
                    rig *r = rig_open(prompt, k);
                    /* The first step emits position `prompt`; the next one verifies from prompt + 1 on. */
                    r->text.right[prompt + 1 + a] = 0;
                    if (a == k) r->text.right[prompt + 1 + a] = 1;
                    const size_t second = prompt + 1 + a + 1;
                    if (b < k) r->text.right[second + b] = 0;
                    rig_start(r, 64);
                    decode_emitted out = step(r);
                    assert_int_equal(out.n, 1);
                    assert_int_equal(r->verifier.evals, 1);
                    assert_int_equal(r->draft.evals, 0); /* lazy: not even the prompt */
                    out = step(r);
                    assert_int_equal(out.n, a + 1);
                    assert_int_equal(r->made, k);
                    assert_int_equal(r->verifier.evals, 2); /* D6 */
                    assert_int_equal(r->verifier.log[1].n, k + 1);
                    assert_int_equal(r->verifier.log[1].logits, k + 1);
                    /* When all were accepted the draft lacks the last proposal and the token after it; else the token only. */
                    const size_t lacks = k == 0 ? r->decoder.n : a == k ? 2 : 1;
                    assert_int_equal(r->decoder.n - r->draft.n, lacks);
                    const size_t evals = r->draft.evals;
                    out = step(r);
                    assert_int_equal(out.n, b + 1);
                    if (k) {
                        assert_int_equal(r->draft.log[evals].n, lacks); /* and takes it in with the next first proposal */
                        assert_int_equal(r->draft.evals - evals, k);
                    }
                    assert_int_equal(r->decoder.verifies, 2);
                    assert_int_equal(r->decoder.accepted, a + b);
                    assert_int_equal(r->decoder.proposed, 2 * k);
                    assert_int_equal(r->decoder.widths[k + 1], 2);
                }
}

/* Lengths at random and proposals right at random: the text stays the same, and the counts add up. */
static void test_random_runs(void **state)
{
    (void)state;
    uint64_t random = 12345;
    for (int round = 0; round < 200; round++) {
        rig *r = rig_open(1 + test_random(&random) % 40, 0);
        length_init_random(&r->length, test_random(&random) % 17, (uint64_t)round);
        const double p = test_uniform(&random);
        for (size_t i = 0; i < CONTEXT; i++) r->text.right[i] = test_uniform(&random) < p;
        r->settings.max_tokens = 1 + test_random(&random) % 300;
        rig_start(r, 1 + test_random(&random) % 9);
        outrider_finish finish;
        assert_int_equal(run(r, &finish), r->settings.max_tokens);
        assert_int_equal(finish, OUTRIDER_FINISH_LENGTH);
        outrider_result result = {0};
        decode_report(&r->decoder, &result);
        uint64_t verifies = 0, proposed = 0, accepted = 0, rows = 0;
        for (size_t w = 0; w <= OUTRIDER_MAX_ROWS; w++) verifies += result.widths[w], rows += w * result.widths[w];
        for (size_t i = 0; i < OUTRIDER_MAX_DRAFT; i++) proposed += result.proposed_at[i], accepted += result.accepted_at[i];
        assert_int_equal(result.tokens, r->settings.max_tokens);
        assert_int_equal(result.tokens, 1 + result.verifies + result.accepted);
        assert_int_equal(result.verifies, verifies);
        assert_int_equal(result.proposed, proposed);
        assert_int_equal(result.accepted, accepted);
        assert_int_equal(rows, proposed + verifies);
        assert_int_equal(result.prompt_tokens, r->settings.n);
        assert_int_equal(result.drafted_steps, r->draft.evals);
        assert_true(result.verify_seconds == (double)result.verifies);
        assert_true(result.draft_seconds == 0.125 * (double)result.drafted_steps);
    }
}

/* Without a draft and with a length of 0: the same passes, one for one, and none of the draft. */
static void test_length_0_is_plain(void **state)
{
    (void)state;
    size_t evals[2], log[2][64][3];
    for (int plain = 0; plain < 2; plain++) {
        rig *r = rig_open(20, 0);
        if (plain) {
            r->settings.draft = NULL;
            r->settings.length = NULL;
        }
        r->settings.max_tokens = 40;
        rig_start(r, 7);
        outrider_finish finish;
        assert_int_equal(run(r, &finish), 40);
        evals[plain] = r->verifier.evals;
        assert_true(evals[plain] <= 64);
        for (size_t i = 0; i < evals[plain]; i++) {
            log[plain][i][0] = r->verifier.log[i].at;
            log[plain][i][1] = r->verifier.log[i].n;
            log[plain][i][2] = r->verifier.log[i].logits;
        }
        assert_int_equal(r->draft.evals, 0);
        assert_int_equal(r->begun + r->settled, 0);
    }
    assert_int_equal(evals[0], 3 + 39); /* the first token needs no pass of its own */
    assert_int_equal(evals[1], evals[0]);
    assert_memory_equal(log[0], log[1], evals[0] * sizeof log[0][0]);
}

static void test_prefill_in_chunks(void **state)
{
    (void)state;
    for (size_t rows = 1; rows <= 24; rows++) {
        rig *r = rig_open(23, 3);
        rig_start(r, rows);
        assert_int_equal(r->verifier.evals, (23 + rows - 1) / rows);
        for (size_t i = 0; i < r->verifier.evals; i++) assert_int_equal(r->verifier.log[i].logits, i + 1 == r->verifier.evals);
        assert_int_equal(r->verifier.n, 23);
        assert_int_equal(r->decoder.prompt_tokens, 23);
        step(r);
    }
}

/* A history that is cached already in part or in full: the rest is computed, and of a full one the last id again. */
static void test_prefill_of_a_cached_history(void **state)
{
    (void)state;
    for (size_t cached = 0; cached <= 12; cached++) {
        rig *r = rig_open(12, 4);
        if (cached) r->settings.verifier.eval(&r->verifier, r->history, cached, 0, NULL);
        rig_start(r, 64);
        assert_int_equal(r->decoder.prompt_tokens, cached == 12 ? 1 : 12 - cached);
        outrider_finish finish;
        r->decoder.s.max_tokens = 30;
        assert_int_equal(run(r, &finish), 30);
    }
}

/* An end id anywhere inside, before and after accepted runs, under caps: whichever comes first. */
static void test_end_id_and_cap(void **state)
{
    (void)state;
    const uint32_t ends[] = {END_A, END_B};
    for (size_t k = 0; k <= 8; k++)
        for (size_t end = 0; end <= 19; end++)
            for (size_t cap = 1; cap <= 20; cap++) {
                rig *r = rig_open(3, k);
                r->text.true_ids[3 + end] = end % 2 ? END_A : END_B;
                r->settings.ends = ends;
                r->settings.n_ends = 2;
                r->settings.max_tokens = cap;
                rig_start(r, 64);
                outrider_finish finish;
                assert_int_equal(run(r, &finish), end + 1 <= cap ? end + 1 : cap);
                assert_int_equal(finish, end + 1 <= cap ? OUTRIDER_FINISH_END : OUTRIDER_FINISH_LENGTH);
                assert_true(r->decoder.emitted <= 1 + r->decoder.verifies + r->decoder.accepted);
                assert_true(r->verifier.most <= 3 + cap - 1); /* D4: nothing verified past the cap */
            }
}

/* max_tokens 1..20, everything accepted: exactly that many, nothing verified past the cap. */
static void test_cap_with_everything_accepted(void **state)
{
    (void)state;
    for (size_t k = 0; k <= 16; k++)
        for (size_t cap = 1; cap <= 20; cap++) {
            rig *r = rig_open(5, k);
            r->settings.max_tokens = cap;
            rig_start(r, 64);
            outrider_finish finish;
            assert_int_equal(run(r, &finish), cap);
            assert_int_equal(finish, OUTRIDER_FINISH_LENGTH);
            assert_int_equal(r->verifier.most, 5 + cap - 1);
        }
}

/* The draft's own end id ends nothing, neither proposed and rejected nor emitted by the verifier. */
static uint32_t ending_draft_rule(const void *rule, const uint32_t *ids, size_t n)
{
    return n % 3 == 0 ? DRAFT_END : draft_rule(rule, ids, n);
}

static void test_draft_end_id_ends_nothing(void **state)
{
    (void)state;
    const uint32_t ends[] = {END_A, END_B};
    rig *r = rig_open(4, 6);
    r->text.true_ids[9] = DRAFT_END; /* accepted: 9 % 3 == 0 */
    r->draft.next = ending_draft_rule;
    r->settings.ends = ends;
    r->settings.n_ends = 2;
    r->settings.max_tokens = 40;
    rig_start(r, 64);
    decode_emitted out;
    do {
        assert_int_equal(decode_step(&r->decoder, &out, NULL), OUTRIDER_OK);
        check_between_steps(r);
    } while (!out.finished);
    assert_int_equal(out.finish, OUTRIDER_FINISH_LENGTH);
    assert_int_equal(r->decoder.emitted, 40);
    assert_true(r->decoder.accepted >= 1);
}

/* A context of 64, prompts of 56..63, drafts of 6: the same ids as plain up to the last cell, never more. */
static void test_context_fills_to_the_last_cell(void **state)
{
    (void)state;
    for (size_t k = 0; k <= 16; k++)
        for (size_t prompt = 56; prompt <= 63; prompt++) {
            rig *r = rig_open(prompt, k);
            r->settings.context = 64;
            for (size_t i = 64; i < 72; i++) r->history[i] = 0xABABABAB;
            rig_start(r, 64);
            outrider_finish finish;
            assert_int_equal(run(r, &finish), 64 - prompt);
            assert_int_equal(finish, OUTRIDER_FINISH_CONTEXT);
            assert_int_equal(r->decoder.n, 64);
            assert_true(r->verifier.most <= 63 && r->draft.most <= 63); /* D4 */
            for (size_t i = 64; i < 72; i++) assert_int_equal(r->history[i], 0xABABABAB);
        }
    /* Cap and context at the same token: the cap is named; an end id goes before both. */
    rig *r = rig_open(60, 6);
    r->settings.context = 64;
    r->settings.max_tokens = 4;
    rig_start(r, 64);
    outrider_finish finish;
    assert_int_equal(run(r, &finish), 4);
    assert_int_equal(finish, OUTRIDER_FINISH_LENGTH);
    const uint32_t ends[] = {END_A};
    r = rig_open(60, 6);
    r->text.true_ids[63] = END_A;
    r->settings.context = 64;
    r->settings.ends = ends;
    r->settings.n_ends = 1;
    rig_start(r, 64);
    assert_int_equal(run(r, &finish), 4);
    assert_int_equal(finish, OUTRIDER_FINISH_END);
}

/* Lengths 6,0,0,0,6,0,6 and longer gaps: after each gap the proposals are those of a fresh draft (step() checks), what was missed is
 * taken in at once, in passes of at most 5, and a step of 0 makes no draft work. */
static void test_gaps(void **state)
{
    (void)state;
    static const uint8_t lengths[] = {6, 0, 0, 0, 6, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3};
    for (int wrong = 0; wrong < 4; wrong++) {
        rig *r = rig_open(1 + (size_t)wrong * 8, 0);
        for (size_t i = 0; i < CONTEXT; i++) r->text.right[i] = wrong == 0 || i % (size_t)(wrong + 2) != 0;
        length_init_script(&r->length, lengths, sizeof lengths);
        rig_start(r, 64);
        step(r);
        for (size_t i = 0; i < 3 * sizeof lengths; i++) {
            const size_t k = lengths[i % sizeof lengths], evals = r->draft.evals, begun = r->begun, n = r->decoder.n;
            const size_t missing = n - r->draft.n, passes = missing ? (missing + 4) / 5 : 1;
            const double clock = r->clock;
            step(r);
            assert_int_equal(r->made, k);
            assert_int_equal(r->begun - begun, k > 0);
            assert_int_equal(r->draft.evals - evals, k ? passes + k - 1 : 0);
            if (!k) assert_true(r->clock == clock + 1);
            for (size_t e = evals; e < r->draft.evals; e++) assert_int_equal(r->draft.log[e].logits, e + 1 >= evals + passes);
        }
    }
}

/* The prompt given to the draft beforehand: the first proposal finds only the last ids missing. */
static void test_warm(void **state)
{
    (void)state;
    rig *r = rig_open(23, 4);
    decode_start(&r->decoder, &r->settings);
    assert_int_equal(decode_warm(&r->decoder, NULL), OUTRIDER_OK);
    assert_int_equal(r->draft.n, 22);
    assert_int_equal(r->draft.evals, 5);
    for (size_t i = 0; i < 5; i++) assert_int_equal(r->draft.log[i].logits, 0);
    assert_int_equal(decode_prefill(&r->decoder, 64, NULL), OUTRIDER_OK);
    step(r);
    step(r);
    assert_int_equal(r->draft.log[5].n, 2);
    assert_int_equal(r->decoder.drafted_steps, 4); /* of the answer */

    r = rig_open(23, 0); /* a length of 0 makes no draft work, here neither */
    decode_start(&r->decoder, &r->settings);
    assert_int_equal(decode_warm(&r->decoder, NULL), OUTRIDER_OK);
    assert_int_equal(r->draft.evals, 0);
}

/* Confident where it is right, but for every seventh position. */
static float telling_margin(const void *rule, size_t n)
{
    const text *t = rule;
    return t->right[n] && n % 7 ? 5 : 0.1F;
}

/* A tail of low confidence is dropped. Where the first one dropped was right after all the draft keeps what the history holds. */
static void test_dropped_tail(void **state)
{
    (void)state;
    rig *r = rig_open(6, 0);
    uint64_t random = 99;
    length_costs costs = {.draft = 0.01, .take_in = 0.001};
    for (size_t w = 1; w <= OUTRIDER_MAX_ROWS; w++) costs.verify[w] = 1 + 0.4 * (double)(w - 1);
    r->verifier.seconds_per_pass = 0.6;
    r->verifier.seconds_per_id = 0.4;
    r->draft.seconds_per_pass = 0.01;
    r->draft.margin = telling_margin;
    length_init(&r->length, 16, &costs);
    for (size_t i = 0; i < CONTEXT; i++) r->text.right[i] = test_uniform(&random) < 0.8;
    rig_start(r, 64);
    size_t dropped = 0, right = 0;
    for (decode_emitted out = step(r); !out.finished;) {
        const size_t n = r->decoder.n;
        out = step(r);
        const size_t kept = r->verifier.log[r->verifier.evals - 1].n - 1;
        assert_true(kept <= r->made);
        if (kept == r->made) continue;
        dropped++;
        if (out.n == kept + 1 && out.ids[kept] == r->proposals[kept]) {
            right++;
            const size_t had = n + r->made - 1, good = n + kept + 1;
            assert_int_equal(r->draft.n, had < good ? had : good);
        }
    }
    assert_true(dropped >= 10 && right >= 3);
    assert_int_equal(r->decoder.n, CONTEXT);
    assert_int_equal(r->decoder.emitted, 1 + r->decoder.verifies + r->decoder.accepted);
}

static size_t raise_at; /* the pass, of either model, during which the flag is raised */
static outrider_status (*script_eval_plain)(void *, const uint32_t *, size_t, size_t, outrider_error *);

static outrider_status raising_eval(void *self, const uint32_t *ids, size_t n, size_t logits_rows, outrider_error *err)
{
    const outrider_status status = script_eval_plain(self, ids, n, logits_rows, err);
    if (shared.verifier.evals + shared.draft.evals == raise_at) atomic_store(&shared.cancel, true);
    return status;
}

static void raise_after(rig *r, size_t evals)
{
    script_eval_plain = r->settings.verifier.eval;
    r->settings.verifier.eval = raising_eval;
    r->model.lane.eval = raising_eval;
    raise_at = evals;
}

/* Cancelled at every pass there is: at most that pass ends, nothing is emitted by the step, and the answer can be taken up again with
 * the very same text (D7, D8). */
static void test_cancel_at_every_pass(void **state)
{
    (void)state;
    for (size_t at = 1; at <= 40; at++) {
        rig *r = rig_open(11, 4);
        for (size_t i = 0; i < CONTEXT; i++) r->text.right[i] = i % 4 != 0;
        r->settings.max_tokens = 30;
        raise_after(r, at);
        decode_start(&r->decoder, &r->settings);
        outrider_error err;
        outrider_status status = decode_prefill(&r->decoder, 3, &err);
        decode_emitted out = {.finished = false};
        while (!status && !out.finished) {
            const size_t n = r->decoder.n;
            status = decode_step(&r->decoder, &out, &err);
            if (status) assert_int_equal(r->decoder.n, n);
            if (r->decoder.phase >= DECODE_RUNNING) check_between_steps(r);
        }
        if (status) {
            assert_int_equal(status, OUTRIDER_CANCELLED);
            assert_int_equal(err.status, OUTRIDER_CANCELLED);
            assert_int_equal(r->verifier.evals + r->draft.evals, at);
            assert_int_equal(out.n, 0);
        }
        atomic_store(&r->cancel, false);
        raise_at = 0;
        if (r->decoder.phase == DECODE_COLD) assert_int_equal(decode_prefill(&r->decoder, 3, NULL), OUTRIDER_OK);
        while (r->decoder.phase != DECODE_DONE) step(r);
        assert_int_equal(r->decoder.emitted, 30);
    }
}

/* Each pass and each pick of either model fails once: the error comes out, nothing was emitted, and the text goes on unharmed. */
static void test_failure_at_every_call(void **state)
{
    (void)state;
    for (int what = 0; what < 4; what++)
        for (size_t at = 1; at <= 12; at++) {
            rig *r = rig_open(11, 4);
            for (size_t i = 0; i < CONTEXT; i++) r->text.right[i] = i % 4 != 0;
            r->settings.max_tokens = 40;
            script *s = what & 1 ? &r->draft : &r->verifier;
            *(what & 2 ? &s->fail_pick : &s->fail_eval) = at;
            decode_start(&r->decoder, &r->settings);
            outrider_error err;
            size_t failures = 0;
            while (decode_prefill(&r->decoder, 3, &err)) failures++;
            for (decode_emitted out = {.finished = false}; !out.finished;) {
                const size_t n = r->decoder.n;
                if (decode_step(&r->decoder, &out, &err)) {
                    assert_int_equal(err.status, OUTRIDER_FAILURE);
                    assert_int_equal(r->decoder.n, n);
                    assert_int_equal(out.n, 0);
                    failures++;
                }
                if (r->decoder.phase >= DECODE_RUNNING) check_between_steps(r);
            }
            assert_int_equal(failures, 1);
            assert_int_equal(r->decoder.emitted, 40);
        }
}

/* A second answer over the same models after the history grew, and after it was cut. */
static void test_next_answer_goes_on(void **state)
{
    (void)state;
    rig *r = rig_open(9, 5);
    r->settings.max_tokens = 17;
    rig_start(r, 64);
    outrider_finish finish;
    run(r, &finish);
    for (size_t i = 0; i < 6; i++) r->history[r->decoder.n + i] = r->text.true_ids[r->decoder.n + i]; /* pushed */
    r->settings.n = r->decoder.n + 6;
    rig_start(r, 64);
    assert_int_equal(r->decoder.prompt_tokens, 7); /* the pending id, too */
    assert_int_equal(run(r, &finish), 17);
    r->settings.n = 12;
    r->settings.verifier.truncate(&r->verifier, 12);
    r->source.settle(r->source.self, 12);
    rig_start(r, 64);
    assert_int_equal(r->decoder.prompt_tokens, 1);
    assert_int_equal(run(r, &finish), 17);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_k_and_a),
        cmocka_unit_test(test_random_runs),
        cmocka_unit_test(test_length_0_is_plain),
        cmocka_unit_test(test_prefill_in_chunks),
        cmocka_unit_test(test_prefill_of_a_cached_history),
        cmocka_unit_test(test_end_id_and_cap),
        cmocka_unit_test(test_cap_with_everything_accepted),
        cmocka_unit_test(test_draft_end_id_ends_nothing),
        cmocka_unit_test(test_context_fills_to_the_last_cell),
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_warm),
        cmocka_unit_test(test_dropped_tail),
        cmocka_unit_test(test_cancel_at_every_pass),
        cmocka_unit_test(test_failure_at_every_call),
        cmocka_unit_test(test_next_answer_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
