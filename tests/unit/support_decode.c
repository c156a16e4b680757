#include "support_decode.h"

#include <assert.h>
#include <string.h>

static outrider_status script_eval(void *self, const uint32_t *ids, size_t n, size_t logits_rows, outrider_error *err)
{
    script *s = self;
    assert(n >= 1 && logits_rows <= n && s->n + n <= SCRIPT_CAPACITY && s->evals < SCRIPT_LOG);
    s->rows = 0;
    if (s->clock) *s->clock += s->seconds_per_pass + s->seconds_per_id * (double)n;
    s->log[s->evals].at = s->n;
    s->log[s->evals].n = n;
    s->log[s->evals].logits = logits_rows;
    if (++s->evals == s->fail_eval) return error_set(err, OUTRIDER_FAILURE, "script: eval");
    memcpy(s->ids + s->n, ids, n * sizeof *ids);
    for (size_t i = n - logits_rows; i < n; i++) {
        s->picks[s->rows] = s->next(s->rule, s->ids, s->n + i + 1);
        s->margins[s->rows++] = s->margin ? s->margin(s->rule, s->n + i + 1) : 1;
    }
    s->n += n;
    if (s->n > s->most) s->most = s->n;
    return OUTRIDER_OK;
}

static outrider_status script_pick(void *self, size_t row, uint32_t *id, float *margin, outrider_error *err)
{
    script *s = self;
    assert(row < s->rows);
    if (++s->pick_calls == s->fail_pick) return error_set(err, OUTRIDER_FAILURE, "script: pick");
    *id = s->picks[row];
    if (margin) *margin = s->margins[row];
    return OUTRIDER_OK;
}

static void script_truncate(void *self, size_t n)
{
    script *s = self;
    assert(n <= s->n);
    s->n = n;
    memset(s->ids + n, 0xEE, sizeof s->ids - n * sizeof *s->ids); /* what was cut must not be read again */
}

static size_t script_cached(const void *self) { return ((const script *)self)->n; }

lane script_lane(script *s) { return (lane){s, script_eval, script_pick, script_truncate, script_cached}; }

/* xorshift64*: not the library's generator. */
uint64_t test_random(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 0x2545F4914F6CDD1DU;
}

double test_uniform(uint64_t *state) { return (double)(test_random(state) >> 11) * 0x1p-53; }

static double noisy(const clock_table *t, double seconds, uint64_t *random)
{
    if (t->outliers > 0 && test_uniform(random) < t->outliers) return seconds * 20;
    return seconds * (1 + t->noise * test_uniform(random));
}

/* Drafts tokens at, at + 1, ... as the controller wants; adds their time to *seconds. */
static void draft_run(length_controller *l, const stream *s, const clock_table *t, size_t at, size_t limit, length_record *r,
                      double *seconds, uint64_t *random)
{
    const size_t most = length_begin(l, limit, r->missing);
    assert(most <= limit);
    for (bool more = most > 0; more;) {
        const double time = t->draft + (r->drafted ? 0 : t->take_in * (double)(r->missing - 1));
        *seconds += time;
        r->draft_seconds[r->drafted] = noisy(t, time, random);
        more = length_more(l, s->confidence[at + r->drafted++]) && r->drafted < most;
    }
    if (r->drafted) r->kept = length_keep(l);
}

run_result run_stream(length_controller *l, const stream *s, const clock_table *t, size_t watch, uint64_t seed)
{
    run_result out = {.found = SIZE_MAX};
    uint64_t random = seed | 1;
    size_t synced = 0; /* tokens that the draft has taken in; it needs all before `at` and the pending one */
    size_t in_a_row = 0, row_began = 0;
    for (size_t at = 0; at < s->n;) {
        const size_t room = s->n - at - 1;
        length_record r = {.missing = at + 1 - synced};
        draft_run(l, s, t, at, room < OUTRIDER_MAX_DRAFT ? room : OUTRIDER_MAX_DRAFT, &r, &out.seconds, &random);
        while (r.matched < r.drafted && r.matched <= r.kept && s->right[at + r.matched]) r.matched++;
        r.accepted = r.matched < r.kept ? r.matched : r.kept;
        r.emitted = r.accepted + 1;
        out.seconds += t->verify[r.kept + 1];
        r.verify_seconds = noisy(t, t->verify[r.kept + 1], &random);
        if (r.drafted) {
            const size_t has = at + r.drafted, good = at + 1 + r.matched, next = at + r.emitted;
            synced = has < good ? has : good;
            if (synced > next) synced = next;
        }
        in_a_row = r.kept ? in_a_row + 1 : 0;
        if (in_a_row == 1) row_began = at;
        at += r.emitted;
        if (row_began >= watch && in_a_row >= 8 && out.found == SIZE_MAX) out.found = row_began - watch;
        out.drafted += r.drafted;
        out.steps++;
        out.plain_steps += r.drafted == 0;
        length_observe(l, &r);
    }
    out.switches = l->switches;
    return out;
}
