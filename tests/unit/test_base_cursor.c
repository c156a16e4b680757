/* base/cursor.h: every read is checked, and a failed one takes no step. */
#include "base/cursor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void test_values_are_little_endian(void **state)
{
    (void)state;
    const uint8_t data[] = {0xff, 0x78, 0x56, 0x34, 0x12, 0xfe, 0xff, 0xff, 0xff, 0x00, 0x00, 0xc0, 0x3f};
    cursor c = {data, sizeof data, 0};
    assert_non_null(cursor_take(&c, 1)); /* all that follows is unaligned */
    uint32_t u;
    int32_t i;
    float f;
    assert_true(cursor_u32(&c, &u));
    assert_int_equal(u, 0x12345678);
    assert_true(cursor_i32(&c, &i));
    assert_int_equal(i, -2);
    assert_true(cursor_f32(&c, &f));
    assert_true(f == 1.5f);
    assert_int_equal(cursor_left(&c), 0);
}

static void test_short_data_takes_no_step(void **state)
{
    (void)state;
    const uint8_t data[4] = {1, 2, 3, 4};
    for (size_t size = 0; size < 4; size++) {
        cursor c = {data, size, 0};
        uint32_t u = 7;
        int32_t i = 7;
        float f = 7;
        assert_false(cursor_u32(&c, &u));
        assert_false(cursor_i32(&c, &i));
        assert_false(cursor_f32(&c, &f));
        assert_int_equal(c.at, 0);
        assert_int_equal(u, 7);
        assert_int_equal(i, 7);
        assert_true(f == 7);
    }
}

static void test_take_at_the_end(void **state)
{
    (void)state;
    const uint8_t data[4] = {1, 2, 3, 4};
    cursor c = {data, sizeof data, 0};
    assert_null(cursor_take(&c, 5));
    assert_null(cursor_take(&c, SIZE_MAX));
    assert_ptr_equal(cursor_take(&c, 4), data);
    assert_ptr_equal(cursor_take(&c, 0), data + 4);
    assert_null(cursor_take(&c, 1));
    assert_null(cursor_take(&c, SIZE_MAX)); /* at + size would wrap */
    assert_int_equal(c.at, 4);
}

static void test_size_multiply(void **state)
{
    (void)state;
    size_t product = 0;
    assert_true(size_multiply(0, SIZE_MAX, &product));
    assert_int_equal(product, 0);
    assert_true(size_multiply(SIZE_MAX / 3, 3, &product));
    assert_int_equal(product, SIZE_MAX / 3 * 3);
    assert_false(size_multiply(SIZE_MAX / 2 + 1, 2, &product));
    assert_false(size_multiply(SIZE_MAX, SIZE_MAX, &product));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_are_little_endian),
        cmocka_unit_test(test_short_data_takes_no_step),
        cmocka_unit_test(test_take_at_the_end),
        cmocka_unit_test(test_size_multiply),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
