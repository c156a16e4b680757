/* base/bytes.h: the buffer grows, stays zero-terminated, and keeps what it had when something fails. */
#include "base/bytes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void test_adding(void **state)
{
    (void)state;
    bytes b = {0};
    assert_true(bytes_add_text(&b, "ab"));
    assert_true(bytes_add(&b, "\0c", 2));
    assert_true(bytes_add(&b, NULL, 0));
    assert_true(bytes_add_format(&b, "-%d-%s", 42, "x"));
    assert_int_equal(b.size, 9);
    assert_memory_equal(b.data, "ab\0c-42-x", 10);
    bytes_free(&b);
    assert_null(b.data);
    assert_int_equal(b.size, 0);
    bytes_free(&b);
}

static void test_growing(void **state)
{
    (void)state;
    bytes b = {0};
    for (int i = 0; i < 10000; i++) {
        char c = (char)('a' + i % 26);
        assert_true(bytes_add(&b, &c, 1));
        assert_true(b.size < b.capacity);
        assert_int_equal(b.data[b.size], 0);
    }
    for (int i = 0; i < 10000; i++) assert_int_equal(b.data[i], 'a' + i % 26);
    char *before = b.data;
    assert_true(bytes_reserve(&b, 1 << 20));
    before = b.data;
    for (int i = 0; i < 1 << 10; i++) assert_true(bytes_add(&b, "0123456789", 10));
    assert_ptr_equal(b.data, before); /* what was reserved is not moved */
    bytes_free(&b);
}

static void test_long_format(void **state)
{
    (void)state;
    bytes b = {0};
    assert_true(bytes_add_format(&b, "%0*d", 5000, 7));
    assert_int_equal(b.size, 5000);
    assert_int_equal(b.data[0], '0');
    assert_int_equal(b.data[4999], '7');
    assert_int_equal(b.data[5000], 0);
    bytes_free(&b);
}

static void test_impossible_size_keeps_what_was_there(void **state)
{
    (void)state;
    bytes b = {0};
    assert_true(bytes_add_text(&b, "kept"));
    assert_false(bytes_reserve(&b, SIZE_MAX));
    assert_false(bytes_reserve(&b, SIZE_MAX - 4));
    assert_string_equal(b.data, "kept");
    bytes_free(&b);
}

static void test_files(void **state)
{
    (void)state;
    char path[] = BINARY_DIR "/bytes-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    bytes b = {0};
    assert_true(bytes_add_text(&b, "old"));
    assert_true(bytes_read_file(&b, path)); /* an empty file: still a C string */
    assert_int_equal(b.size, 0);
    assert_string_equal(b.data, "");
    size_t size = 3 * (1 << 16) + 5; /* more than the reader takes at once */
    char *text = malloc(size);
    assert_non_null(text);
    for (size_t i = 0; i < size; i++) text[i] = (char)(i * 31 >> 3);
    assert_int_equal(write(fd, text, size), size);
    close(fd);
    assert_true(bytes_read_file(&b, path));
    assert_int_equal(b.size, size);
    assert_memory_equal(b.data, text, size);
    assert_int_equal(b.data[size], 0);
    free(text);
    unlink(path);
    errno = 0;
    bytes none = {0};
    assert_false(bytes_read_file(&none, path));
    assert_int_equal(errno, ENOENT);
    assert_null(none.data);
    assert_false(bytes_read_file(&none, BINARY_DIR)); /* a folder */
    assert_null(none.data);
    bytes_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adding),      cmocka_unit_test(test_growing),
        cmocka_unit_test(test_long_format), cmocka_unit_test(test_impossible_size_keeps_what_was_there),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
