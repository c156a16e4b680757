/* decode/accept.h: which proposals stand, and where a run ends. */
#include "decode/accept.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { NO_CAP = 1000 };

/* The stream that the verifier would write is 100, 101, ...; proposal i is right when i < right, the next ones follow the wrong one. The
 * verifier's picks after a wrong proposal are other ids altogether. */
static void make_run(size_t k, size_t right, uint32_t *proposals, uint32_t *picks)
{
    for (size_t i = 0; i < k; i++) proposals[i] = (uint32_t)(i < right ? 100 + i : 500 + i);
    for (size_t i = 0; i <= k; i++) picks[i] = (uint32_t)(i <= right ? 100 + i : 900 + i);
}

static void test_every_run(void **state)
{
    (void)state;
    uint32_t proposals[17], picks[17];
    for (size_t k = 0; k <= 16; k++)
        for (size_t right = 0; right <= k; right++) {
            make_run(k, right, proposals, picks);
            const accept_result r = accept_run(proposals, k, k, picks, NO_CAP, NULL, 0);
            assert_int_equal(r.accepted, right);
            assert_int_equal(r.matched, right);
            assert_int_equal(r.emitted, right + 1);
            assert_int_equal(r.end, ACCEPT_OPEN);
        }
}

/* A proposal that is right after a wrong one was right for another text. */
static void test_right_after_wrong_does_not_count(void **state)
{
    (void)state;
    const uint32_t proposals[] = {7, 8, 9}, picks[] = {6, 8, 9, 10};
    const accept_result r = accept_run(proposals, 3, 3, picks, NO_CAP, NULL, 0);
    assert_int_equal(r.accepted, 0);
    assert_int_equal(r.emitted, 1);
}

static void test_first_dropped_proposal_is_judged(void **state)
{
    (void)state;
    const uint32_t picks[] = {1, 2, 3};
    const uint32_t right[] = {1, 2, 3, 4}, wrong[] = {1, 2, 9, 4}, early[] = {1, 9, 3, 4};
    accept_result r = accept_run(right, 4, 2, picks, NO_CAP, NULL, 0);
    assert_int_equal(r.accepted, 2);
    assert_int_equal(r.matched, 3); /* the fourth has no pick to be compared with */
    assert_int_equal(r.emitted, 3);
    r = accept_run(wrong, 4, 2, picks, NO_CAP, NULL, 0);
    assert_int_equal(r.accepted, 2);
    assert_int_equal(r.matched, 2);
    r = accept_run(early, 4, 2, picks, NO_CAP, NULL, 0);
    assert_int_equal(r.accepted, 1);
    assert_int_equal(r.matched, 1);
    assert_int_equal(r.emitted, 2);
    r = accept_run(right, 1, 0, picks, NO_CAP, NULL, 0); /* a silent probe */
    assert_int_equal(r.accepted, 0);
    assert_int_equal(r.matched, 1);
    assert_int_equal(r.emitted, 1);
}

/* End id at every place of every run, under every cap: whichever comes first; at the same place it is the end id. */
static void test_end_ids_and_caps(void **state)
{
    (void)state;
    uint32_t proposals[17], picks[17];
    for (size_t k = 0; k <= 8; k++)
        for (size_t right = 0; right <= k; right++)
            for (size_t end = 0; end <= k + 1; end++)
                for (size_t cap = 1; cap <= k + 2; cap++) {
                    make_run(k, right, proposals, picks);
                    const uint32_t ends[] = {77, (uint32_t)(100 + end)};
                    const accept_result r = accept_run(proposals, k, k, picks, cap, ends, 2);
                    const size_t run = right + 1, to_end = end < run ? end + 1 : SIZE_MAX;
                    size_t emitted = run;
                    accept_end why = ACCEPT_OPEN;
                    if (cap <= emitted) emitted = cap, why = ACCEPT_CAP;
                    if (to_end <= emitted) emitted = to_end, why = ACCEPT_END_ID;
                    assert_int_equal(r.emitted, emitted);
                    assert_int_equal(r.end, why);
                    assert_int_equal(r.accepted, right < emitted ? right : emitted);
                    assert_int_equal(r.matched, right);
                }
}

/* Only what the verifier chose can end anything: a rejected proposal that is an end id does not. */
static void test_proposed_end_id_ends_nothing(void **state)
{
    (void)state;
    const uint32_t proposals[] = {1, 77}, picks[] = {1, 2, 3}, ends[] = {77};
    const accept_result r = accept_run(proposals, 2, 2, picks, NO_CAP, ends, 1);
    assert_int_equal(r.emitted, 2);
    assert_int_equal(r.end, ACCEPT_OPEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_run),
        cmocka_unit_test(test_right_after_wrong_does_not_count),
        cmocka_unit_test(test_first_dropped_proposal_is_judged),
        cmocka_unit_test(test_end_ids_and_caps),
        cmocka_unit_test(test_proposed_end_id_ends_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
