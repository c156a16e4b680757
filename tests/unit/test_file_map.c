/* file/map.h: what is mapped, and what is refused in which words. */
#include "file/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "support_trtc.h"

static char folder[] = BINARY_DIR "/map_XXXXXX";
static char path[sizeof folder + 16];

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/file", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void expect_refused(const char *which, outrider_status status, const char *words)
{
    outrider_error err = {0};
    file_map map;
    assert_int_equal(file_map_open(&map, which, &err), status);
    assert_non_null(strstr(err.message, which));
    assert_non_null(strstr(err.message, words));
    assert_null(map.data);
    assert_null(map.path);
    file_map_close(&map);
}

static void test_map_of_a_file(void **state)
{
    (void)state;
    enum { SIZE = 3 * 65536 + 5 };
    uint8_t *data = malloc(SIZE);
    assert_non_null(data);
    for (int i = 0; i < SIZE; i++) data[i] = (uint8_t)(i * 31 + i / 256);
    toy_save(path, data, SIZE);
    file_map map;
    assert_int_equal(file_map_open(&map, path, NULL), OUTRIDER_OK);
    assert_int_equal(map.size, SIZE);
    assert_string_equal(map.path, path);
    assert_memory_equal(map.data, data, SIZE);
    /* Released pages hold the same bytes when they are read again, whatever the range. */
    for (size_t at = 0; at < SIZE; at += 12345) file_map_release(&map, map.data + at, SIZE - at);
    file_map_release(&map, map.data, 0);
    file_map_release(&map, map.data + SIZE, 0);
    assert_memory_equal(map.data, data, SIZE);
    file_map_close(&map);
    file_map_close(&map);
    free(data);
}

static void test_map_refuses_what_is_no_file(void **state)
{
    (void)state;
    expect_refused(folder, OUTRIDER_FAILURE, "is a folder");
    expect_refused("/dev/null", OUTRIDER_FAILURE, "not a regular file");
    expect_refused(BINARY_DIR "/no such file", OUTRIDER_FAILURE, "No such file");
    toy_save(path, "", 0);
    expect_refused(path, OUTRIDER_BAD_FILE, "is empty");
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_refused(path, OUTRIDER_FAILURE, "not a regular file"); /* and does not wait for a writer */
    unlink(path);
}

static void test_map_refuses_what_may_not_be_read(void **state)
{
    (void)state;
    if (geteuid() == 0) skip(); /* may read everything */
    toy_save(path, "x", 1);
    assert_int_equal(chmod(path, 0), 0);
    expect_refused(path, OUTRIDER_FAILURE, "Permission denied");
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map_of_a_file),
        cmocka_unit_test(test_map_refuses_what_is_no_file),
        cmocka_unit_test(test_map_refuses_what_may_not_be_read),
    };
    return cmocka_run_group_tests_name("file_map", tests, set_up, tear_down);
}
