/* The contract's known values on the toy containers: every instruction set, 1 to 5 threads, every width, every way of cutting the prompt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "check.h"

#define TOY_T BINARY_DIR "/toy_t.trtc"
#define TOY_Q BINARY_DIR "/toy_q.trtc"

enum { VOCAB = 300, LONG = 18 };

static const uint32_t PROMPT[] = {1, 2, 3, 77};
static const uint32_t GREEDY_T[] = {135, 234, 85, 165, 83, 44, 139, 47};

/* Known from the contract, not computed here. */
static void expect_known(const char *path, const char *digest16, const uint32_t *greedy, size_t n_greedy, const char *mask,
                         int threads)
{
    outrider_model *model = check_open(path, NULL, false, mask, threads);
    outrider_session *s = check_session(model, OUTRIDER_ROLE_PLAIN, false);
    outrider_error err = {0};
    char hex[65];
    check_ok(outrider_session_eval(s, PROMPT, 4, &err), &err);
    check_row_digest(s, 3, VOCAB, hex);
    hex[16] = 0;
    assert_string_equal(hex, digest16);
    if (n_greedy) {
        outrider_generate_options o = OUTRIDER_GENERATE_OPTIONS_INIT;
        o.max_tokens = (uint32_t)n_greedy;
        check_ok(outrider_session_generate(s, &o, NULL, NULL, NULL, &err), &err);
        size_t n;
        const uint32_t *history = outrider_session_tokens(s, &n);
        assert_int_equal(n, 4 + n_greedy);
        assert_memory_equal(history + 4, greedy, n_greedy * sizeof *greedy);
    }
    outrider_session_close(s);
    outrider_model_close(model);
}

static void test_known_values(void **state)
{
    (void)state;
    size_t n;
    const char *const *masks = check_masks(&n);
    for (size_t i = 0; i < n; i++)
        for (int threads = 1; threads <= 5; threads++) {
            expect_known(TOY_T, "1f2070f024be05df", GREEDY_T, 8, masks[i], threads);
            expect_known(TOY_Q, "b8d4ab62005f6fd5", NULL, 0, masks[i], threads);
        }
}

/* A fixed run of ids, not the model's own, so that a wrong row cannot hide behind a repeated token. */
static void fill_ids(uint32_t *ids, size_t n)
{
    uint32_t x = 12345;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        ids[i] = (x >> 8) % VOCAB;
    }
}

/* Digests of all rows when the ids go in `width` at a time. */
static void row_digests(outrider_model *model, const uint32_t *ids, size_t n, size_t width, char (*hex)[65])
{
    outrider_session *s = check_session(model, OUTRIDER_ROLE_PLAIN, false);
    outrider_error err = {0};
    for (size_t at = 0; at < n; at += width) {
        const size_t rows = n - at < width ? n - at : width;
        check_ok(outrider_session_eval(s, ids + at, rows, &err), &err);
        for (size_t r = 0; r < rows; r++) check_row_digest(s, r, VOCAB, hex[at + r]);
    }
    outrider_session_close(s);
}

/* Every width gives each row the bits that width 1 gives it, on every instruction set and number of threads. */
static void test_widths(void **state)
{
    (void)state;
    static char alone[LONG][65], wide[LONG][65];
    uint32_t ids[LONG];
    fill_ids(ids, LONG);
    size_t n;
    const char *const *masks = check_masks(&n);
    const char *const paths[] = {TOY_T, TOY_Q};
    for (size_t p = 0; p < 2; p++) {
        outrider_model *first = check_open(paths[p], NULL, false, "ref", 1);
        row_digests(first, ids, LONG, 1, alone);
        outrider_model_close(first);
        for (size_t i = 0; i < n; i++)
            for (int threads = 1; threads <= 5; threads++) {
                outrider_model *model = check_open(paths[p], NULL, false, masks[i], threads);
                for (size_t width = 1; width <= (threads == 2 ? 17 : 9); width++) {
                    row_digests(model, ids, LONG, width, wide);
                    assert_memory_equal(alone, wide, sizeof alone);
                }
                outrider_model_close(model);
            }
    }
}

/* The prompt in chunks of 1, 7 and 64 up to the edges of vectors and attention chunks, then one row behind it. */
static void test_chunks(void **state)
{
    (void)state;
    static const size_t lengths[] = {1, 31, 33, 63, 64, 65, 127, 129, 255, 256, 257, 509};
    static const uint32_t chunks[] = {1, 7, 64};
    uint32_t ids[512];
    fill_ids(ids, 512);
    size_t n;
    const char *const *masks = check_masks(&n);
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        char ids_hex[65], logits_hex[65], first_ids[65] = "", first_logits[65] = "";
        for (size_t i = 0; i < n; i++) {
            outrider_model *model = check_open(TOY_T, NULL, false, masks[i], 2);
            for (size_t c = 0; c < 3; c++) {
                outrider_session *s = check_session(model, OUTRIDER_ROLE_PLAIN, true);
                outrider_error err = {0};
                outrider_generate_options o = OUTRIDER_GENERATE_OPTIONS_INIT;
                o.prefill_rows = chunks[c];
                o.max_tokens = 3;
                check_ok(outrider_session_push_tokens(s, ids, lengths[l], &err), &err);
                check_ok(outrider_session_generate(s, &o, NULL, NULL, NULL, &err), &err);
                check_ok(outrider_session_digests(s, ids_hex, logits_hex, &err), &err);
                if (!first_ids[0]) {
                    strcpy(first_ids, ids_hex);
                    strcpy(first_logits, logits_hex);
                }
                assert_string_equal(ids_hex, first_ids);
                assert_string_equal(logits_hex, first_logits);
                outrider_session_close(s);
            }
            outrider_model_close(model);
        }
    }
}

/* The row at a context's end has the same bits alone and at every offset inside a verify of 2 to 8 rows, at the edges of vectors, superblocks and
 * attention chunks. */
static void test_every_offset(void **state)
{
    (void)state;
    enum { MOST = 1025 + 8 };
    static const size_t contexts[] = {1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025};
    static uint32_t ids[MOST];
    static char expected[sizeof contexts / sizeof *contexts][65];
    outrider_error err = {0};
    char hex[65];
    fill_ids(ids, MOST);
    size_t n;
    const char *const *masks = check_masks(&n);
    for (size_t m = 0; m < n; m++) {
        outrider_model *model = check_open(BINARY_DIR "/toy_long.trtc", NULL, false, masks[m], 2);
        outrider_session *s = check_session(model, OUTRIDER_ROLE_PLAIN, false);
        for (size_t c = 0; c < sizeof contexts / sizeof *contexts; c++) {
            const size_t last = contexts[c] - 1;
            for (size_t width = 1; width <= 8; width++)
                for (size_t offset = 0; offset < width && offset <= last; offset++) {
                    size_t have;
                    outrider_session_tokens(s, &have);
                    const size_t from = last - offset;
                    if (have > from) check_ok(outrider_session_truncate(s, from, &err), &err);
                    if (have < from) check_ok(outrider_session_push_tokens(s, ids + have, from - have, &err), &err);
                    check_ok(outrider_session_eval(s, ids + from, width, &err), &err);
                    check_row_digest(s, offset, VOCAB, hex);
                    if (m == 0 && width == 1) strcpy(expected[c], hex);
                    assert_string_equal(hex, expected[c]);
                }
        }
        outrider_session_close(s);
        outrider_model_close(model);
    }
}

/* A pair of toys: drafted equals plain for every fixed length, random lengths and the controller; the target as its own draft is always right. */
static void test_drafted(void **state)
{
    (void)state;
    size_t n;
    const char *const *masks = check_masks(&n);
    for (size_t i = 0; i < n; i++) {
        outrider_model *model = check_open(TOY_T, BINARY_DIR "/toy_t_draft.trtc", false, masks[i], 2);
        char plain_ids[65], plain_logits[65], ids_hex[65], logits_hex[65];
        outrider_error err = {0};
        for (int length = 0; length <= 10; length++) {
            outrider_session *s = check_session(model, length == 0 ? OUTRIDER_ROLE_PLAIN : OUTRIDER_ROLE_PAIR, true);
            outrider_generate_options o = OUTRIDER_GENERATE_OPTIONS_INIT;
            o.draft_length = length == 9 ? OUTRIDER_DRAFT_RANDOM : length == 10 ? OUTRIDER_DRAFT_DYNAMIC : length;
            o.draft_seed = 5;
            o.max_tokens = 300;
            check_ok(outrider_session_push_tokens(s, PROMPT, 4, &err), &err);
            outrider_result result;
            check_ok(outrider_session_generate(s, &o, NULL, NULL, &result, &err), &err);
            assert_int_equal(result.tokens, 300);
            check_ok(outrider_session_digests(s, length ? ids_hex : plain_ids, length ? logits_hex : plain_logits, &err), &err);
            if (length) {
                assert_string_equal(ids_hex, plain_ids);
                assert_string_equal(logits_hex, plain_logits);
            }
            outrider_session_close(s);
        }
        outrider_model_close(model);
    }
}

static void test_target_drafts_itself(void **state)
{
    (void)state;
    outrider_model *model = check_open(TOY_T, TOY_T, false, NULL, 2);
    outrider_session *s = check_session(model, OUTRIDER_ROLE_PAIR, false);
    outrider_error err = {0};
    outrider_result result;
    outrider_generate_options o = OUTRIDER_GENERATE_OPTIONS_INIT;
    o.draft_length = 6;
    o.max_tokens = 400;
    check_ok(outrider_session_push_tokens(s, PROMPT, 4, &err), &err);
    check_ok(outrider_session_generate(s, &o, NULL, NULL, &result, &err), &err);
    assert_int_equal(result.tokens, 400);
    assert_true(result.proposed > 300);
    assert_int_equal(result.accepted, result.proposed);
    outrider_session_close(s);
    outrider_model_close(model);
}

/* Context of 64, prompts up to its end, drafts of 6: the same ids as plain up to the last cell; a prompt that fills it is refused. */
static void test_context_end(void **state)
{
    (void)state;
    uint32_t ids[64];
    fill_ids(ids, 64);
    outrider_model *model = check_open(TOY_T, BINARY_DIR "/toy_t_draft.trtc", false, NULL, 2);
    outrider_error err = {0};
    for (size_t prompt = 56; prompt <= 64; prompt++) {
        uint32_t plain[64] = {0};
        for (int drafted = 0; drafted < 2; drafted++) {
            outrider_session_options so = OUTRIDER_SESSION_OPTIONS_INIT;
            so.context = 64;
            outrider_session *s;
            check_ok(outrider_session_open(model, &so, &s, &err), &err);
            check_ok(outrider_session_push_tokens(s, ids, prompt, &err), &err);
            outrider_generate_options o = OUTRIDER_GENERATE_OPTIONS_INIT;
            o.draft_length = drafted ? 6 : 0;
            outrider_result result;
            const outrider_status status = outrider_session_generate(s, &o, NULL, NULL, &result, &err);
            if (prompt == 64) {
                assert_int_equal(status, OUTRIDER_USAGE);
                assert_non_null(strstr(err.message, "64"));
            } else {
                check_ok(status, &err);
                assert_int_equal(result.finish, OUTRIDER_FINISH_CONTEXT);
                size_t n;
                const uint32_t *history = outrider_session_tokens(s, &n);
                assert_int_equal(n, 64);
                if (drafted)
                    assert_memory_equal(history, plain, sizeof plain);
                else
                    memcpy(plain, history, sizeof plain);
            }
            outrider_session_close(s);
        }
    }
    outrider_model_close(model);
}

/* --known: only the contract's known values, which is quick enough for an emulated processor. */
int main(int argc, char **argv)
{
    const struct CMUnitTest known[] = {cmocka_unit_test(test_known_values)};
    if (argc > 1 && !strcmp(argv[1], "--known")) return cmocka_run_group_tests(known, NULL, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_values), cmocka_unit_test(test_widths),  cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_every_offset), cmocka_unit_test(test_drafted), cmocka_unit_test(test_target_drafts_itself),
        cmocka_unit_test(test_context_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
