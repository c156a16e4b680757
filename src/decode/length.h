/* How many tokens to draft. Pure: no clock, no globals, no allocation; times come in with each step's record, in any unit.
 * A step of the decoder asks in this order:
 *
 *     k = length_begin(l, limit, missing)       most that it may draft now; 0: a plain step
 *     after proposal 1..k: length_more_of(l, source, confidence)   whether another one is worth its cost (never past k)
 *     m = length_keep(l)                        how many of those drafted to verify: the rest is dropped
 *     length_observe(l, record)                 what came of it, plain steps too
 *
 * How it decides is at the head of length.c. */
#ifndef DECODE_LENGTH_H
#define DECODE_LENGTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "outrider.h"

enum { LENGTH_BUCKETS = 11, LENGTH_RAW = 5 };

typedef enum length_mode { LENGTH_DYNAMIC, LENGTH_FIXED, LENGTH_RANDOM, LENGTH_SCRIPT } length_mode;

/* Who made a proposal. Lookups take no pass and no time; what is known about the proposals of one says nothing about those of the other. In a
 * step lookups come after those of the model. */
typedef enum length_source { LENGTH_MODEL, LENGTH_LOOKUP, LENGTH_SOURCES } length_source;

/* What passes cost, in one unit (seconds). verify[w] for w rows, 0 where unknown; verify[0] is not used. */
typedef struct length_costs {
    double verify[OUTRIDER_MAX_ROWS + 1];
    double draft;   /* one draft step */
    double take_in; /* one missed id that the draft takes in together with others */
} length_costs;

/* A decayed estimate of a cost that a few outliers cannot move. */
typedef struct length_cost {
    double value;           /* 0: nothing known */
    double raw[LENGTH_RAW]; /* the latest measurements, newest first */
    unsigned seen;          /* measurements so far, saturating */
    uint64_t at;            /* step of the last measurement */
} length_cost;

/* Decayed counts. */
typedef struct length_rate {
    double hits, trials;
} length_rate;

/* How often the proposals of one source are right. */
typedef struct length_chances {
    length_rate bucket[LENGTH_BUCKETS];       /* by confidence */
    length_rate overall;                      /* trials: what the priors had predicted */
    length_rate position[OUTRIDER_MAX_DRAFT]; /* trials: what the buckets had predicted */
    length_rate ahead[OUTRIDER_MAX_DRAFT];    /* by position, whatever the confidence: for proposals not made yet */
    double first[LENGTH_BUCKETS];             /* how often a first proposal has this confidence, decayed counts */
} length_chances;

/* Whether verifying lookups pays. */
typedef struct length_lookups {
    double tokens, seconds; /* decayed yield and time of the steps that began with one */
    double loss;            /* seconds lost against plain since it last was even */
    bool muted;             /* they lost too much: compared with the verifier's choice, not verified */
    size_t run;             /* that would have been right in a row, of those not verified */
} length_lookups;

/* One step as it went. */
typedef struct length_record {
    size_t drafted;  /* proposals made */
    size_t kept;     /* of them verified: the verify had kept + 1 rows */
    size_t accepted; /* of those kept */
    size_t matched;  /* accept_result.matched: known right among those drafted */
    size_t emitted;  /* tokens that the step yielded */
    size_t missing;  /* what the draft had to take in for its first proposal, >= 1; read only when a model made that */
    double draft_seconds[OUTRIDER_MAX_DRAFT]; /* of each proposal; the first one includes taking in; not read of lookups */
    double verify_seconds;
} length_record;

typedef struct length_controller {
    length_mode mode;
    size_t max;            /* 0..OUTRIDER_MAX_DRAFT */
    uint64_t random;       /* LENGTH_RANDOM: state */
    const uint8_t *script; /* LENGTH_SCRIPT: lengths, repeated; not owned */
    size_t script_n, script_at;
    bool on;           /* a model's drafts are on; off: only probes draft. Other modes: whether the last step drafted */
    uint64_t switches; /* how often `on` changed, the first step of the other modes not counted */
    uint64_t steps;    /* records observed */
    uint64_t tokens;   /* emitted in them */

    /* Costs. */
    length_cost verify[OUTRIDER_MAX_ROWS + 1];
    length_cost draft, take_in;

    length_chances of[LENGTH_SOURCES];
    length_lookups lookups;

    /* Whether the drafts of a model pay. */
    double rate_tokens,
        rate_seconds; /* decayed yield and time of the steps with drafts since they went on, taking in left out */
    double recent_tokens, recent_seconds; /* the same, decayed sooner */
    double loss;                          /* seconds lost against plain since it last was even, while on */
    double account;                       /* seconds that may go into probes; negative: a debt */
    double bar;                           /* how much better than plain drafts must look to go on, as a share */
    uint64_t probe_at;                    /* `tokens` at the last probe */
    uint64_t gap;                         /* tokens before the next */
    uint64_t timed_at;                    /* `tokens` when a verify of more than one row was last measured */

    /* The step under way. */
    size_t limit, made;
    bool probe, timing;
    bool silent;                                 /* lookups are compared only */
    length_source in_source[OUTRIDER_MAX_DRAFT]; /* of each proposal */
    double chance[OUTRIDER_MAX_DRAFT];           /* of each proposal being right, given that those before it are */
    size_t in_bucket[OUTRIDER_MAX_DRAFT];
} length_controller;

/* Dynamic: 0..max proposals. start (NULL: unknown) is what a calibration measured; only ratios matter until steps are observed. */
void length_init(length_controller *l, size_t max, const length_costs *start);

/* Always k; a uniformly random length of 0..max each step (SplitMix64 of seed); the lengths of a script, over and over. */
void length_init_fixed(length_controller *l, size_t k);
void length_init_random(length_controller *l, size_t max, uint64_t seed);
void length_init_script(length_controller *l, const uint8_t *lengths, size_t n);

/* Most proposals that this step may make: 0..limit. `missing` as in draft_source; 0: the first one is a lookup. There may be fewer, and none.
 * length_more is that of a model. */
size_t length_begin(length_controller *l, size_t limit, size_t missing);
bool length_more_of(length_controller *l, length_source source, float confidence);
bool length_more(length_controller *l, float confidence);
size_t length_keep(length_controller *l);
void length_observe(length_controller *l, const length_record *record);

/* Whether the coming steps are likely to draft with a model: not while a dynamic length is off, nor when it is fixed at 0. */
bool length_may_draft(const length_controller *l);

/* What the controller reckons with, for reports and tests: seconds of a verify of `rows` rows (relative while nothing is known), and the most
 * tokens a second that a plan of drafts is expected to yield, relative to plain steps. */
double length_verify_cost(const length_controller *l, size_t rows);
double length_gain(const length_controller *l);
size_t length_bucket(float confidence);

#endif
