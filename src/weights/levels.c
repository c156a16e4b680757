#include "weights/levels.h"

#include <math.h>

/* The larger level's integer runs over 64..127: 127 is the widest an int8 product allows, and below 64 every ratio a/b
 * occurs again as 2a/2b. */
enum { FIRST_B = 64, LAST_B = 127, STEPS = LAST_B - FIRST_B + 1 };

/* Adding and subtracting it rounds a double of magnitude below 2^51 to an integer, half to even, as rint does; unlike a
 * call to rint it lets the loop below run in vectors. */
#define ROUNDER 0x1.8p52

/* One level only: 127 steps. */
static row_levels one_level(float level, bool high)
{
    return (row_levels){.k_lo = high ? 0 : LAST_B, .k_hi = high ? LAST_B : 0, .scale = level / (float)LAST_B};
}

row_levels levels_choose(float s_lo, float s_hi, bool has_lo, bool has_hi)
{
    if (!has_hi) return one_level(s_lo, false);
    if (!has_lo) return one_level(s_hi, true);
    bool swap = fabsf(s_lo) > fabsf(s_hi);
    float big = swap ? s_lo : s_hi, small = swap ? s_hi : s_lo;
    if (big == 0) return (row_levels){0};
    double ratio = (double)small / (double)big, nearest[STEPS], off[STEPS];
    for (int i = 0; i < STEPS; i++) {
        double b = FIRST_B + i;
        nearest[i] = (b * ratio + ROUNDER) - ROUNDER;
        off[i] = fabs(nearest[i] / b - ratio);
    }
    int best = 0;
    for (int i = 1; i < STEPS; i++)
        if (off[i] < off[best]) best = i;
    double least = off[best];
    int32_t a = (int32_t)nearest[best], best_b = FIRST_B + best;
    double error = ratio == 0 ? 0 : least / fabs(ratio);
    return (row_levels){.k_lo = swap ? best_b : a,
                        .k_hi = swap ? a : best_b,
                        .scale = big / (float)best_b,
                        .exceptional = error > LEVELS_MAX_ERROR,
                        .split = error > LEVELS_SPLIT_ERROR,
                        .error = error};
}
