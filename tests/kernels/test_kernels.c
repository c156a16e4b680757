/* Every function of every instruction set's kernel table that this processor runs, against the plain C and against the
 * oracle.
 *
 *   test_kernels            the test
 *   test_kernels --brief    the test without the longest cases (for emulated processors)
 *   test_kernels --plant    the same comparisons with one wrong bit planted in each function in turn; exits with 1 when
 *                           all of them were found
 *   test_kernels --bench    times the matrix kernels
 *
 * With OUTRIDER_NO_CMOCKA it is a program of its own, for targets that have no cmocka. */
#include "kernel_checks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static check_depth depth = CHECK_FULL;

#if defined(OUTRIDER_NO_CMOCKA)
static bool all_passed = true;
#define assert_true(condition)                                              \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            all_passed = false;                                             \
        }                                                                   \
    } while (0)
struct CMUnitTest {
    const char *name;
    void (*run)(void **);
};
#define cmocka_unit_test(function) \
    {                              \
#function, function        \
    }
static int run_tests(const struct CMUnitTest *tests, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        printf("%s\n", tests[i].name);
        tests[i].run(NULL);
    }
    puts(all_passed ? "passed" : "FAILED");
    return all_passed ? 0 : 1;
}
#define RUN(tests) run_tests(tests, sizeof tests / sizeof *tests)
#else
#include <cmocka.h>
#define RUN(tests) cmocka_run_group_tests(tests, NULL, NULL)
#endif

/* Runs the check `name` on every table that there is. */
static bool check_all_tables(const char *name)
{
    bool ok = true;
    for (int isa = 0; isa < CPU_ISAS; isa++) {
        if (!cpu_has((cpu_isa)isa)) continue;
        kernel_table table;
        kernels_fill(&table, (cpu_isa)isa);
        for (size_t i = 0; i < kernel_check_count; i++)
            if (!strcmp(kernel_checks[i].name, name)) ok = kernel_checks[i].run(&table, depth) && ok;
    }
    return ok;
}

#define TEST_OF(name)                         \
    static void test_##name(void **state)     \
    {                                         \
        (void)state;                          \
        assert_true(check_all_tables(#name)); \
    }

TEST_OF(five_pack_row)
TEST_OF(five_multiply)
TEST_OF(int8_multiply)
TEST_OF(quantise)
TEST_OF(rmsnorm)
TEST_OF(rope)
TEST_OF(to_half)
TEST_OF(attend)
TEST_OF(swiglu)
TEST_OF(add)
TEST_OF(argmax)

static void test_oracle_vectors(void **state)
{
    (void)state;
    for (int isa = 0; isa < CPU_ISAS; isa++) {
        if (!cpu_has((cpu_isa)isa)) continue;
        kernel_table table;
        kernels_fill(&table, (cpu_isa)isa);
        assert_true(kernel_check_vectors(&table, SOURCE_DIR "/tests/kernels/vectors.bin"));
    }
}

/* How many of the planted functions of this table the checks find. */
static size_t planted_found(const kernel_table *table)
{
    size_t found = 0;
    kernel_check_quiet = true;
    for (size_t i = 0; i < kernel_check_count; i++) {
        kernel_table planted;
        kernel_plant(&planted, table, kernel_checks[i].name);
        if (kernel_checks[i].run(&planted, CHECK_BRIEF))
            fprintf(stderr, "%s: a wrong bit of %s was not found\n", cpu_isa_name(table->isa), kernel_checks[i].name);
        else
            found++;
    }
    kernel_check_quiet = false;
    return found;
}

static void test_planted_bit_is_found(void **state)
{
    (void)state;
    for (int isa = 0; isa < CPU_ISAS; isa++) {
        if (!cpu_has((cpu_isa)isa)) continue;
        kernel_table table;
        kernels_fill(&table, (cpu_isa)isa);
        assert_true(planted_found(&table) == kernel_check_count);
    }
}

/* The exit status of a run in which every function of every table goes wrong, one after the other: 1 (a failed
 * comparison) when all of them were found. */
static int plant_mode(void)
{
    bool missed = false;
    for (int isa = 0; isa < CPU_ISAS; isa++) {
        if (!cpu_has((cpu_isa)isa)) continue;
        kernel_table table, planted;
        kernels_fill(&table, (cpu_isa)isa);
        for (size_t i = 0; i < kernel_check_count; i++) {
            kernel_plant(&planted, &table, kernel_checks[i].name);
            if (kernel_checks[i].run(&planted, CHECK_BRIEF)) missed = true;
        }
    }
    return missed ? 0 : 1;
}

static void bench_mode(void)
{
    for (int isa = 0; isa < CPU_ISAS; isa++) {
        if (!cpu_has((cpu_isa)isa)) continue;
        kernel_table table;
        kernels_fill(&table, (cpu_isa)isa);
        kernel_bench(&table);
    }
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    if (!strcmp(mode, "--plant")) return plant_mode();
    if (!strcmp(mode, "--bench")) {
        bench_mode();
        return 0;
    }
    if (!strcmp(mode, "--brief")) depth = CHECK_BRIEF;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_five_pack_row),
        cmocka_unit_test(test_five_multiply),
        cmocka_unit_test(test_int8_multiply),
        cmocka_unit_test(test_quantise),
        cmocka_unit_test(test_rmsnorm),
        cmocka_unit_test(test_rope),
        cmocka_unit_test(test_to_half),
        cmocka_unit_test(test_attend),
        cmocka_unit_test(test_swiglu),
        cmocka_unit_test(test_add),
        cmocka_unit_test(test_argmax),
        cmocka_unit_test(test_oracle_vectors),
        cmocka_unit_test(test_planted_bit_is_found),
    };
    return RUN(tests);
}
