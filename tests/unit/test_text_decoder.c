/* text/decoder.h: bytes become text as soon as they are certain, and never sooner. */
#include "text/decoder.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define R "\xEF\xBF\xBD" /* U+FFFD */

typedef struct text_case {
    const char *bytes, *text;
} text_case;

/* From the Unicode standard, tables 3-8 to 3-11, and what else is known of maximal subparts. Written out, not computed. */
static const text_case cases[] = {
    {"", ""},
    {"plain", "plain"},
    {"\x7F\xC2\x80\xDF\xBF", "\x7F\xC2\x80\xDF\xBF"},
    {"\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF", "\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF"},
    {"\xF0\x90\x80\x80\xF4\x8F\xBF\xBF", "\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"},
    /* 3-8: ill-formed in general */
    {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", R R R R R R R R "A"},
    /* 3-9: surrogates */
    {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", R R R R R R R R "A"},
    /* 3-10: others */
    {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", R R R R R "A" R R "B"},
    /* 3-11: truncated */
    {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", R R R R "A"},
    {"\xE2\x82", R},
    {"\xE2\x82\x41", R "A"},
    {"\xE2\x82\xE2\x82\xAC", R "\xE2\x82\xAC"},
    {"\xF0\x9F\x98", R},
    {"\xF0\x9F\x98\xF0\x9F\x98\x80", R "\xF0\x9F\x98\x80"},
    {"\xF0\x9F\x98\xFF", R R},
    {"\xED\xA0\x80", R R R},
    {"\xFF", R},
    {"\xC0\x80", R R},
    {"\xC1\xBF\xF5\x80\x80\x80\xF8\xFE", R R R R R R R R},
    {"\xF0\x8F\xBF\xBF", R R R R},
    {"\xE0\x9F\xBF", R R R},
    {"\xF4\x90\x80\x80", R R R R},
    {"\x80\x80\xC3\xA9\x80", R R "\xC3\xA9" R},
    {"a\xC3", "a" R},
    {"\xE6\xAD", R},
    {R, R},
    /* family: four emoji with joiners between */
    {"\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7",
     "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7"},
};

/* Whether a text consists of whole characters; written apart from the decoder. */
static int whole(const char *text, size_t size)
{
    const unsigned char *t = (const unsigned char *)text;
    for (size_t i = 0; i < size;) {
        const int follow = t[i] < 0x80                   ? 0
                           : t[i] >= 0xC2 && t[i] < 0xE0 ? 1
                           : (t[i] & 0xF0) == 0xE0       ? 2
                           : (t[i] & 0xF8) == 0xF0       ? 3
                                                         : -1;
        if (follow < 0 || i + (size_t)follow >= size) return 0;
        for (int k = 1; k <= follow; k++)
            if ((t[i + (size_t)k] & 0xC0) != 0x80) return 0;
        i += (size_t)follow + 1;
    }
    return 1;
}

/* Pushes the bytes in three pieces (any of them may be empty) and returns what was joined. */
static void in_pieces(const char *data, size_t size, size_t first, size_t second, bytes *joined)
{
    const size_t cuts[] = {0, first, second, size};
    text_decoder d = {0};
    bytes delta = {0};
    for (int i = 0; i < 4; i++) {
        delta.size = 0;
        assert_true(i < 3 ? text_decoder_push(&d, data + cuts[i], cuts[i + 1] - cuts[i], &delta)
                          : text_decoder_flush(&d, &delta));
        assert_true(whole(delta.data, delta.size));
        assert_true(bytes_add(joined, delta.data, delta.size));
    }
    assert_int_equal(d.n_held, 0);
    bytes_free(&delta);
}

static void test_known_cases_cut_anywhere(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t size = strlen(cases[i].bytes);
        for (size_t first = 0; first <= size; first++)
            for (size_t second = first; second <= size; second++) {
                bytes joined = {0};
                in_pieces(cases[i].bytes, size, first, second, &joined);
                if (joined.size) assert_string_equal(joined.data, cases[i].text);
                assert_int_equal(joined.size, strlen(cases[i].text));
                bytes_free(&joined);
            }
    }
}

/* Each case behind each: what is held at the end of one may not change the next, unless both make a character together. */
static void test_cases_in_a_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
            bytes both = {0}, joined = {0}, text = {0};
            assert_true(bytes_add_format(&both, "%s.%s", cases[i].bytes, cases[k].bytes));
            assert_true(bytes_add_format(&text, "%s.%s", cases[i].text, cases[k].text));
            in_pieces(both.data, both.size, strlen(cases[i].bytes), both.size, &joined);
            assert_string_equal(joined.data, text.data);
            bytes_free(&both);
            bytes_free(&joined);
            bytes_free(&text);
        }
}

static void test_when_text_appears(void **state)
{
    (void)state;
    text_decoder d = {0};
    bytes out = {0};
    static const char smile[] = "\xF0\x9F\x98\x80";
    for (int i = 0; i < 3; i++) {
        assert_true(text_decoder_push(&d, smile + i, 1, &out));
        assert_int_equal(out.size, 0);
    }
    assert_true(text_decoder_push(&d, smile + 3, 1, &out));
    assert_string_equal(out.data, smile);
    /* What can no longer become a character is shown with the byte that says so, not later. */
    out.size = 0;
    assert_true(text_decoder_push(&d, "\xF0\x9F", 2, &out));
    assert_int_equal(out.size, 0);
    assert_true(text_decoder_push(&d, "a", 1, &out));
    assert_string_equal(out.data, R "a");
    out.size = 0;
    assert_true(text_decoder_push(&d, "\xED\xA0", 2, &out));
    assert_string_equal(out.data, R R);
    bytes_free(&out);
}

static void test_zero_bytes_and_reuse(void **state)
{
    (void)state;
    text_decoder d = {0};
    bytes out = {0};
    assert_true(text_decoder_push(&d, "a\0b\xC3", 4, &out));
    assert_true(text_decoder_flush(&d, &out));
    assert_true(text_decoder_flush(&d, &out));
    assert_int_equal(out.size, 6);
    assert_memory_equal(out.data, "a\0b" R, 7);
    assert_true(text_decoder_push(&d, "\xA9", 1, &out)); /* nothing of before is left */
    assert_int_equal(out.size, 9);
    assert_true(text_decoder_push(&d, NULL, 0, &out));
    assert_int_equal(out.size, 9);
    bytes_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_cases_cut_anywhere),
        cmocka_unit_test(test_cases_in_a_row),
        cmocka_unit_test(test_when_text_appears),
        cmocka_unit_test(test_zero_bytes_and_reuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
