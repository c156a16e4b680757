/* decode/ngram.h against a search of the whole history. All seeds are fixed. */
#include "decode/ngram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "support_decode.h"

enum { CONTEXT = 700 };

/* What follows the longest suffix of ids[0..n) that occurred before, the last time that it did; *match: its length. */
static uint32_t search(const uint32_t *ids, size_t n, size_t *match)
{
    for (size_t length = NGRAM_MOST; length >= NGRAM_LEAST; length--)
        for (size_t e = n; e-- > length;)
            if (length < n && memcmp(ids + e - length, ids + n - length, length * sizeof *ids) == 0) {
                *match = length;
                return ids[e];
            }
    *match = 0;
    return DRAFT_NONE;
}

/* Everything that a test needs: the index and the history, with room for proposals after it. */
typedef struct rig {
    ngram ngram;
    draft_source source;
    uint32_t ids[CONTEXT + OUTRIDER_MAX_DRAFT];
    size_t n;
} rig;

static rig r;

static void rig_open(void)
{
    memset(&r, 0, sizeof r);
    assert_int_equal(ngram_open(&r.ngram, CONTEXT, NULL), OUTRIDER_OK);
    r.source = ngram_source(&r.ngram);
}

static void push(const uint32_t *ids, size_t n)
{
    memcpy(r.ids + r.n, ids, n * sizeof *ids);
    r.n += n;
}

static void push_text(const char *text)
{
    for (; *text; text++) r.ids[r.n++] = (uint32_t)*text;
}

/* One step of k proposals, each compared with the search; they are left after the history. Returns how many there were. */
static size_t propose(size_t k)
{
    assert_int_equal(r.source.missing(&r.ngram, r.n), 0);
    r.source.begin(&r.ngram, r.ids, r.n);
    assert_int_equal(r.source.missing(&r.ngram, r.n), 0);
    for (size_t i = 0; i < k; i++) {
        draft_proposal p = {.passes = 7};
        size_t match;
        const uint32_t expected = search(r.ids, r.n + i, &match);
        assert_int_equal(ngram_look(&r.ngram).match, match);
        assert_int_equal(r.source.next(&r.ngram, &p, NULL), OUTRIDER_OK);
        assert_int_equal(p.id, expected);
        assert_int_equal(p.passes, 0);
        if (p.id == DRAFT_NONE) return i;
        assert_true(p.confidence >= 0 && p.confidence <= 16);
        r.ids[r.n + i] = p.id;
    }
    return k;
}

/* The index equals one that never saw anything but the ids it holds. */
static void check_as_fresh(void)
{
    ngram fresh;
    assert_int_equal(ngram_open(&fresh, CONTEXT, NULL), OUTRIDER_OK);
    ngram_take_in(&fresh, r.ids, r.ngram.known);
    assert_int_equal(r.ngram.n, r.ngram.known);
    for (size_t i = 0; i < NGRAM_LENGTHS; i++)
        assert_memory_equal(fresh.table[i], r.ngram.table[i], fresh.slots * sizeof(uint32_t));
    ngram_close(&fresh);
}

/* The proposals after a history, as text. */
static void check_text(const char *history, const char *proposals)
{
    rig_open();
    push_text(history);
    const size_t n = strlen(proposals);
    assert_int_equal(propose(n ? n : 1), n);
    for (size_t i = 0; i < n; i++) assert_int_equal(r.ids[r.n + i], proposals[i]);
    r.source.settle(&r.ngram, r.n);
    check_as_fresh();
    ngram_close(&r.ngram);
}

static void test_known_histories(void **state)
{
    (void)state;
    check_text("a", "");
    check_text("ab", "");
    check_text("abc", "");
    check_text("abcab", ""); /* two ids are too few */
    check_text("abcdefghijklmnopqrstuvwxyz", "");
    check_text("abcXabc", "Xabc");
    check_text("abcXabcYabc", "Yabc");               /* the most recent among equals */
    check_text("dabcXabcYdabc", "XabcYdabcXabcYda"); /* the longest before the most recent */
    check_text("aaaa", "aaaaaaaaaaaaaaaa");
    check_text("aaa", "");
    check_text("aaabaaa", "baaa");
    check_text("abababab", "abababababababab");
    check_text("(x+(x+y)+z)(x+(x+", "y)+z)(x+(x+");  /* nested */
    check_text("1abcdefgh2abcdefgh31abcdefgh", "3"); /* more than NGRAM_MOST: the most recent, though 1 repeats, too */
    check_text("XabcZ.XabQ.Xab", "Q.Xab");
}

/* 16 in a row that run past the end of the history into themselves. */
static void test_past_the_end(void **state)
{
    (void)state;
    for (size_t period = 1; period <= 12; period++) {
        rig_open();
        for (size_t i = 0; i < period + NGRAM_LEAST; i++) r.ids[r.n++] = (uint32_t)(100 + i % period);
        assert_int_equal(propose(16), 16);
        for (size_t i = 0; i < r.n + 16; i++) assert_int_equal(r.ids[i], 100 + i % period);
        r.source.settle(&r.ngram, r.n);
        check_as_fresh();
        ngram_close(&r.ngram);
    }
}

/* What was cut is not proposed after, and what is written in its place is. */
static void test_cut_and_rewritten(void **state)
{
    (void)state;
    rig_open();
    push_text("..abcX..abcY..abc");
    assert_int_equal(propose(1), 1);
    assert_int_equal(r.ids[r.n], 'Y');
    r.source.settle(&r.ngram, r.n);
    r.n = 8; /* "..abcX.." */
    r.source.settle(&r.ngram, r.n);
    check_as_fresh();
    push_text("--abc");
    assert_int_equal(propose(1), 1);
    assert_int_equal(r.ids[r.n], 'X');
    r.source.settle(&r.ngram, r.n);
    r.n = 4;
    r.source.settle(&r.ngram, r.n);
    push_text("bc");
    assert_int_equal(propose(1), 0);
    r.source.settle(&r.ngram, 0);
    r.n = 0;
    check_as_fresh();
    push_text("abcQabc");
    assert_int_equal(propose(4), 4);
    assert_int_equal(r.ids[r.n], 'Q');
    /* A shorter history without settle: begin goes by its length. */
    r.n = 2;
    assert_int_equal(propose(3), 0);
    r.source.settle(&r.ngram, 2);
    check_as_fresh();
    ngram_close(&r.ngram);
}

static uint64_t random_state;

static uint32_t any(uint32_t below) { return (uint32_t)(test_random(&random_state) % below); }

/* Appends random ids, or a copy of what stood somewhere before. */
static void grow(uint32_t alphabet)
{
    size_t n = 1 + any(12);
    if (n > CONTEXT - r.n) n = CONTEXT - r.n;
    const size_t from = r.n ? any((uint32_t)r.n) : 0;
    const bool copy = r.n > 10 && any(3) == 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t id = copy ? r.ids[from + i] : any(alphabet);
        r.ids[r.n++] = id;
    }
}

/* Random histories over small alphabets: growing, proposing, some proposals accepted and followed by another id, cuts of any size, up to the
 * last cell of the context. After each settle the index is as if it had seen nothing else. */
static void test_random_against_search(void **state)
{
    (void)state;
    static const uint32_t alphabets[] = {1, 2, 3, 5, 20};
    for (size_t round = 0; round < 60; round++) {
        const uint32_t alphabet = alphabets[round % 5];
        random_state = round * 77 + 1;
        rig_open();
        for (size_t i = 0; i < 80; i++) {
            if (any(8) == 0 && r.n) {
                r.n = any((uint32_t)r.n + 1);
                r.source.settle(&r.ngram, r.n);
                check_as_fresh();
            }
            grow(alphabet);
            if (any(3) == 0) assert_int_equal(r.source.warm(&r.ngram, r.ids, r.n, NULL), OUTRIDER_OK);
            if (any(3) == 0) continue;
            const size_t made = propose(any(17));
            size_t right = any((uint32_t)made + 1);
            if (right > CONTEXT - r.n) right = CONTEXT - r.n;
            r.n += right;
            r.source.settle(&r.ngram, r.n);
            if (i % 8 == 0) check_as_fresh();
        }
        ngram_close(&r.ngram);
    }
}

/* Every number of accepted proposals of every number made. */
static void test_every_k_and_a(void **state)
{
    (void)state;
    for (size_t k = 0; k <= 16; k++)
        for (size_t a = 0; a <= k; a++) {
            rig_open();
            push_text("the cat sat on the mat and the cat sat on the");
            assert_int_equal(propose(k), k);
            r.n += a;
            r.source.settle(&r.ngram, r.n);
            check_as_fresh();
            r.ids[r.n++] = a % 2 ? '?' : 'x';
            propose(8);
            r.source.settle(&r.ngram, r.n);
            check_as_fresh();
            ngram_close(&r.ngram);
        }
}

/* Confidence rises with the length of the match and while predictions come true, and falls when they do not. */
static void test_confidence(void **state)
{
    (void)state;
    rig_open();
    uint32_t ids[100];
    for (size_t i = 0; i < 100; i++) ids[i] = (uint32_t)i;
    push(ids, 100);
    push(ids, 3);
    ngram_take_in(&r.ngram, r.ids, r.n);
    ngram_guess before = ngram_look(&r.ngram);
    assert_int_equal(before.match, 3);
    const float first = before.confidence;
    for (size_t i = 3; i < 60; i++) {
        push(ids + i, 1);
        ngram_take_in(&r.ngram, r.ids, r.n);
        const ngram_guess guess = ngram_look(&r.ngram);
        assert_int_equal(guess.match, i + 1 < NGRAM_MOST ? i + 1 : NGRAM_MOST);
        assert_int_equal(guess.id, i + 1);
        assert_true(guess.chance > before.chance && guess.chance < 1);
        before = guess;
    }
    assert_true(length_bucket(first) <= 4 && length_bucket(before.confidence) >= 8);
    /* "0 1 2" and then never what followed before. */
    for (size_t i = 0; i < 40; i++) {
        push(ids, 3);
        r.ids[r.n++] = (uint32_t)(1000 + i);
    }
    push(ids, 3);
    ngram_take_in(&r.ngram, r.ids, r.n);
    assert_int_equal(length_bucket(ngram_look(&r.ngram).confidence), 0);
    /* Own proposals say nothing about how good they are. */
    const double chance = ngram_look(&r.ngram).chance;
    const ngram_rate recent = r.ngram.recent;
    propose(16);
    assert_memory_equal(&recent, &r.ngram.recent, sizeof recent);
    r.source.settle(&r.ngram, r.n);
    assert_true(ngram_look(&r.ngram).chance == chance);
    ngram_close(&r.ngram);
}

/* Ids that nothing distinguishes but their high bits, and a context filled with distinct n-grams: still exact. */
static void test_full_tables(void **state)
{
    (void)state;
    for (unsigned shift = 0; shift <= 16; shift += 8) {
        rig_open();
        for (size_t i = 0; i < CONTEXT / 2; i++) r.ids[r.n++] = (uint32_t)i << shift;
        for (size_t i = 0; i < CONTEXT / 2; i++) r.ids[r.n++] = (uint32_t)(i * 7 % 350) << shift;
        propose(1);
        r.source.settle(&r.ngram, r.n);
        check_as_fresh();
        for (size_t n = CONTEXT; n > 10; n -= 7) {
            r.n = n;
            propose(16);
            r.source.settle(&r.ngram, r.n);
        }
        ngram_close(&r.ngram);
    }
}

static void test_bytes(void **state)
{
    (void)state;
    rig_open();
    assert_int_equal(r.ngram.bytes, ngram_bytes(CONTEXT));
    const uint32_t *end = r.ngram.table[NGRAM_LENGTHS - 1] + r.ngram.slots;
    assert_int_equal((const char *)end - (const char *)r.ngram.memory, r.ngram.bytes);
    ngram_close(&r.ngram);
    ngram_close(&r.ngram);
    assert_true(ngram_bytes(32768) <= 128 * 32768); /* at most 128 bytes a position */
    assert_int_equal(ngram_open(&r.ngram, 1, NULL), OUTRIDER_OK);
    r.ids[0] = 5;
    r.n = 1;
    assert_int_equal(propose(3), 0);
    ngram_close(&r.ngram);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_histories),   cmocka_unit_test(test_past_the_end),
        cmocka_unit_test(test_cut_and_rewritten), cmocka_unit_test(test_random_against_search),
        cmocka_unit_test(test_every_k_and_a),     cmocka_unit_test(test_confidence),
        cmocka_unit_test(test_full_tables),       cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
