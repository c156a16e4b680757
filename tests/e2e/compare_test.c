/* cli/compare.h on answers with a planted difference; test_cli_faults.py compiles and runs this. Prints what fails. */
#include "cli/compare.h"

#include <stdio.h>
#include <string.h>

static int failures;

static void check(int ok, const char *what, int line)
{
    if (ok) return;
    fprintf(stderr, "line %d: %s does not hold\n", line, what);
    failures++;
}
#define CHECK(condition) check((condition), #condition, __LINE__)

enum { N = 40 };

/* Each position changed in turn, on either side; and cut there. */
static void test_every_position(void)
{
    uint32_t plain[N], drafted[N];
    compare_stream a = {plain, N, "aa", "11"}, b = {drafted, N, "aa", "11"};
    compare_difference d;
    for (uint32_t i = 0; i < N; i++) plain[i] = drafted[i] = i * 7 % 13;
    CHECK(compare_streams(&a, &b, &d) && d.kind == COMPARE_SAME && d.plain == -1 && d.drafted == -1);
    for (size_t i = 0; i < N; i++) {
        drafted[i] ^= 1;
        CHECK(!compare_streams(&a, &b, &d) && d.kind == COMPARE_ID && d.index == i);
        CHECK(d.plain == plain[i] && d.drafted == (plain[i] ^ 1));
        CHECK(!compare_streams(&b, &a, &d) && d.index == i && d.drafted == plain[i]);
        drafted[i] ^= 1;
        b.n = i;
        CHECK(!compare_streams(&a, &b, &d) && d.kind == COMPARE_LENGTH && d.index == i && d.plain == plain[i] &&
              d.drafted == -1);
        CHECK(!compare_streams(&b, &a, &d) && d.kind == COMPARE_LENGTH && d.plain == -1 && d.drafted == plain[i]);
        b.n = N;
    }
    drafted[5] ^= 1;
    drafted[9] ^= 1;
    CHECK(!compare_streams(&a, &b, &d) && d.index == 5); /* the first of two */
}

static void test_digests(void)
{
    const uint32_t ids[] = {1, 2, 3};
    compare_stream a = {ids, 3, "aa", "11"}, other_ids = {ids, 3, "ab", "11"}, other_logits = {ids, 3, "aa", "12"};
    compare_difference d;
    CHECK(!compare_streams(&a, &other_ids, &d) && d.kind == COMPARE_IDS);
    CHECK(!compare_streams(&a, &other_logits, &d) && d.kind == COMPARE_LOGITS);
}

static void test_largest_id(void)
{
    const uint32_t a_ids[] = {UINT32_MAX}, b_ids[] = {0};
    compare_stream a = {a_ids, 1, "", ""}, b = {b_ids, 1, "", ""}, none = {NULL, 0, "", ""};
    compare_difference d;
    CHECK(!compare_streams(&a, &b, &d) && d.plain == (int64_t)UINT32_MAX && d.drafted == 0);
    CHECK(compare_streams(&none, &none, &d));
    CHECK(!compare_streams(&none, &a, &d) && d.kind == COMPARE_LENGTH && d.index == 0);
}

static void test_description(void)
{
    const compare_difference id = {COMPARE_ID, 17, 12, 13}, shorter = {COMPARE_LENGTH, 4, 9, -1},
                             logits = {COMPARE_LOGITS, 0, -1, -1};
    char text[160], tiny[8];
    compare_describe(&id, text, sizeof text);
    CHECK(!strcmp(text, "token 17 is 12 plain and 13 drafted"));
    compare_describe(&shorter, text, sizeof text);
    CHECK(strstr(text, "drafted stream ends at token 4") != NULL);
    compare_describe(&logits, text, sizeof text);
    CHECK(strstr(text, "logits") != NULL);
    compare_describe(&id, tiny, sizeof tiny);
    CHECK(strlen(tiny) == sizeof tiny - 1);
}

int main(void)
{
    test_every_position();
    test_digests();
    test_largest_id();
    test_description();
    return failures != 0;
}
