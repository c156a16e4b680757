/* The AVX-512 kernels, emulated, on processors that lack it: the same comparisons as test_kernels makes with the
 * real ones. */
#include "kernel_checks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* src/kernels/x86/avx512_matrix.c, compiled under this name with emulate_avx512.h. */
void kernels_avx512_emulated(kernel_table *table);

static void make_table(kernel_table *table)
{
    kernels_ref(table);
    kernels_avx512_emulated(table);
    table->isa = CPU_AVX512;
}

static bool check(const kernel_table *table, const char *name)
{
    for (size_t i = 0; i < kernel_check_count; i++)
        if (!strcmp(kernel_checks[i].name, name)) return kernel_checks[i].run(table, CHECK_FULL);
    return false;
}

static void test_matrix_kernels(void **state)
{
    (void)state;
    kernel_table table;
    make_table(&table);
    assert_true(check(&table, "five_pack_row"));
    assert_true(check(&table, "five_multiply"));
    assert_true(check(&table, "int8_multiply"));
    assert_true(kernel_check_vectors(&table, SOURCE_DIR "/tests/kernels/vectors.bin"));
}

static void test_planted_bit_is_found(void **state)
{
    (void)state;
    static const char *const names[] = {"five_pack_row", "five_multiply", "int8_multiply"};
    kernel_check_quiet = true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        kernel_table table, planted;
        make_table(&table);
        kernel_plant(&planted, &table, names[i]);
        assert_false(check(&planted, names[i]));
    }
    kernel_check_quiet = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_matrix_kernels), cmocka_unit_test(test_planted_bit_is_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
