/* weights/levels.h against the oracle's table (tests/data/levels.txt, from tools/make_levels.py), and its own claims
 * about errors. */
#include "weights/levels.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static float of_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

static void test_levels_equal_the_oracles(void **state)
{
    (void)state;
    FILE *f = fopen(SOURCE_DIR "/tests/data/levels.txt", "r");
    assert_non_null(f);
    uint32_t lo = 0, hi = 0, scale = 0;
    int has_lo, has_hi, n = 0;
    int32_t k_lo, k_hi;
    while (fscanf(f, "%" SCNx32 " %" SCNx32 " %d %d %" SCNd32 " %" SCNd32 " %" SCNx32, &lo, &hi, &has_lo, &has_hi, &k_lo, &k_hi,
                  &scale) == 7) {
        row_levels l = levels_choose(of_bits(lo), of_bits(hi), has_lo, has_hi);
        if (l.k_lo != k_lo || l.k_hi != k_hi || bits_of(l.scale) != scale)
            fail_msg("line %d: levels %08x %08x: expected %d %d %08x, found %d %d %08x", n + 1, lo, hi, k_lo, k_hi, scale,
                     l.k_lo, l.k_hi, bits_of(l.scale));
        n++;
    }
    assert_true(feof(f));
    fclose(f);
    assert_true(n > 1000);
}

/* error is the distance of the chosen ratio from the real one, and exceptional says that it is above the bound. */
static void test_levels_error_is_what_it_says(void **state)
{
    (void)state;
    uint64_t random = 11;
    int exceptional = 0, close_enough = 0;
    for (int i = 0; i < 20000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        float lo = (float)((random >> 40) + 1) / 16777216.0f, hi = 1.0f + (float)(random >> 16 & 0xffff) / 65536.0f;
        if (random >> 63) lo = -lo;
        row_levels l = i % 2 ? levels_choose(lo, hi, true, true) : levels_choose(hi, lo, true, true);
        int32_t small = i % 2 ? l.k_lo : l.k_hi, big = i % 2 ? l.k_hi : l.k_lo;
        double ratio = (double)lo / (double)hi, error = fabs((double)small / big - ratio) / fabs(ratio);
        assert_true(big >= 64 && big <= 127 && abs(small) <= big);
        assert_true(fabs(l.error - error) <= 1e-12);
        assert_int_equal(l.exceptional, error > LEVELS_MAX_ERROR);
        assert_int_equal(l.split, error > LEVELS_SPLIT_ERROR);
        exceptional += l.exceptional;
        close_enough += !l.exceptional;
    }
    assert_true(exceptional > 0 && close_enough > 10000);
    row_levels near = levels_choose(0.502f, 1.0f, true, true); /* next to 1/2: an exception that stays one row */
    assert_true(near.exceptional && !near.split);
}

static void test_levels_that_are_exact(void **state)
{
    (void)state;
    row_levels l = levels_choose(0.5f, 1.0f, true, true);
    assert_int_equal(l.k_lo, 32);
    assert_int_equal(l.k_hi, 64); /* the smallest of the ties */
    assert_true(l.scale == 1.0f / 64 && l.error == 0 && !l.exceptional);
    l = levels_choose(3.0f, 0.0f, true, true); /* a level of 0 */
    assert_true(l.k_hi == 0 && l.k_lo == 64 && l.error == 0 && !l.exceptional);
    l = levels_choose(0.0f, 0.0f, true, true);
    assert_true(l.k_lo == 0 && l.k_hi == 0 && l.scale == 0 && l.error == 0 && !l.exceptional);
    l = levels_choose(1e-20f, 1.0f, true, true); /* vanishes beside the other one */
    assert_true(l.k_lo == 0 && l.error == 1 && l.exceptional && l.split);
}

static void test_levels_of_one_level_are_exact(void **state)
{
    (void)state;
    row_levels l = levels_choose(-2.0f, 1e-9f, true, false);
    assert_true(l.k_lo == 127 && l.k_hi == 0 && l.scale == -2.0f / 127 && l.error == 0 && !l.exceptional);
    l = levels_choose(1e-9f, 2.0f, false, true);
    assert_true(l.k_lo == 0 && l.k_hi == 127 && l.scale == 2.0f / 127 && l.error == 0 && !l.exceptional);
    l = levels_choose(5.0f, 2.0f, false, false);
    assert_true(l.k_lo == 127 && l.k_hi == 0 && l.error == 0 && !l.exceptional);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels_equal_the_oracles),
        cmocka_unit_test(test_levels_error_is_what_it_says),
        cmocka_unit_test(test_levels_that_are_exact),
        cmocka_unit_test(test_levels_of_one_level_are_exact),
    };
    return cmocka_run_group_tests_name("weights_levels", tests, NULL, NULL);
}
