/* base/digest.h against the published SHA-256 vectors (FIPS 180-4 examples and the empty message). */
#include "base/digest.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const struct vector {
    const char *text, *hex;
} vectors[] = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
     "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
};

static void test_one_buffer(void **state)
{
    (void)state;
    char hex[65];
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        digest_of(vectors[i].text, strlen(vectors[i].text), hex);
        assert_string_equal(hex, vectors[i].hex);
    }
}

static void test_million_a_in_parts(void **state)
{
    (void)state;
    char part[1000], hex[65];
    memset(part, 'a', sizeof part);
    digest *d = digest_open();
    assert_non_null(d);
    for (int i = 0; i < 1000; i++) digest_add(d, part, sizeof part);
    digest_hex(d, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    digest_close(d);
}

static void test_reading_does_not_end_it(void **state)
{
    (void)state;
    char hex[65];
    digest *d = digest_open();
    assert_non_null(d);
    digest_hex(d, hex);
    assert_string_equal(hex, vectors[0].hex);
    digest_add(d, "a", 1);
    digest_hex(d, hex);
    digest_hex(d, hex);
    digest_add(d, "bc", 2);
    digest_hex(d, hex);
    assert_string_equal(hex, vectors[1].hex);
    digest_reset(d);
    digest_add(d, vectors[2].text, strlen(vectors[2].text));
    digest_hex(d, hex);
    assert_string_equal(hex, vectors[2].hex);
    digest_close(d);
    digest_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_buffer),
        cmocka_unit_test(test_million_a_in_parts),
        cmocka_unit_test(test_reading_does_not_end_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
