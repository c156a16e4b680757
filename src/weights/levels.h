/* The integer form of one five-value row (rule 4 of docs/EXACTNESS.md). */
#ifndef WEIGHTS_LEVELS_H
#define WEIGHTS_LEVELS_H

#include <stdbool.h>
#include <stdint.h>

/* A relative error of the smaller level above which a row counts as exceptional (inspect says how many there are), and
 * the one above which a loader splits it. Between the two lie rows whose ratio is next to a simple fraction, such as
 * 0.502: the nearest a/b is off by up to 1/256 of it; the contract's oracle and its known digests carry them as one row,
 * so we do. Above lie rows whose smaller level is under about 1/127 of the larger, which one scale cannot carry at all.
 */
#define LEVELS_MAX_ERROR   1e-3
#define LEVELS_SPLIT_ERROR 5e-3

/* k_lo * scale stands for s_lo and k_hi * scale for s_hi. */
typedef struct row_levels {
    int32_t k_lo, k_hi; /* -127..127 */
    float scale;        /* carries the sign of the larger level */
    bool exceptional;   /* error > LEVELS_MAX_ERROR */
    bool split;         /* error > LEVELS_SPLIT_ERROR: a loader makes two rows of it, one level each */
    double error;       /* relative error of the smaller level's ratio to the larger; 0 with one level or an exact ratio */
} row_levels;

/* Rule 4 for one row. has_lo and has_hi say whether any weight of the row is of that level; the level of one that has
 * none does not matter. A row with neither counts as one without high weights. The levels are finite and may have any
 * sign or order. Costs 64 double divisions at most. */
row_levels levels_choose(float s_lo, float s_hi, bool has_lo, bool has_hi);

#endif
