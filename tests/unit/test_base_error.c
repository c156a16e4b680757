/* base/error.h: one line, cut to fit, and NULL allowed; `ensure` ends the process. */
#include "base/error.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void test_status_and_message(void **state)
{
    (void)state;
    outrider_error err;
    assert_int_equal(error_set(&err, OUTRIDER_BAD_FILE, "%s: field %d", "a.trtc", 7), OUTRIDER_BAD_FILE);
    assert_int_equal(err.status, OUTRIDER_BAD_FILE);
    assert_string_equal(err.message, "a.trtc: field 7");
    assert_int_equal(error_set(NULL, OUTRIDER_FAILURE, "nobody listens"), OUTRIDER_FAILURE);
}

static void test_one_line(void **state)
{
    (void)state;
    outrider_error err;
    error_set(&err, OUTRIDER_USAGE, "a\nb\r\nc");
    assert_string_equal(err.message, "a b  c");
}

static void test_cut_to_fit(void **state)
{
    (void)state;
    outrider_error err;
    error_set(&err, OUTRIDER_USAGE, "%0*d", 5000, 1);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
}

static void test_memory(void **state)
{
    (void)state;
    outrider_error err;
    assert_int_equal(error_memory(&err, "the cache", 12345), OUTRIDER_NO_MEMORY);
    assert_non_null(strstr(err.message, "12345"));
    assert_non_null(strstr(err.message, "the cache"));
}

static void test_ensure(void **state)
{
    (void)state;
    ensure(1 + 1 == 2);
    int pipe_ends[2];
    assert_int_equal(pipe(pipe_ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        signal(SIGABRT, SIG_DFL);
        dup2(pipe_ends[1], 2);
        ensure(1 + 1 == 3);
        _exit(0);
    }
    close(pipe_ends[1]);
    char said[512] = {0};
    assert_true(read(pipe_ends[0], said, sizeof said - 1) > 0);
    close(pipe_ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(said, "1 + 1 == 3"));
    assert_non_null(strstr(said, "test_base_error.c"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status_and_message),
        cmocka_unit_test(test_one_line),
        cmocka_unit_test(test_cut_to_fit),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_ensure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
