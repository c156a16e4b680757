/* Lookup of n-grams.
 *
 * For each length L of NGRAM_LEAST..NGRAM_MOST a table holds, for every n-gram of L ids that has been taken in with an id after it, the
 * position of the id that followed its last occurrence. So the longest suffix of the text that occurred before, and its most recent
 * occurrence, are found by one search a length. Tables are open addressed: a slot holds a position, the n-gram itself is read from the ids
 * before it, so different n-grams are never mistaken for each other.
 *
 * Taking in an id at position e writes e into the slots of the n-grams that end before e and keeps what stood there (`before`). Taking it
 * out puts that back. Ids are taken out in the reverse order of taking in, so tables are at any time exactly what taking in the same ids
 * afresh would give, freed slots included: no n-gram that is still there was ever placed past a slot that becomes free, because those
 * that come later go first. Own proposals are taken in like history and taken out when settled, which lets a run of proposals go on past
 * the end of the history into itself.
 *
 * Cost. One position is one hash of at most NGRAM_MOST ids and NGRAM_LENGTHS searches of at most NGRAM_PROBES slots each, whatever
 * the history's length: with tables at most two thirds full, some two slots each as a rule. An n-gram that finds no slot within
 * NGRAM_PROBES is not kept, and not proposed after. An id of the history is looked up once; a proposal once when made
 * and once when taken out; a cut of m ids costs m positions. Nothing is allocated after ngram_open.
 *
 * Confidence. Each id of the history is first predicted, whether or not anyone asked. So the share of predictions that came true is known by
 * length of match and over the last dozen; their mean is the chance of the next one, given as the margin at which a draft model is right as often.
 */
#include "decode/ngram.h"

#include <string.h>

#include "base/memory.h"

#define NO_SLOT UINT32_MAX
enum { ROOM = OUTRIDER_MAX_DRAFT };

static const double MATCH_PRIOR[NGRAM_LENGTHS] = {.40, .55, .65, .72, .78, .85};
static const double MATCH_WEIGHT = 3, MATCH_FADE = 1 - 1.0 / 32;
static const double RECENT_WEIGHT = 2, RECENT_PRIOR = 0.5, RECENT_FADE = 1 - 1.0 / 12;

/* Chance of a draft model's proposal by margin, as a line through these points. */
static const struct {
    double chance, margin;
} SCALE[] = {{.25, 0},   {.38, .25}, {.50, .75}, {.58, 1.25}, {.66, 1.75}, {.75, 2.5},
             {.82, 3.5}, {.89, 5},   {.93, 7},   {.96, 10},   {.99, 16}};

/* ---- memory ---- */

static size_t slots_for(size_t context)
{
    size_t slots = 64;
    while (slots < (context + ROOM) / 2 * 3) slots *= 2;
    return slots;
}

size_t ngram_bytes(size_t context)
{
    return ((context + ROOM) * (1 + NGRAM_LENGTHS) + slots_for(context) * NGRAM_LENGTHS) * sizeof(uint32_t);
}

outrider_status ngram_open(ngram *g, size_t context, outrider_error *err)
{
    ensure(context >= 1 && context < NO_SLOT / 4);
    const size_t bytes = ngram_bytes(context);
    *g = (ngram){.context = context, .bytes = bytes, .slots = slots_for(context), .looked = SIZE_MAX};
    uint32_t *p = g->memory = memory_map(bytes);
    if (!p) return error_memory(err, "the index of the history", bytes);
    g->ids = p;
    p += context + ROOM;
    for (size_t i = 0; i < NGRAM_LENGTHS; i++, p += context + ROOM) g->before[i] = p;
    for (size_t i = 0; i < NGRAM_LENGTHS; i++, p += g->slots) g->table[i] = p;
    return OUTRIDER_OK;
}

void ngram_close(ngram *g)
{
    if (g->memory) memory_unmap(g->memory, g->bytes);
    *g = (ngram){0};
}

/* ---- the index ---- */

/* The slot of the last `length` ids: the one that holds their last occurrence or, when there is none, the free one that they would
 * get; NO_SLOT when neither is near enough. */
static uint32_t find(const ngram *g, size_t length, uint64_t hash)
{
    const uint32_t *table = g->table[length - NGRAM_LEAST], *ids = g->ids + g->n - length;
    const size_t mask = g->slots - 1;
    size_t slot = (size_t)(hash >> 20) & mask;
    for (size_t probe = 0; probe < NGRAM_PROBES; probe++, slot = (slot + 1) & mask) {
        const uint32_t e = table[slot];
        if (e == 0 || memcmp(g->ids + e - length, ids, length * sizeof *ids) == 0) return (uint32_t)slot;
    }
    return NO_SLOT;
}

/* Looks up position n: the slots of all n-grams that end there, and the longest that occurred before. */
static void look(ngram *g)
{
    if (g->looked == g->n) return;
    g->looked = g->n;
    g->match = 0;
    uint64_t hash = 0x9E3779B97F4A7C15U;
    for (size_t length = 1; length <= NGRAM_MOST; length++) {
        if (length <= g->n) {
            hash = (hash ^ g->ids[g->n - length]) * 0xBF58476D1CE4E5B9U;
            hash ^= hash >> 31;
        }
        if (length < NGRAM_LEAST) continue;
        const size_t i = length - NGRAM_LEAST;
        g->slot[i] = length <= g->n ? find(g, length, hash * 0x94D049BB133111EBU) : NO_SLOT;
        if (g->slot[i] == NO_SLOT || g->table[i][g->slot[i]] == 0) continue;
        g->match = length;
        g->at = g->table[i][g->slot[i]];
    }
}

static void take_in(ngram *g, uint32_t id)
{
    ensure(g->n < g->context + ROOM);
    look(g);
    for (size_t i = 0; i < NGRAM_LENGTHS; i++) {
        g->before[i][g->n] = NO_SLOT;
        if (g->slot[i] == NO_SLOT) continue;
        g->before[i][g->n] = g->table[i][g->slot[i]];
        g->table[i][g->slot[i]] = (uint32_t)g->n;
    }
    g->ids[g->n++] = id;
}

/* Looking up the position again leads to the slots that it was written into. */
static void take_out(ngram *g)
{
    g->n--;
    look(g);
    for (size_t i = 0; i < NGRAM_LENGTHS; i++) {
        const uint32_t before = g->before[i][g->n];
        if (before == NO_SLOT) continue;
        ensure(g->slot[i] != NO_SLOT && g->table[i][g->slot[i]] == g->n);
        g->table[i][g->slot[i]] = before;
    }
    g->looked = SIZE_MAX;
}

/* ---- guesses ---- */

static double rate_value(const ngram_rate *r, double weight, double prior)
{
    return (r->hits + weight * prior) / (r->trials + weight);
}

static void rate_observe(ngram_rate *r, bool hit, double fade)
{
    r->hits = r->hits * fade + (hit ? 1 : 0);
    r->trials = r->trials * fade + 1;
}

static double margin_of(double chance)
{
    const size_t points = sizeof SCALE / sizeof *SCALE;
    if (chance <= SCALE[0].chance) return SCALE[0].margin;
    for (size_t i = 1; i < points; i++) {
        if (chance >= SCALE[i].chance) continue;
        const double t = (chance - SCALE[i - 1].chance) / (SCALE[i].chance - SCALE[i - 1].chance);
        return SCALE[i - 1].margin + t * (SCALE[i].margin - SCALE[i - 1].margin);
    }
    return SCALE[points - 1].margin;
}

ngram_guess ngram_look(ngram *g)
{
    look(g);
    if (g->match == 0) return (ngram_guess){.id = DRAFT_NONE};
    const size_t i = g->match - NGRAM_LEAST;
    const double usual = rate_value(&g->by_match[i], MATCH_WEIGHT, MATCH_PRIOR[i]);
    const double chance = (usual + rate_value(&g->recent, RECENT_WEIGHT, RECENT_PRIOR)) / 2;
    return (ngram_guess){g->ids[g->at], (uint32_t)g->match, chance, (float)margin_of(chance)};
}

void ngram_take_in(ngram *g, const uint32_t *history, size_t n)
{
    ensure(n <= g->context);
    ngram_settle(g, n);
    for (; g->known < n; g->known++) {
        const uint32_t id = history[g->known];
        look(g);
        if (g->match) {
            const bool hit = g->ids[g->at] == id;
            rate_observe(&g->by_match[g->match - NGRAM_LEAST], hit, MATCH_FADE);
            rate_observe(&g->recent, hit, RECENT_FADE);
        }
        take_in(g, id);
    }
}

void ngram_propose(ngram *g, uint32_t id) { take_in(g, id); }

/* Proposals that were accepted come back with the history: only then are they known to have been right. */
void ngram_settle(ngram *g, size_t n)
{
    if (g->known > n) g->known = n;
    while (g->n > g->known) take_out(g);
}

/* ---- the source ---- */

static void source_begin(void *self, const uint32_t *history, size_t n)
{
    ngram *g = self;
    ensure(n >= 1);
    ngram_take_in(g, history, n);
    g->begun = true;
}

static outrider_status source_next(void *self, draft_proposal *out, outrider_error *err)
{
    (void)err;
    ngram *g = self;
    ensure(g->begun);
    const ngram_guess guess = ngram_look(g);
    *out = (draft_proposal){guess.id, guess.confidence, 0};
    if (guess.match) take_in(g, guess.id);
    return OUTRIDER_OK;
}

static void source_settle(void *self, size_t n)
{
    ngram *g = self;
    ngram_settle(g, n);
    g->begun = false;
}

static size_t source_missing(const void *self, size_t n)
{
    (void)self;
    (void)n;
    return 0;
}

static outrider_status source_warm(void *self, const uint32_t *history, size_t n, outrider_error *err)
{
    (void)err;
    if (n >= 1) ngram_take_in(self, history, n - 1);
    return OUTRIDER_OK;
}

draft_source ngram_source(ngram *g)
{
    return (draft_source){g, source_begin, source_next, source_settle, source_missing, source_warm};
}
