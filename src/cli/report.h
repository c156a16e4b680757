/* Numbers of an answer, for people and as JSON. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "outrider.h"

/* a / b, and 0 where b is not above 0. */
double report_ratio(double a, double b);

/* Sorts the values; 0 when there are none. */
double report_median(double *values, size_t n);

/* The processor's name as the system gives it, "unknown" where it does not; returns `name`. */
const char *report_processor(char *name, size_t size);

/* One answer, or the sum of several. */
typedef struct report {
    outrider_result sum; /* counts and seconds; finish and stop_index are those of the last answer added */
    uint64_t answers;    /* that had tokens */
} report;

void report_add(report *r, const outrider_result *one);

/* The prompt's own pass yields the first token of an answer; the rates of the decoding proper leave it out. */
uint64_t report_decoded(const report *r);
double report_decode_rate(const report *r);     /* tokens/s */
double report_tokens_a_verify(const report *r); /* by forward passes of the verifier */
double report_mean_draft(const report *r);      /* proposals verified, by forward passes of the verifier */

/* The closing line of an answer. */
void report_closing(FILE *to, const report *r);

const char *report_finish(outrider_finish finish);

/* JSON values; NULL when memory ran out, which the json_ functions pass on. A number that is not finite becomes null; bytes
 * that are not UTF-8 become U+FFFD. */
json_t *report_number(double value);
json_t *report_text(const char *text, size_t size);
json_t *report_ids(const uint32_t *ids, size_t n);
json_t *report_acceptance(const report *r); /* null when nothing was proposed */
json_t *report_draft(const report *r);
json_t *report_timings(const report *r);

/* Prints one object and a line end on stdout and lets go of it. Returns the exit code. */
int report_print(json_t *root);

#endif
