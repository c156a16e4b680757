/* Doubles for the decoder's tests. */
#ifndef SUPPORT_DECODE_H
#define SUPPORT_DECODE_H

#include "decode/lane.h"
#include "decode/length.h"

/* SCRIPT: a model that goes by a rule instead of weights: `next` gives the id that it chooses after ids[0..n). Keeps what it was given and how. */
enum { SCRIPT_CAPACITY = 4096, SCRIPT_LOG = 4096 };

typedef struct script {
    uint32_t (*next)(const void *rule, const uint32_t *ids, size_t n);
    float (*margin)(const void *rule, size_t n); /* NULL: 1 */
    const void *rule;
    uint32_t ids[SCRIPT_CAPACITY];
    size_t n;
    uint32_t picks[SCRIPT_CAPACITY]; /* of the kept rows */
    float margins[SCRIPT_CAPACITY];
    size_t rows;
    struct {
        size_t at, n, logits;
    } log[SCRIPT_LOG]; /* each eval: where it began, ids, rows */
    size_t evals;
    size_t most;                 /* largest timeline ever held */
    size_t fail_eval, fail_pick; /* the 1-based call that fails; 0: none */
    size_t pick_calls;
    double *clock; /* moved by each eval; NULL: none */
    double seconds_per_pass, seconds_per_id;
} script;

lane script_lane(script *s);

/* A stream for the length controller, token by token: whether the draft's proposal for it would be right, and with which confidence.
 * The same for every policy, so that policies can be compared. */
typedef struct stream {
    size_t n;
    const unsigned char *right;
    const float *confidence;
} stream;

typedef struct clock_table {
    double verify[OUTRIDER_MAX_ROWS + 1];
    double draft, take_in;
    double noise;    /* each time is multiplied by 1 .. 1 + noise */
    double outliers; /* share of passes that take 20 times as long */
} clock_table;

typedef struct run_result {
    double seconds; /* by the table, without noise and outliers */
    size_t switches, drafted, steps, plain_steps;
    size_t found; /* tokens from `watch` on until the first of 8 steps in a row that verified proposals; SIZE_MAX: never */
} run_result;

/* Runs a controller over tokens [0, s->n) with the decoder's own accounting of what the draft misses. */
run_result run_stream(length_controller *l, const stream *s, const clock_table *t, size_t watch, uint64_t seed);

uint64_t test_random(uint64_t *state);
double test_uniform(uint64_t *state); /* [0, 1) */

#endif
