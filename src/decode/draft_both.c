/* Two sources as one. The lookup's next guess is known without cost, so it is looked at before each proposal and taken when its chance is
 * at least CHANCE_SHARE of how often the model has been right lately (and at least CHANCE_LEAST): a little less, since it saves the
 * model's step. At a draft step of 0.09 and rows of 0.12 plain steps both yield the same at 0.86 of the model's rate.
 *
 * Within a step the model's proposals come first, if there are any, and once a lookup is taken the rest of the step is looked up, too: the model
 * has not seen it and would have to catch up, a cost that the length controller could not foresee. A run of lookups never lacks a next
 * one, for the text that it copies goes on; when its chance falls, the controller ends it.
 *
 * The model keeps up lazily: it takes in what it missed with its next first proposal, which missing() tells beforehand. The lookup follows
 * everything at once.
 */
#include "decode/draft_both.h"

static const double CHANCE_SHARE = 0.86, CHANCE_LEAST = 0.35;
static const double RATE_PRIOR = 0.7, RATE_WEIGHT = 4, RATE_FADE = 1 - 1.0 / 64; /* a proposal */

static bool takes_lookup(const draft_both *b, ngram_guess *guess)
{
    *guess = ngram_look(b->lookup);
    if (guess->match == 0) return false;
    if (b->by_lookup) return true;
    const double rate = (b->rate_hits + RATE_WEIGHT * RATE_PRIOR) / (b->rate_trials + RATE_WEIGHT);
    return guess->chance >= CHANCE_LEAST && guess->chance >= CHANCE_SHARE * rate;
}

/* What the history has become tells how many of the last model's proposals were right: those before the first wrong one, and that one,
 * verified or not. */
static void observe(draft_both *b, const uint32_t *history, size_t n)
{
    for (size_t i = 0; i < b->waiting && b->asked + i < n; i++) {
        const bool hit = history[b->asked + i] == b->proposals[i];
        b->rate_hits = b->rate_hits * RATE_FADE + (hit ? 1 : 0);
        b->rate_trials = b->rate_trials * RATE_FADE + 1;
        if (!hit) break;
    }
    b->waiting = 0;
}

static void both_begin(void *self, const uint32_t *history, size_t n)
{
    draft_both *b = self;
    ensure(n >= 1);
    observe(b, history, n);
    ngram_take_in(b->lookup, history, n);
    b->asked = n;
    b->history = history;
    b->n = n;
    b->model_begun = false;
    b->by_lookup = 0;
}

static outrider_status both_next(void *self, draft_proposal *out, outrider_error *err)
{
    draft_both *b = self;
    ensure(b->n >= 1);
    ngram_guess guess;
    if (takes_lookup(b, &guess)) {
        *out = (draft_proposal){guess.id, guess.confidence, 0};
        b->by_lookup++;
    } else {
        if (b->by_lookup) { /* the searches gave up on an n-gram */
            *out = (draft_proposal){DRAFT_NONE, 0, 0};
            return OUTRIDER_OK;
        }
        if (!b->model_begun) b->model.begin(b->model.self, b->history, b->n);
        b->model_begun = true;
        const outrider_status status = b->model.next(b->model.self, out, err);
        if (status || out->id == DRAFT_NONE) return status;
        ensure(b->waiting < OUTRIDER_MAX_DRAFT);
        b->proposals[b->waiting++] = out->id;
    }
    ngram_propose(b->lookup, out->id);
    return OUTRIDER_OK;
}

static void both_settle(void *self, size_t n)
{
    draft_both *b = self;
    if (n < b->asked) b->waiting = 0;
    ngram_settle(b->lookup, n);
    b->model.settle(b->model.self, n);
    b->history = NULL;
    b->n = 0;
    b->by_lookup = 0;
    b->model_begun = false;
}

/* Before begin the ids are not known; after it, the first guess is. */
static size_t both_missing(const void *self, size_t n)
{
    const draft_both *b = self;
    if (b->n != n) return 0;
    ngram_guess guess;
    return takes_lookup(b, &guess) ? 0 : b->model.missing(b->model.self, n);
}

static outrider_status both_warm(void *self, const uint32_t *history, size_t n, outrider_error *err)
{
    draft_both *b = self;
    if (n >= 1) ngram_take_in(b->lookup, history, n - 1);
    return b->model.warm(b->model.self, history, n, err);
}

draft_source draft_both_init(draft_both *b, ngram *lookup, draft_source model)
{
    *b = (draft_both){.lookup = lookup, .model = model};
    return (draft_source){b, both_begin, both_next, both_settle, both_missing, both_warm};
}
