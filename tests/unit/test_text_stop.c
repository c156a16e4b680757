/* text/stop.h: a text ends before the first stop string, however it is cut, and nothing of a match is shown. */
#include "text/stop.h"

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

typedef struct stop_case {
    const char *text;
    const char *strings[4];
    const char *shown;
    int matched;
} stop_case;

static const stop_case cases[] = {
    {"", {"x"}, "", -1},
    {"hello", {NULL}, "hello", -1},
    {"hello", {"x"}, "hello", -1},
    {"hello", {"hello"}, "", 0},
    {"hello", {"o"}, "hell", 0},
    {"hello", {"hello!"}, "hello", -1},
    {"one\n\ntwo", {"\n\n"}, "one", 0},
    {"one\ntwo\n", {"\n\n"}, "one\ntwo\n", -1},
    /* the one that begins first, though another ends before it */
    {"xabcdx", {"bc", "abcd"}, "x", 1},
    {"xabcex", {"bc", "abcd"}, "xa", 0},
    {"xabc", {"bc", "abcd"}, "xa", 0},
    {"xabb", {"bc", "abcd"}, "xabb", -1},
    /* of those that begin together the one that ends first; of two alike the first */
    {"xabcd", {"abcd", "ab"}, "x", 1},
    {"xabcd", {"abc", "abc"}, "x", 0},
    /* overlap with itself */
    {"aaab", {"aab"}, "a", 0},
    {"aaaaaa", {"aaab"}, "aaaaaa", -1},
    {"abababc", {"ababc"}, "ab", 0},
    {"User: hi", {"\nUser:", "User:"}, "", 1},
    {"ok\nUser: hi", {"User:", "\nUser:"}, "ok", 1},
    {"</s", {"</s>"}, "</s", -1},
    {"Gr\xC3\xBC\xC3\x9F.", {"\xC3\x9F"}, "Gr\xC3\xBC", 0},
    {"\xF0\x9F\x98\x80\xF0\x9F\x98\x81.", {"\xF0\x9F\x98\x81"}, "\xF0\x9F\x98\x80", 0},
};

static size_t count(const stop_case *c)
{
    size_t n = 0;
    while (n < 4 && c->strings[n]) n++;
    return n;
}

static void cut_at(const stop_case *c, size_t first, size_t second)
{
    const size_t cuts[] = {0, first, second, strlen(c->text)};
    stop_matcher m;
    bytes out = {0};
    assert_int_equal(stop_open(&m, c->strings, count(c), NULL), OUTRIDER_OK);
    for (int i = 0; i < 3; i++) {
        assert_true(stop_push(&m, c->text + cuts[i], cuts[i + 1] - cuts[i], &out));
        assert_true(out.size <= strlen(c->shown)); /* never more than may be shown */
    }
    assert_true(stop_flush(&m, &out));
    assert_int_equal(m.matched, c->matched);
    assert_int_equal(out.size, strlen(c->shown));
    if (out.size) assert_string_equal(out.data, c->shown);
    if (m.matched >= 0) {
        assert_true(stop_push(&m, "more", 4, &out));
        assert_true(stop_flush(&m, &out));
        assert_int_equal(out.size, strlen(c->shown));
    }
    bytes_free(&out);
    stop_close(&m);
}

static void test_cases_cut_anywhere(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t size = strlen(cases[i].text);
        for (size_t first = 0; first <= size; first++)
            for (size_t second = first; second <= size; second++) cut_at(&cases[i], first, second);
    }
}

/* Only what may be the beginning of a match is held back. */
static void test_shown_at_once(void **state)
{
    (void)state;
    static const char *const strings[] = {"<end>", "##"};
    stop_matcher m;
    bytes out = {0};
    assert_int_equal(stop_open(&m, strings, 2, NULL), OUTRIDER_OK);
    assert_true(stop_push(&m, "abc", 3, &out));
    assert_string_equal(out.data, "abc");
    assert_true(stop_push(&m, "d<", 2, &out));
    assert_string_equal(out.data, "abcd");
    assert_true(stop_push(&m, "en", 2, &out));
    assert_string_equal(out.data, "abcd");
    assert_true(stop_push(&m, "t", 1, &out));
    assert_string_equal(out.data, "abcd<ent");
    assert_true(stop_push(&m, "#", 1, &out));
    assert_string_equal(out.data, "abcd<ent");
    assert_int_equal(m.matched, -1);
    assert_true(stop_push(&m, "#", 1, &out));
    assert_string_equal(out.data, "abcd<ent");
    assert_int_equal(m.matched, 1);
    bytes_free(&out);
    stop_close(&m);
}

/* Random texts of two letters, where nearly everything may be a beginning, against a search in the whole text. */
static void test_random(void **state)
{
    (void)state;
    srand(1);
    for (int round = 0; round < 20000; round++) {
        char text[13] = {0}, words[3][5] = {{0}};
        const char *strings[3];
        const size_t size = (size_t)rand() % 13, n = (size_t)rand() % 4;
        for (size_t i = 0; i < size; i++) text[i] = (char)('a' + rand() % 2);
        for (size_t i = 0; i < n; i++) {
            for (int k = 0, length = 1 + rand() % 4; k < length; k++) words[i][k] = (char)('a' + rand() % 2);
            strings[i] = words[i];
        }
        int matched = -1;
        size_t begin = size;
        for (size_t at = 0; at < size && matched < 0; at++)
            for (size_t i = 0; i < n; i++)
                if (strncmp(text + at, words[i], strlen(words[i])) == 0 &&
                    (matched < 0 || strlen(words[i]) < strlen(words[matched]))) {
                    matched = (int)i;
                    begin = at;
                }
        stop_matcher m;
        bytes out = {0};
        assert_int_equal(stop_open(&m, strings, n, NULL), OUTRIDER_OK);
        for (size_t at = 0; at < size;) {
            const size_t piece = 1 + (size_t)rand() % (size - at);
            assert_true(stop_push(&m, text + at, piece, &out));
            at += piece;
        }
        assert_true(stop_flush(&m, &out));
        assert_int_equal(m.matched, matched);
        assert_int_equal(out.size, begin);
        if (begin) assert_memory_equal(out.data, text, begin);
        bytes_free(&out);
        stop_close(&m);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const empty[] = {"a", ""}, *const broken[] = {"a", "b", "\xF0\x9F"}, *const fine[] = {"\xEF\xBF\xBD"};
    const char *many[STOP_MAX + 1];
    for (size_t i = 0; i <= STOP_MAX; i++) many[i] = "x";
    stop_matcher m;
    outrider_error err;
    assert_int_equal(stop_open(&m, many, STOP_MAX, &err), OUTRIDER_OK);
    stop_close(&m);
    assert_int_equal(stop_open(&m, many, STOP_MAX + 1, &err), OUTRIDER_USAGE);
    assert_string_equal(err.message, "stop: expected at most 16 strings, found 17");
    assert_int_equal(stop_open(&m, empty, 2, &err), OUTRIDER_USAGE);
    assert_string_equal(err.message, "stop string 1: expected text, found none");
    assert_int_equal(stop_open(&m, broken, 3, &err), OUTRIDER_USAGE);
    assert_string_equal(err.message, "stop string 2: expected UTF-8, found other bytes");
    assert_int_equal(stop_open(&m, fine, 1, &err), OUTRIDER_OK);
    stop_close(&m);
    assert_int_equal(stop_open(&m, NULL, 0, &err), OUTRIDER_OK);
    stop_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases_cut_anywhere),
        cmocka_unit_test(test_shown_at_once),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
