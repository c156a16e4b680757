/* The decoding cycle.
 *
 * Words: `pending` is the history's last id, which the verifier has not taken in; a step drafts proposals p1..pk after it, verifies
 * the rows [pending, p1..pk] in one pass, and gets the verifier's choices v0..vk after each of them.
 *
 * Invariants. They hold between any two calls, in the phase that is named; ensure() and the tests cite the numbers.
 *  D1  history[0..n) is what was pushed and then emitted, in order, and n <= context.
 *  D2  COLD: the verifier holds a prefix of the history.  PRIMED: it holds all n ids, and kept row 0 is the one after the last.
 *      RUNNING, DONE: it holds exactly history[0..n-1): all but the pending id.
 *  D3  The draft holds a prefix of the history.
 *  D4  Nothing is verified that could not be emitted: kept + 1 <= what the cap leaves, and n + kept + 1 <= context. (The last id that
 *      fills the context is emitted and never taken in.)
 *  D5  Every emitted id is the choice of a verifier row whose inputs are all history.
 *  D6  A step in RUNNING makes exactly one pass of the verifier, and none of the draft when length_begin says 0; so a decoder
 *      whose length stays 0 makes the very passes of one without a draft.
 *  D7  A call that does not return OK leaves n, history[0..n), the counts of tokens and D1..D3 as they were.
 *  D8  The cancel flag is read before each pass, of either model, and nowhere else.
 *
 *            decode_start          decode_prefill           decode_step             decode_step
 *     (none) ------------> COLD ------------------> PRIMED ------------> RUNNING --------------+
 *                          |  ^ cancelled, failed      |                  |   ^________________|  OK, open
 *                          +--+                        | end, cap,        | end, cap, context
 *                                                      | context          v
 *                                                      +---------------> DONE
 *
 *     transition             function           what it does
 *     (none) -> COLD         decode_start       checks what it was given; computes nothing
 *     COLD -> PRIMED         decode_prefill     takes in the history; logits of its last row
 *     COLD, PRIMED -> same   decode_warm        the draft takes in the history
 *     PRIMED -> RUNNING      step_first         emits what the prefill's last row chose: no pass
 *     RUNNING -> RUNNING     step_cycle         step_draft, step_verify, accept_run, step_commit
 *     any of these -> DONE   step_finish        an end id, else the cap, else the context, in this order
 *
 * CONTEXT: the answer ends when the history's length reaches the context size. A prompt that fills the context leaves no room for a token; whoever
 * pushes it refuses it, and decode_start asserts n < context.
 */
#include "decode/step.h"

#include <string.h>

#include "base/clock.h"

static double now(const decoder *d) { return d->s.clock ? d->s.clock(d->s.clock_user) : clock_seconds(); }

static outrider_status check_cancel(const decoder *d, outrider_error *err)
{
    if (d->s.cancel && atomic_load_explicit(d->s.cancel, memory_order_relaxed))
        return error_set(err, OUTRIDER_CANCELLED, "cancelled");
    return OUTRIDER_OK;
}

static size_t verifier_cached(const decoder *d) { return d->s.verifier.cached(d->s.verifier.self); }

void decode_start(decoder *d, const decode_settings *settings)
{
    *d = (decoder){.s = *settings, .n = settings->n, .phase = DECODE_COLD};
    ensure(d->n >= 1 && d->n < d->s.context); /* D1 */
    ensure(verifier_cached(d) <= d->n);       /* D2 */
    ensure(!d->s.draft || d->s.length);
    if (d->s.length) d->switches_before = d->s.length->switches;
}

/* Tokens that may still be emitted: at least 1 before DONE. */
static size_t room_left(const decoder *d)
{
    const size_t context = d->s.context - d->n;
    if (d->s.max_tokens == 0) return context;
    const uint64_t cap = d->s.max_tokens - d->emitted;
    return cap < context ? (size_t)cap : context;
}

outrider_status decode_prefill(decoder *d, size_t rows, outrider_error *err)
{
    ensure(d->phase == DECODE_COLD && rows >= 1);
    if (verifier_cached(d) == d->n) d->s.verifier.truncate(d->s.verifier.self, d->n - 1);
    for (size_t at; (at = verifier_cached(d)) < d->n;) {
        outrider_status status = check_cancel(d, err); /* D8 */
        if (status) return status;
        const size_t part = d->n - at < rows ? d->n - at : rows;
        status = d->s.verifier.eval(d->s.verifier.self, d->s.history + at, part, at + part == d->n, err);
        if (status) return status;
        ensure(verifier_cached(d) == at + part);
        d->prompt_tokens += part;
    }
    d->phase = DECODE_PRIMED;
    return OUTRIDER_OK;
}

outrider_status decode_warm(decoder *d, outrider_error *err)
{
    const draft_source *draft = d->s.draft;
    if (!draft || !length_may_draft(d->s.length) || d->s.max_tokens == 1) return OUTRIDER_OK;
    return draft->warm(draft->self, d->s.history, d->n, err);
}

/* Ends the answer if its last id is an end id, or the cap or the context is reached. */
static void step_finish(decoder *d, decode_emitted *out, accept_end end)
{
    out->finished = true;
    if (end == ACCEPT_END_ID)
        out->finish = OUTRIDER_FINISH_END;
    else if (d->s.max_tokens && d->emitted == d->s.max_tokens)
        out->finish = OUTRIDER_FINISH_LENGTH;
    else if (d->n == d->s.context)
        out->finish = OUTRIDER_FINISH_CONTEXT;
    else
        out->finished = false;
    d->phase = out->finished ? DECODE_DONE : DECODE_RUNNING;
}

/* Appends picks[0..emitted) to the history and rolls both caches back to it (D1..D3). The draft's ids up to the first wrong proposal are history, too. */
static void step_commit(decoder *d, decode_emitted *out, const uint32_t *picks, const accept_result *r, bool begun)
{
    ensure(r->emitted >= 1 && r->emitted <= room_left(d)); /* D4 */
    const size_t before = d->n;
    for (size_t i = 0; i < r->emitted; i++) {
        d->s.history[d->n++] = out->ids[i] = picks[i];
        out->rows[i] = i;
    }
    out->n = r->emitted;
    d->emitted += r->emitted;
    d->s.verifier.truncate(d->s.verifier.self, d->n - 1);
    ensure(verifier_cached(d) == d->n - 1); /* D2 */
    if (begun) {
        const size_t common = r->matched < r->emitted ? r->matched : r->emitted;
        d->s.draft->settle(d->s.draft->self, before + common); /* D3 */
    }
    step_finish(d, out, r->end);
}

/* PRIMED: the verifier holds the whole history and its last row waits to be read. */
static outrider_status step_first(decoder *d, decode_emitted *out, outrider_error *err)
{
    ensure(verifier_cached(d) == d->n); /* D2 */
    uint32_t pick;
    const outrider_status status = d->s.verifier.pick(d->s.verifier.self, 0, &pick, NULL, err);
    if (status) return status;
    const accept_result r = accept_run(NULL, 0, 0, &pick, room_left(d), d->s.ends, d->s.n_ends);
    step_commit(d, out, &pick, &r, false);
    return OUTRIDER_OK;
}

/* Takes in one proposal; returns whether another one is wanted. */
static bool step_propose(decoder *d, const draft_proposal *p, double seconds, uint32_t *proposals, length_record *record)
{
    const length_source source = p->passes ? LENGTH_MODEL : LENGTH_LOOKUP;
    d->sources[source].seconds += seconds;
    d->sources[source].drafted++;
    proposals[record->drafted] = p->id;
    record->draft_seconds[record->drafted++] = seconds;
    return length_more_of(d->s.length, source, p->confidence);
}

/* Proposals as many as the controller wants (D4: at most one fewer than may be emitted, since the verifier always adds one) and the source
 * has. A source that may look its first proposal up begins before the controller is asked, for only then it knows. */
static outrider_status step_draft(decoder *d, uint32_t *proposals, length_record *record, bool *begun, outrider_error *err)
{
    const draft_source *draft = d->s.draft;
    if (!draft) return OUTRIDER_OK;
    size_t limit = room_left(d) - 1;
    if (limit > OUTRIDER_MAX_DRAFT) limit = OUTRIDER_MAX_DRAFT;
    double start = now(d);
    record->missing = draft->missing(draft->self, d->n);
    if (record->missing == 0) {
        draft->begin(draft->self, d->s.history, d->n);
        *begun = true;
        record->missing = draft->missing(draft->self, d->n);
        const double end = now(d); /* no model's time, whoever proposes */
        d->draft_seconds += end - start;
        d->sources[LENGTH_LOOKUP].seconds += end - start;
        start = end;
    }
    const size_t most = length_begin(d->s.length, limit, record->missing);
    ensure(most <= limit);
    if (most == 0) return OUTRIDER_OK; /* D6 */
    if (!*begun) draft->begin(draft->self, d->s.history, d->n);
    *begun = true;
    for (bool more = true; more;) {
        draft_proposal p;
        const outrider_status status = draft->next(draft->self, &p, err);
        if (status) {
            draft->settle(draft->self, d->n); /* D3, D7 */
            return status;
        }
        const double end = now(d);
        d->draft_seconds += end - start;
        d->drafted_steps += p.passes;
        if (p.id == DRAFT_NONE) break;
        more = step_propose(d, &p, end - start, proposals, record) && record->drafted < most;
        start = end;
    }
    if (record->drafted) record->kept = length_keep(d->s.length);
    ensure(record->kept <= record->drafted);
    return OUTRIDER_OK;
}

/* One pass of the verifier over the pending id and the kept proposals, and its choices. */
static outrider_status step_verify(decoder *d, const uint32_t *proposals, length_record *record, uint32_t *picks,
                                   outrider_error *err)
{
    outrider_status status = check_cancel(d, err); /* D8 */
    if (status) return status;
    const size_t rows = record->kept + 1;
    ensure(rows <= room_left(d) && verifier_cached(d) == d->n - 1); /* D4, D2 */
    uint32_t ids[OUTRIDER_MAX_ROWS];
    ids[0] = d->s.history[d->n - 1];
    memcpy(ids + 1, proposals, record->kept * sizeof *ids);
    const double start = now(d);
    status = d->s.verifier.eval(d->s.verifier.self, ids, rows, rows, err);
    for (size_t i = 0; i < rows && !status; i++) status = d->s.verifier.pick(d->s.verifier.self, i, &picks[i], NULL, err);
    if (status) {
        if (verifier_cached(d) > d->n - 1) d->s.verifier.truncate(d->s.verifier.self, d->n - 1); /* D7 */
        return status;
    }
    record->verify_seconds = now(d) - start;
    return OUTRIDER_OK;
}

static void step_count(decoder *d, const length_record *record)
{
    d->verifies++;
    d->widths[record->kept + 1]++;
    d->verify_seconds += record->verify_seconds;
    d->proposed += record->kept;
    d->accepted += record->accepted;
    for (size_t i = 0; i < record->kept; i++) d->proposed_at[i]++;
    for (size_t i = 0; i < record->accepted; i++) d->accepted_at[i]++;
    for (size_t i = 0; i < record->kept; i++) d->sources[d->s.length->in_source[i]].proposed++;
    for (size_t i = 0; i < record->accepted; i++) d->sources[d->s.length->in_source[i]].accepted++;
}

static outrider_status step_cycle(decoder *d, decode_emitted *out, outrider_error *err)
{
    uint32_t proposals[OUTRIDER_MAX_DRAFT], picks[OUTRIDER_MAX_ROWS];
    length_record record = {.missing = 1};
    bool begun = false;
    outrider_status status = check_cancel(d, err); /* D8: before the draft's first pass, or the verifier's when there is none */
    if (status) return status;
    status = step_draft(d, proposals, &record, &begun, err);
    if (status) return status;
    status = step_verify(d, proposals, &record, picks, err);
    if (status) {
        if (begun) d->s.draft->settle(d->s.draft->self, d->n); /* D3, D7 */
        return status;
    }
    const accept_result r = accept_run(proposals, record.drafted, record.kept, picks, room_left(d), d->s.ends, d->s.n_ends);
    record.accepted = r.accepted;
    record.matched = r.matched;
    record.emitted = r.emitted;
    step_commit(d, out, picks, &r, begun);
    step_count(d, &record);
    if (d->s.draft) length_observe(d->s.length, &record);
    return OUTRIDER_OK;
}

outrider_status decode_step(decoder *d, decode_emitted *out, outrider_error *err)
{
    ensure(d->phase == DECODE_PRIMED || d->phase == DECODE_RUNNING);
    *out = (decode_emitted){.finish = OUTRIDER_FINISH_CANCELLED};
    return d->phase == DECODE_PRIMED ? step_first(d, out, err) : step_cycle(d, out, err);
}

void decode_report(const decoder *d, outrider_result *result)
{
    result->prompt_tokens = d->prompt_tokens;
    result->tokens = d->emitted;
    result->proposed = d->proposed;
    result->accepted = d->accepted;
    result->verifies = d->verifies;
    result->drafted_steps = d->drafted_steps;
    result->length_switches = d->s.length ? d->s.length->switches - d->switches_before : 0;
    memcpy(result->proposed_at, d->proposed_at, sizeof d->proposed_at);
    memcpy(result->accepted_at, d->accepted_at, sizeof d->accepted_at);
    memcpy(result->widths, d->widths, sizeof d->widths);
    result->draft_seconds = d->draft_seconds;
    result->verify_seconds = d->verify_seconds;
}
