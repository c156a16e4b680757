/* Nothing is allocated between the first and the last text of an answer, plain or drafted: this program's own malloc counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "check.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTS 0 /* a sanitizer brings its own malloc */
#else
#define COUNTS 1
#endif

static atomic_int calls;

#if COUNTS
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

void *malloc(size_t size)
{
    atomic_fetch_add(&calls, 1);
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    atomic_fetch_add(&calls, 1);
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    atomic_fetch_add(&calls, 1);
    return __libc_realloc(p, size);
}
#endif

/* Counts at the first and at the latest text. */
typedef struct marks {
    int first, last;
    bool begun;
} marks;

static bool mark(void *user, const char *text, size_t size, const uint32_t *ids, size_t n)
{
    (void)text, (void)size, (void)ids, (void)n;
    marks *m = user;
    m->last = atomic_load(&calls);
    if (!m->begun) m->first = m->last;
    m->begun = true;
    return true;
}

static void test_no_allocation_in_the_loop(void **state)
{
    (void)state;
    if (!COUNTS) skip();
    outrider_model *model = check_open(SOURCE_DIR "/models/demo", NULL, true, NULL, 2);
    assert_true(atomic_load(&calls) > 0);
    for (int length = -2; length <= 4; length += 2) {
        outrider_session *s = check_session(model, OUTRIDER_ROLE_PAIR, true);
        const outrider_message message = {"user", "Explain simply why the sky is blue."};
        const char *const stops[] = {"never said", "nor this"};
        outrider_generate_options o = OUTRIDER_GENERATE_OPTIONS_INIT;
        outrider_error err;
        marks m = {0};
        o.max_tokens = 150;
        o.ignore_end = true;
        o.draft_length = length;
        o.stop = stops;
        o.n_stop = 2;
        check_ok(outrider_session_push_chat(s, &message, 1, 0, &err), &err);
        check_ok(outrider_session_generate(s, &o, mark, &m, NULL, &err), &err);
        assert_true(m.begun);
        assert_int_equal(m.last, m.first);
        outrider_session_close(s);
    }
    outrider_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_allocation_in_the_loop)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
