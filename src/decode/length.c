/* The length controller.
 *
 * Costs. V(w) is the time of a verify of w rows, D of a draft step, F of one missed id that the draft takes in along with others. Each
 * follows the median of the last LENGTH_RAW measurements with a window of COST_WINDOW, so that one outlier of any size (two of five, even)
 * has no weight and a slow phase of the machine is followed within some twenty steps; of the first two measurements the lower counts, since
 * the first pass of a width is often slow and nothing makes one too fast. A calibration counts as one. Widths not measured lie
 * on the line between their measured neighbours; beyond the widest one the last measured slope goes on; with one width
 * measured SHAPE_SLOPE per row is assumed, dearer than what memory-bound models show, so that widths are tried upwards
 * from the narrow end. When an established cost moves, all costs that were not measured for STALE_STEPS move with it: a machine that gets
 * slower does so for both models and all widths, and what matters here are ratios. To keep V(1), which everything is compared with, from
 * resting on that for long, a plain step is made ANCHOR_FIRST steps after the first, then at doubled distances up to
 * ANCHOR_LAST: at three tokens a step that costs well under 1 % of the gain.
 *
 * Acceptance. A proposal's confidence c (distance of the draft's best logit from the second) falls in one of LENGTH_BUCKETS buckets. With
 * prior q(c) (BUCKET_PRIOR, roughly what a small model of the same family shows), R = overall (hits + w) / (predicted by the priors + w), and
 * the bucket's faded hits h of n trials:
 *     p(c) = (h + BUCKET_WEIGHT * min(q(c) * R, .98)) / (n + BUCKET_WEIGHT)
 * so that buckets without data follow the draft's general quality. chance of proposal i = p(c_i) times (hits + w) / (predicted + w) of its
 * position. Proposals not made yet have no confidence: they have ahead[i], the plain acceptance at their position, in which a
 * position not reached lately takes over the one before. All of this looks only at proposals before which everything was right, the
 * others say nothing; and it fades with steps, seen or not (QUICK_FADE where the answer must be quick, SLOW_FADE where
 * data is thin), lest a position that is not reached any more keeps the opinion of better times.
 *
 * How many. Let r be the yield in tokens a second that drafts reach (at least plain's, 1 / V(1)). A step that goes on is worth it when what it
 * adds in tokens exceeds r times what it adds in time: maximising tokens - r * time step by step with the r that results maximises the long-run
 * yield (the usual renewal argument; maximising each step's own ratio does not, if steps differ). With P_i the product of the chances of
 * 1..i, another proposal is made when for some j >= 1
 *     sum_{i<=made+j} P_i - r * (V(made + j + 1) + j * D)  >  the most of  sum_{i<=m} P_i - r * V(m + 1)  over m <= made
 * (several, because V may be a staircase), and m of those made are verified where sum_{i<=m} P_i - r * V(m + 1) is largest: a
 * tail of low confidence is dropped. The verifier's choice after m also judges the first one dropped, so dropping does not blind.
 *
 * On or off. The expected gain of drafting is the best of
 *     (1 + sum_{i<=k} of products of ahead) / (k * D + V(k + 1)) * V(1),  k = 1..max, and
 *     the same for: make one proposal, verify it only if its confidence makes it worth while.
 * Drafts go on when that is above 1 + bar (BAR_FIRST; doubled up to BAR_LAST each time that drafts went off having cost time, halved when they
 * had paid: at break-even chance alone would switch again and again). `loss` adds up what steps with drafts take beyond plain ones and
 * never goes below 0 (a CUSUM: the loss since it last was even). Drafts go off when it is above
 *     LOSS_LEAST plain steps and the expected gain is below OFF_GAIN, or
 *     LOSS_LIMIT plain steps and the measured yield is below plain, or
 *     twice that and the yield of the last dozen steps is below plain (drafts turned bad after a long good time).
 *
 * Probes. While off, no draft work is done but for probes: one proposal, which is compared with the verifier's choice and verified only if it is
 * likely enough to pay, so that a failed probe costs D + F * (missing - 1). They are paid from an account: each token emitted adds
 * PROBE_SHARE * V(1), each step with drafts subtracts what it took beyond (adds what it took less than) plain steps for the tokens that it
 * emitted. It starts with ACCOUNT_FIRST, holds at most ACCOUNT_MOST (a good time pays for finding the next one) and forgives below
 * ACCOUNT_LEAST plain steps. While it is negative drafts stay off, so losses of all kinds are paid back before more is
 * spent, and the whole stays within PROBE_SHARE of plain time plus about ACCOUNT_FIRST + LOSS_LIMIT plain steps: within 1 % from 1,000 tokens on.
 * After a hit the next step probes again, after a miss the distance grows by half from GAP_FIRST to GAP_LAST tokens. What was learnt before a
 * probe is discounted by PROBE_FADE, for probes are far apart in tokens. So drafts that turn good are noticed, when the account is not in debt, within
 *     max(GAP_LAST, D / (PROBE_SHARE * V(1) - F)) + 4 tokens,
 * and never when F >= PROBE_SHARE * V(1): then even keeping up with the history costs more than may be spent (but for what the account
 * holds). At D = 0.09, F = 0.002 (an 8B model with a 0.6B draft) that is 36 tokens. When no verify of more than one row was measured for
 * TIMING_TOKENS, a probe is verified in any case, unless two rows are believed to cost so much that the account would fall below ACCOUNT_LEAST: a
 * calibration, or times measured under load, can be wrong.
 *
 * Lookups. A proposal that took no pass (LENGTH_LOOKUP) has chances of its own and D = 0, and all of the above about on, off and probes is about
 * models only. A step that can begin with a lookup always makes one: it costs nothing, and how many to verify is decided as above,
 * with the r of such steps when that is larger (r counts a model's yield only once it was measured). Those not verified are judged by
 * the verifier's choice all the same, so every step is a probe, and since evidence fades twice as fast as a model's, a late gain is
 * acted upon within a few hits. `loss` is kept of these steps, too; at LOSS_LIMIT plain steps lookups are muted, and verified again once runs of
 * right ones would have brought the loss back to 0: at 0.12 a row after three in a row. Anchors are lookups that are not
 * verified, and the verify of TIMING_TOKENS takes one.
 */
#include "decode/length.h"

#include <string.h>

#include "base/error.h"

static const double COST_WINDOW = 8;  /* measurements */
static const double FIRST_LIMIT = 4;  /* a width's first measurement counts as at most so many times what was expected */
static const double COST_STEP = 0.25; /* largest move of a cost at once, as a share */
static const uint64_t STALE_STEPS = 24;
static const double SHAPE_SLOPE = 0.3;  /* of V(1), per row */
static const double DRAFT_SHARE = 0.15; /* D and F as shares of V(1) while unknown */
static const double TAKE_IN_SHARE = 0.003;
static const uint64_t ANCHOR_FIRST = 16, ANCHOR_LAST = 256;

static const float BUCKET_EDGE[LENGTH_BUCKETS - 1] = {0.25F, 0.5F, 1, 1.5F, 2, 3, 4, 6, 8, 12};
static const double BUCKET_PRIOR[LENGTH_BUCKETS] = {.35, .42, .50, .58, .66, .75, .82, .89, .93, .96, .97};
static const double AHEAD_PRIOR = 0.65; /* the priors' mean over what drafts usually propose */
static const double BUCKET_WEIGHT = 5, OVERALL_WEIGHT = 2, POSITION_WEIGHT = 12, AHEAD_WEIGHT = 3;
static const double QUICK_FADE = 1 - 1.0 / 40, SLOW_FADE = 1 - 1.0 / 80; /* a step with drafts */
static const double LOOKUP_QUICK_FADE = 1 - 1.0 / 16, LOOKUP_SLOW_FADE = 1 - 1.0 / 32, LOOKUP_RATE_FADE = 1 - 1.0 / 16;
static const double RATE_FADE = 1 - 1.0 / 40, RECENT_FADE = 1 - 1.0 / 12;
static const double RATE_PRIOR = 4; /* plain steps' time at the expected gain that the measured yield starts from */

static const double BAR_FIRST = 0.04, BAR_LAST = 0.4, OFF_GAIN = 0.98;
static const double LOSS_LIMIT = 2.5; /* plain steps: about twice the spread of one step's yield at 4 proposals */
static const double LOSS_LEAST = 0.75;
static const double PROBE_SHARE = 0.007; /* leaves a fifth of 1 % for what the estimates miss */
static const double ACCOUNT_FIRST = 3, ACCOUNT_MOST = 40, ACCOUNT_LEAST = -5;
static const double PROBE_FADE = 0.75;
static const uint64_t GAP_FIRST = 4, GAP_LAST = 32, TIMING_TOKENS = 1024;

/* ---- costs ---- */

/* The median of n <= LENGTH_RAW values. */
static double median(const double *values, size_t n)
{
    double sorted[LENGTH_RAW];
    for (size_t i = 0; i < n; i++) {
        size_t at = i;
        for (; at > 0 && sorted[at - 1] > values[i]; at--) sorted[at] = sorted[at - 1];
        sorted[at] = values[i];
    }
    return sorted[(n - 1) / 2];
}

/* Takes in one measurement and returns by what factor an established value moved (1: not at all). The lower middle counts of an
 * even number: of two, the lower. */
static double cost_observe(length_cost *c, double x, uint64_t step)
{
    if (!(x >= 0)) return 1;
    const double old = c->value;
    memmove(c->raw + 1, c->raw, sizeof c->raw - sizeof *c->raw);
    c->raw[0] = x;
    c->at = step;
    if (c->seen < 1000) c->seen++;
    const double middle = median(c->raw, c->seen < LENGTH_RAW ? c->seen : LENGTH_RAW);
    if (c->seen <= LENGTH_RAW) {
        c->value = middle;
        return 1;
    }
    const double move = (middle - old) / COST_WINDOW;
    c->value += move < COST_STEP * old ? move : COST_STEP * old;
    return old > 0 ? c->value / old : 1;
}

static void cost_scale(length_cost *c, double factor, uint64_t step)
{
    if (c->seen == 0 || c->at + STALE_STEPS > step) return;
    c->value *= factor;
    for (size_t i = 0; i < LENGTH_RAW; i++) c->raw[i] *= factor;
}

double length_verify_cost(const length_controller *l, size_t rows)
{
    ensure(rows >= 1 && rows <= OUTRIDER_MAX_ROWS);
    const length_cost *v = l->verify;
    if (v[rows].seen) return v[rows].value;
    size_t below = rows, above = rows, before;
    while (below > 0 && !v[below].seen) below--;
    while (above <= OUTRIDER_MAX_ROWS && !v[above].seen) above++;
    if (below == 0) {
        if (above > OUTRIDER_MAX_ROWS) return 1 + SHAPE_SLOPE * (double)(rows - 1);
        return v[above].value * (1 + SHAPE_SLOPE * (double)(rows - 1)) / (1 + SHAPE_SLOPE * (double)(above - 1));
    }
    if (above <= OUTRIDER_MAX_ROWS) {
        const double t = (double)(rows - below) / (double)(above - below);
        return v[above].value < v[below].value ? v[below].value : v[below].value + t * (v[above].value - v[below].value);
    }
    for (before = below - 1; before > 0 && !v[before].seen;) before--;
    double slope = before ? (v[below].value - v[before].value) / (double)(below - before)
                          : v[below].value * SHAPE_SLOPE / (1 + SHAPE_SLOPE * (double)(below - 1));
    if (slope < 0) slope = 0;
    return v[below].value + slope * (double)(rows - below);
}

static double plain_cost(const length_controller *l) { return length_verify_cost(l, 1); }

static double draft_cost(const length_controller *l) { return l->draft.seen ? l->draft.value : DRAFT_SHARE * plain_cost(l); }

static double take_in_cost(const length_controller *l, size_t missing)
{
    const double one = l->take_in.seen ? l->take_in.value : TAKE_IN_SHARE * plain_cost(l);
    return one * (double)(missing - 1);
}

static bool is_lookup(const length_controller *l, size_t i) { return l->in_source[i] == LENGTH_LOOKUP; }

static void observe_costs(length_controller *l, const length_record *r)
{
    length_cost *v = &l->verify[r->kept + 1];
    double seconds = r->verify_seconds;
    if (v->seen == 0 && l->steps > 1) {
        const double most = FIRST_LIMIT * length_verify_cost(l, r->kept + 1);
        if (seconds > most) seconds = most;
    }
    const double factor = cost_observe(v, seconds, l->steps);
    if (factor != 1) {
        for (size_t w = 1; w <= OUTRIDER_MAX_ROWS; w++) cost_scale(&l->verify[w], factor, l->steps);
        cost_scale(&l->draft, factor, l->steps);
        cost_scale(&l->take_in, factor, l->steps);
    }
    if (r->kept) l->timed_at = l->tokens;
    for (size_t i = 0; i < r->drafted && !is_lookup(l, i); i++) {
        if (i > 0 || r->missing <= 2) {
            cost_observe(&l->draft, r->draft_seconds[i], l->steps);
        } else if (r->missing >= 4) {
            const double more = r->draft_seconds[0] - draft_cost(l);
            cost_observe(&l->take_in, more > 0 ? more / (double)(r->missing - 1) : 0, l->steps);
        }
    }
}

/* ---- acceptance ---- */

size_t length_bucket(float confidence)
{
    size_t b = 0;
    while (b < LENGTH_BUCKETS - 1 && confidence >= BUCKET_EDGE[b]) b++;
    return b;
}

static double rate_value(const length_rate *r, double weight, double prior)
{
    return (r->hits + weight * prior) / (r->trials + weight);
}

static double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

static double overall_quality(const length_chances *c) { return rate_value(&c->overall, OVERALL_WEIGHT, 1); }

static double bucket_chance(const length_chances *c, size_t b)
{
    const double prior = clamp(BUCKET_PRIOR[b] * overall_quality(c), 0, 0.98);
    return rate_value(&c->bucket[b], BUCKET_WEIGHT, prior);
}

static double proposal_chance(const length_chances *c, size_t b, size_t i)
{
    return clamp(bucket_chance(c, b) * rate_value(&c->position[i], POSITION_WEIGHT, 1), 0.005, 0.995);
}

/* ahead[0..max): chances of proposals whose confidence is not known. */
static void ahead_chances(const length_chances *c, double chance[OUTRIDER_MAX_DRAFT])
{
    double before = clamp(AHEAD_PRIOR * overall_quality(c), 0, 0.98);
    for (size_t i = 0; i < OUTRIDER_MAX_DRAFT; i++) {
        before = clamp(rate_value(&c->ahead[i], AHEAD_WEIGHT, before), 0.005, 0.995);
        chance[i] = before;
    }
}

static void rate_fade(length_rate *r, double fade)
{
    r->hits *= fade;
    r->trials *= fade;
}

/* Fades all evidence: with each step with drafts, observed there or not, so that positions and buckets that are not reached any more do not
 * keep the opinion of better times. */
static void fade_chances(length_chances *c, double quick, double slow)
{
    rate_fade(&c->overall, quick);
    for (size_t i = 0; i < LENGTH_BUCKETS; i++) {
        rate_fade(&c->bucket[i], slow);
        c->first[i] *= slow;
    }
    for (size_t i = 0; i < OUTRIDER_MAX_DRAFT; i++) {
        rate_fade(&c->position[i], slow);
        rate_fade(&c->ahead[i], quick);
    }
}

static void rate_add(length_rate *r, double hit, double trial)
{
    r->hits += hit;
    r->trials += trial;
}

static void observe_chances(length_controller *l, const length_record *r)
{
    if (r->drafted == 0) return;
    if (!is_lookup(l, 0)) fade_chances(&l->of[LENGTH_MODEL], QUICK_FADE, SLOW_FADE);
    if (is_lookup(l, r->drafted - 1)) fade_chances(&l->of[LENGTH_LOOKUP], LOOKUP_QUICK_FADE, LOOKUP_SLOW_FADE);
    l->of[l->in_source[0]].first[l->in_bucket[0]]++;
    for (size_t i = 0; i < r->drafted && i <= r->matched && i <= r->kept; i++) {
        const double hit = i < r->matched ? 1 : 0;
        const size_t b = l->in_bucket[i];
        length_chances *c = &l->of[l->in_source[i]];
        rate_add(&c->position[i], hit, bucket_chance(c, b));
        rate_add(&c->overall, hit, BUCKET_PRIOR[b]);
        rate_add(&c->bucket[b], hit, 1);
        rate_add(&c->ahead[i], hit, 1);
    }
}

/* ---- gain ---- */

double length_gain(const length_controller *l)
{
    const length_chances *c = &l->of[LENGTH_MODEL];
    double chance[OUTRIDER_MAX_DRAFT], best = 0, product = 1, tokens = 1;
    ahead_chances(c, chance);
    const double plain = plain_cost(l), draft = draft_cost(l);
    for (size_t k = 1; k <= l->max; k++) {
        product *= chance[k - 1];
        tokens += product;
        const double gain = tokens * plain / ((double)k * draft + length_verify_cost(l, k + 1));
        if (gain > best) best = gain;
    }
    double all = 0, yield = 1, time = plain + draft;
    const double dearer = l->max ? length_verify_cost(l, 2) - plain : 0;
    for (size_t b = 0; b < LENGTH_BUCKETS; b++) all += c->first[b];
    if (l->max == 0 || all < 4) return best;
    for (size_t b = 0; b < LENGTH_BUCKETS; b++) {
        const double p = proposal_chance(c, b, 0);
        if (p * plain <= dearer) continue;
        yield += c->first[b] / all * p;
        time += c->first[b] / all * dearer;
    }
    return yield * plain / time > best ? yield * plain / time : best;
}

/* Yield of the steps with drafts relative to plain, starting from the expected gain. */
static double measured_gain(const length_controller *l, double expected)
{
    const double plain = plain_cost(l);
    return (l->rate_tokens + RATE_PRIOR * expected) * plain / (l->rate_seconds + RATE_PRIOR * plain);
}

/* Who made the last proposal, and so is likely to make the next. */
static length_source last_source(const length_controller *l) { return l->made ? l->in_source[l->made - 1] : LENGTH_MODEL; }

/* r at the head: tokens a second. */
static double worth_of_time(const length_controller *l)
{
    const double plain = plain_cost(l);
    const bool lookup = last_source(l) == LENGTH_LOOKUP;
    double gain = 1;
    if (l->on && (!lookup || l->rate_seconds > 0)) {
        gain = measured_gain(l, length_gain(l));
        if (gain < 1) gain = 1;
    }
    if (lookup) {
        const length_lookups *k = &l->lookups;
        const double measured = (k->tokens + RATE_PRIOR) * plain / (k->seconds + RATE_PRIOR * plain);
        if (measured > gain) gain = measured;
    }
    return gain / plain;
}

/* The number of proposals to keep of those made, and what that is worth: tokens less r times the verify's time. */
static size_t best_kept(const length_controller *l, double r, double *worth)
{
    double product = 1, tokens = 0;
    size_t best = 0;
    *worth = -r * plain_cost(l);
    for (size_t m = 1; m <= l->made; m++) {
        product *= l->chance[m - 1];
        tokens += product;
        const double w = tokens - r * length_verify_cost(l, m + 1);
        if (w <= *worth) continue;
        *worth = w;
        best = m;
    }
    return best;
}

static bool next_is_worth(const length_controller *l)
{
    double chance[OUTRIDER_MAX_DRAFT], worth, product = 1, tokens = 0;
    const length_source source = last_source(l);
    ahead_chances(&l->of[source], chance);
    const double r = worth_of_time(l), draft = source == LENGTH_LOOKUP ? 0 : draft_cost(l);
    best_kept(l, r, &worth);
    for (size_t i = 0; i < l->made; i++) tokens += product *= l->chance[i];
    for (size_t k = l->made; k < l->limit; k++) {
        tokens += product *= chance[k];
        if (tokens - r * (length_verify_cost(l, k + 2) + (double)(k + 1 - l->made) * draft) > worth) return true;
    }
    return false;
}

/* ---- on, off, probes ---- */

static void turn(length_controller *l, bool on)
{
    if (l->on == on) return;
    if (!on) {
        const bool paid = l->rate_tokens * plain_cost(l) >= l->rate_seconds;
        l->bar = clamp(paid ? l->bar / 2 : l->bar * 2, BAR_FIRST, BAR_LAST);
        l->gap = GAP_FIRST;
        l->probe_at = l->tokens;
    }
    l->on = on;
    l->switches++;
    l->loss = 0;
    l->rate_tokens = l->rate_seconds = l->recent_tokens = l->recent_seconds = 0;
}

/* Books a step that began with a lookup and returns what it took beyond plain steps. Of a lookup that was not verified it is known
 * whether it would have been right; a run of such as a verify of one more row each would have found it decides when they are verified
 * again. */
static double observe_lookups(length_controller *l, const length_record *r)
{
    length_lookups *k = &l->lookups;
    const double plain = plain_cost(l), most = LOSS_LIMIT * plain;
    const double time = length_verify_cost(l, r->kept + 1), over = time - (double)r->emitted * plain;
    k->tokens = k->tokens * LOOKUP_RATE_FADE + (double)r->emitted;
    k->seconds = k->seconds * LOOKUP_RATE_FADE + time;
    if (r->kept) {
        k->run = 0;
        k->loss = clamp(k->loss + over, 0, most);
        if (k->loss == most) k->muted = true;
        return over;
    }
    const double row = length_verify_cost(l, k->run + 2) - length_verify_cost(l, k->run + 1);
    if (k->muted) k->loss = clamp(k->loss + row - (r->matched ? plain : 0), 0, most);
    if (k->loss == 0) k->muted = false;
    k->run = r->matched && k->run + 1 < OUTRIDER_MAX_DRAFT ? k->run + 1 : 0;
    return over;
}

/* Books what a step cost beyond plain steps for the same tokens, by the estimates and not by the clock: an outlier is not the draft's fault. */
static void observe_gain(length_controller *l, const length_record *r)
{
    const double plain = plain_cost(l);
    double over = 0;
    if (r->drafted && is_lookup(l, 0)) {
        over = observe_lookups(l, r);
    } else if (r->drafted) {
        size_t steps = 0;
        while (steps < r->drafted && !is_lookup(l, steps)) steps++;
        const double time = (double)steps * draft_cost(l) + length_verify_cost(l, r->kept + 1);
        over = time - (double)r->emitted * plain;
        l->rate_tokens = l->rate_tokens * RATE_FADE + (double)r->emitted;
        l->rate_seconds = l->rate_seconds * RATE_FADE + time;
        l->recent_tokens = l->recent_tokens * RECENT_FADE + (double)r->emitted;
        l->recent_seconds = l->recent_seconds * RECENT_FADE + time;
        l->loss += over;
        if (l->loss < 0) l->loss = 0;
        over += take_in_cost(l, r->missing);
    }
    l->account =
        clamp(l->account + PROBE_SHARE * plain * (double)r->emitted - over, ACCOUNT_LEAST * plain, ACCOUNT_MOST * plain);
}

static void decide(length_controller *l, const length_record *r)
{
    const double plain = plain_cost(l);
    if (r->drafted && is_lookup(l, 0)) return;
    if (!l->on) {
        if (r->drafted && length_gain(l) > 1 + l->bar && l->account >= 0) turn(l, true);
        return;
    }
    const double expected = length_gain(l), measured = measured_gain(l, expected);
    const bool losing = l->recent_tokens * plain < l->recent_seconds;
    if ((expected < OFF_GAIN && l->loss > LOSS_LEAST * plain) || (measured < 1 && l->loss > LOSS_LIMIT * plain) ||
        (losing && l->loss > 2 * LOSS_LIMIT * plain))
        turn(l, false);
}

static bool probe_is_due(length_controller *l, size_t missing)
{
    if (l->tokens < l->probe_at + l->gap) return false;
    const double plain = plain_cost(l);
    const double silent = draft_cost(l) + take_in_cost(l, missing);
    const double timed = silent + length_verify_cost(l, 2) - plain;
    l->timing = l->tokens >= l->timed_at + TIMING_TOKENS && l->account - timed >= ACCOUNT_LEAST * plain;
    return l->account >= silent;
}

static bool anchor_is_due(const length_controller *l)
{
    const length_cost *v = &l->verify[1];
    if (v->seen == 0) return true;
    const uint64_t apart = v->seen > 5 ? ANCHOR_LAST : ANCHOR_FIRST << (v->seen - 1);
    return l->steps >= v->at + (apart < ANCHOR_LAST ? apart : ANCHOR_LAST);
}

/* ---- the interface ---- */

static void cost_start(length_cost *c, double value)
{
    if (value > 0) *c = (length_cost){value, {value}, 1, 0};
}

void length_init(length_controller *l, size_t max, const length_costs *start)
{
    ensure(max <= OUTRIDER_MAX_DRAFT);
    *l = (length_controller){.mode = LENGTH_DYNAMIC, .max = max, .bar = BAR_FIRST, .gap = 1};
    if (start) {
        for (size_t w = 1; w <= OUTRIDER_MAX_ROWS; w++) cost_start(&l->verify[w], start->verify[w]);
        cost_start(&l->draft, start->draft);
        cost_start(&l->take_in, start->take_in);
    }
    l->account = ACCOUNT_FIRST * plain_cost(l);
    l->on = max > 0 && length_gain(l) > 1;
}

void length_init_fixed(length_controller *l, size_t k)
{
    ensure(k <= OUTRIDER_MAX_DRAFT);
    *l = (length_controller){.mode = LENGTH_FIXED, .max = k};
}

void length_init_random(length_controller *l, size_t max, uint64_t seed)
{
    ensure(max <= OUTRIDER_MAX_DRAFT);
    *l = (length_controller){.mode = LENGTH_RANDOM, .max = max, .random = seed};
}

void length_init_script(length_controller *l, const uint8_t *lengths, size_t n)
{
    *l = (length_controller){.mode = LENGTH_SCRIPT, .script = lengths, .script_n = n};
    ensure(n >= 1);
    for (size_t i = 0; i < n; i++) {
        ensure(lengths[i] <= OUTRIDER_MAX_DRAFT);
        if (lengths[i] > l->max) l->max = lengths[i];
    }
}

/* SplitMix64: every seed is good, and one step gives 64 mixed bits. */
static uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

/* A lookup is made in any case: it costs nothing and tells how good lookups are, whether it is verified or not. */
static size_t begin_lookup(length_controller *l)
{
    const double plain = plain_cost(l), row = length_verify_cost(l, 2) - plain;
    const bool anchor = anchor_is_due(l);
    l->timing = !anchor && l->tokens >= l->timed_at + TIMING_TOKENS && l->account - row >= ACCOUNT_LEAST * plain;
    l->silent = anchor || (l->lookups.muted && !l->timing);
    return l->silent || l->timing ? 1 : l->limit;
}

static size_t begin_dynamic(length_controller *l, size_t missing)
{
    if (l->limit == 0) return 0;
    if (missing == 0) return begin_lookup(l);
    if (l->on) return anchor_is_due(l) ? 0 : l->limit;
    if (l->verify[1].seen == 0 || !probe_is_due(l, missing)) return 0;
    l->probe = true;
    fade_chances(&l->of[LENGTH_MODEL], PROBE_FADE, PROBE_FADE);
    return 1;
}

size_t length_begin(length_controller *l, size_t limit, size_t missing)
{
    l->limit = limit < l->max ? limit : l->max;
    l->made = 0;
    l->probe = l->timing = l->silent = false;
    size_t k = l->max;
    if (l->mode == LENGTH_DYNAMIC)
        k = begin_dynamic(l, missing);
    else if (l->mode == LENGTH_RANDOM)
        k = (size_t)(random_next(&l->random) % (l->max + 1));
    else if (l->mode == LENGTH_SCRIPT)
        k = l->script[l->script_at++ % l->script_n];
    if (k < l->limit) l->limit = k;
    return l->limit;
}

bool length_more_of(length_controller *l, length_source source, float confidence)
{
    ensure(l->made < l->limit && (source == LENGTH_LOOKUP || last_source(l) == LENGTH_MODEL));
    const size_t b = length_bucket(confidence);
    l->in_source[l->made] = source;
    l->in_bucket[l->made] = b;
    l->chance[l->made] = proposal_chance(&l->of[source], b, l->made);
    l->made++;
    if (l->made == l->limit) return false;
    return l->mode != LENGTH_DYNAMIC || next_is_worth(l);
}

bool length_more(length_controller *l, float confidence) { return length_more_of(l, LENGTH_MODEL, confidence); }

size_t length_keep(length_controller *l)
{
    if (l->silent) return 0;
    if (l->mode != LENGTH_DYNAMIC || l->timing) return l->made;
    double worth;
    return best_kept(l, worth_of_time(l), &worth);
}

void length_observe(length_controller *l, const length_record *r)
{
    ensure(r->drafted == l->made && r->kept <= r->drafted && r->matched <= r->drafted);
    const bool first = l->steps == 0;
    l->steps++;
    l->tokens += r->emitted;
    if (l->mode != LENGTH_DYNAMIC) {
        if (!first && l->on != (r->drafted > 0)) l->switches++;
        l->on = r->drafted > 0;
        return;
    }
    /* Seconds replace the relative costs that stood for them while nothing was measured. */
    const double unit = plain_cost(l);
    const bool unmeasured = l->verify[1].seen == 0;
    observe_costs(l, r);
    if (unmeasured) l->account *= plain_cost(l) / unit;
    observe_chances(l, r);
    if (l->probe) {
        l->probe_at = l->tokens;
        const uint64_t grown = l->gap < GAP_FIRST ? GAP_FIRST : l->gap + l->gap / 2;
        l->gap = r->matched ? 1 : grown < GAP_LAST ? grown : GAP_LAST;
    }
    observe_gain(l, r);
    decide(l, r);
}

bool length_may_draft(const length_controller *l) { return l->max > 0 && (l->mode != LENGTH_DYNAMIC || l->on); }
