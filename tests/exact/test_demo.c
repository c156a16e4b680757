/* The embedded pair against golden.json, which the oracle and the reference tokenizer wrote: prompt ids, answers, digest of the last logits row; and
 * drafted against plain over all draft lengths and instruction sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "check.h"

#define DEMO SOURCE_DIR "/models/demo"

enum { VOCAB = 4096, MAX_TOKENS = 64 };

static json_t *golden;

static int load_golden(void **state)
{
    (void)state;
    json_error_t problem;
    golden = json_load_file(DEMO "/golden.json", 0, &problem);
    return golden ? 0 : -1;
}

static int free_golden(void **state)
{
    (void)state;
    json_decref(golden);
    return 0;
}

static void expect_ids(const json_t *list, const uint32_t *got, size_t n)
{
    assert_int_equal(json_array_size(list), n);
    for (size_t i = 0; i < n; i++) assert_int_equal(json_integer_value(json_array_get(list, i)), got[i]);
}

static bool gather(void *user, const char *text, size_t size, const uint32_t *ids, size_t n)
{
    (void)ids, (void)n;
    strncat(user, text, size);
    return true;
}

static void expect_answer(outrider_model *model, outrider_role role, int draft_length, const json_t *entry)
{
    outrider_session *s = check_session(model, role, false);
    outrider_error err = {0};
    const outrider_message message = {"user", json_string_value(json_object_get(entry, "prompt"))};
    check_ok(outrider_session_push_chat(s, &message, 1, 0, &err), &err);
    size_t prompt, n;
    const uint32_t *history = outrider_session_tokens(s, &prompt);
    expect_ids(json_object_get(entry, "prompt_ids"), history, prompt);

    outrider_generate_options o = OUTRIDER_GENERATE_OPTIONS_INIT;
    o.max_tokens = MAX_TOKENS;
    o.draft_length = draft_length;
    o.draft_seed = 3;
    char text[4096] = "";
    check_ok(outrider_session_generate(s, &o, gather, text, NULL, &err), &err);
    history = outrider_session_tokens(s, &n);
    expect_ids(json_object_get(entry, "greedy_ids"), history + prompt, n - prompt);
    assert_string_equal(text, json_string_value(json_object_get(entry, "text")));

    /* The row that chose the last id: computed once more from what the caches hold. */
    char hex[65];
    const uint32_t before_last = history[n - 2];
    check_ok(outrider_session_truncate(s, n - 2, &err), &err);
    check_ok(outrider_session_eval(s, &before_last, 1, &err), &err);
    check_row_digest(s, 0, VOCAB, hex);
    assert_string_equal(hex, json_string_value(json_object_get(entry, "last_logits_sha256")));
    outrider_session_close(s);
}

/* Every prompt on the instruction set that the processor would choose, a few of each class on the others (plain C is slow). */
static void golden_on(const char *mask, int threads, size_t step)
{
    outrider_model *model = check_open(DEMO, NULL, true, mask, threads);
    for (size_t i = 0; i < json_array_size(golden); i += step) {
        expect_answer(model, OUTRIDER_ROLE_PLAIN, 0, json_array_get(golden, i));
        expect_answer(model, OUTRIDER_ROLE_PAIR, OUTRIDER_DRAFT_DYNAMIC, json_array_get(golden, i));
        expect_answer(model, OUTRIDER_ROLE_PAIR, OUTRIDER_DRAFT_RANDOM, json_array_get(golden, i));
    }
    outrider_model_close(model);
}

static void test_golden(void **state)
{
    (void)state;
    size_t n;
    const char *const *masks = check_masks(&n);
    for (size_t i = 0; i < n; i++) golden_on(masks[i], 2, strcmp(masks[i], "ref") ? 1 : 5);
    golden_on(NULL, 1, 5);
    golden_on(NULL, 3, 5);
}

/* 2,000 tokens for each draft length 0..8, random and dynamic: one digest of ids, one of logits. */
static void test_draft_lengths(void **state)
{
    (void)state;
    static const int lengths[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, OUTRIDER_DRAFT_RANDOM, OUTRIDER_DRAFT_DYNAMIC};
    outrider_model *model = check_open(DEMO, NULL, true, NULL, 2);
    char first_ids[65] = "", first_logits[65] = "", ids_hex[65], logits_hex[65];
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        outrider_session *s = check_session(model, OUTRIDER_ROLE_PAIR, true);
        outrider_error err = {0};
        for (size_t i = 0; i < 10; i++) {
            const json_t *entry = json_array_get(golden, i * 5 % 25 + i / 5);
            const outrider_message message = {"user", json_string_value(json_object_get(entry, "prompt"))};
            outrider_generate_options o = OUTRIDER_GENERATE_OPTIONS_INIT;
            o.draft_length = lengths[l];
            o.draft_seed = 11 + i;
            o.max_tokens = 200;
            o.ignore_end = true;
            check_ok(outrider_session_truncate(s, 0, &err), &err);
            check_ok(outrider_session_push_chat(s, &message, 1, 0, &err), &err);
            outrider_result result;
            check_ok(outrider_session_generate(s, &o, NULL, NULL, &result, &err), &err);
            assert_int_equal(result.tokens, 200);
        }
        check_ok(outrider_session_digests(s, ids_hex, logits_hex, &err), &err);
        if (l == 0) {
            strcpy(first_ids, ids_hex);
            strcpy(first_logits, logits_hex);
        }
        assert_string_equal(ids_hex, first_ids);
        assert_string_equal(logits_hex, first_logits);
        outrider_session_close(s);
    }
    outrider_model_close(model);
}

/* A stop string ends text, ids, counts and caches at the same place, drafted or not, wherever the draft's runs are cut. */
static void test_stop_strings(void **state)
{
    (void)state;
    outrider_model *model = check_open(DEMO, NULL, true, NULL, 2);
    outrider_error err = {0};
    const outrider_message message = {"user", "Count from 1 to 40, separated by commas."};
    const char *const stops[] = {"11,", "8, 9"};
    for (int length = 0; length <= 8; length++) {
        outrider_session *s = check_session(model, OUTRIDER_ROLE_PAIR, false);
        check_ok(outrider_session_push_chat(s, &message, 1, 0, &err), &err);
        outrider_generate_options o = OUTRIDER_GENERATE_OPTIONS_INIT;
        o.stop = stops;
        o.n_stop = 2;
        o.draft_length = length;
        char text[4096] = "";
        outrider_result result;
        size_t before, n;
        outrider_session_tokens(s, &before);
        check_ok(outrider_session_generate(s, &o, gather, text, &result, &err), &err);
        assert_string_equal(text, "1, 2, 3, 4, 5, 6, 7, ");
        assert_int_equal(result.finish, OUTRIDER_FINISH_STOP);
        assert_int_equal(result.stop_index, 1);
        outrider_session_tokens(s, &n);
        assert_int_equal(n - before, result.tokens);
        /* Going on from the cut gives what plain decoding of the whole gives there. */
        o.n_stop = 0;
        o.max_tokens = 5;
        text[0] = 0;
        check_ok(outrider_session_generate(s, &o, gather, text, &result, &err), &err);
        assert_string_equal(text, ", 10,");
        outrider_session_close(s);
    }
    outrider_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_draft_lengths),
        cmocka_unit_test(test_stop_strings),
    };
    return cmocka_run_group_tests(tests, load_golden, free_golden);
}
