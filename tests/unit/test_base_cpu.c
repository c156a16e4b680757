/* base/cpu.h: names, the choice under a mask, and the cgroup quota read from made-up trees. */
#include "base/cpu.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(cpu_isa_name(CPU_REF), "ref");
    assert_string_equal(cpu_isa_name(CPU_AVX2), "avx2");
    assert_string_equal(cpu_isa_name(CPU_AVX512), "avx512");
    assert_string_equal(cpu_isa_name(CPU_NEON), "neon");
    assert_string_equal(cpu_isa_name(CPU_DOTPROD), "dotprod");
}

static void test_only_one_architecture(void **state)
{
    (void)state;
    assert_true(cpu_has(CPU_REF));
    assert_false((cpu_has(CPU_AVX2) || cpu_has(CPU_AVX512)) && (cpu_has(CPU_NEON) || cpu_has(CPU_DOTPROD)));
    if (cpu_has(CPU_AVX512)) assert_true(cpu_has(CPU_AVX2));
    if (cpu_has(CPU_DOTPROD)) assert_true(cpu_has(CPU_NEON));
}

static void test_choose(void **state)
{
    (void)state;
    outrider_error err;
    cpu_isa best, again, isa;
    assert_int_equal(cpu_choose(NULL, &best, &err), OUTRIDER_OK);
    assert_int_equal(cpu_choose("auto", &again, &err), OUTRIDER_OK);
    assert_int_equal(best, again);
    assert_true(cpu_has(best));
    assert_int_equal(cpu_choose("ref", &isa, &err), OUTRIDER_OK);
    assert_int_equal(isa, CPU_REF);
    for (int i = 0; i < CPU_ISAS; i++) {
        isa = CPU_ISAS;
        outrider_status status = cpu_choose(cpu_isa_name((cpu_isa)i), &isa, &err);
        assert_int_equal(status, cpu_has((cpu_isa)i) ? OUTRIDER_OK : OUTRIDER_USAGE);
        assert_int_equal(isa, cpu_has((cpu_isa)i) ? i : CPU_ISAS); /* nothing is written on failure */
        if (cpu_has((cpu_isa)i)) assert_true(i <= (int)best);
    }
    assert_int_equal(cpu_choose("sse9", &isa, &err), OUTRIDER_USAGE);
    assert_non_null(strstr(err.message, "sse9"));
    assert_int_equal(cpu_choose("", &isa, NULL), OUTRIDER_USAGE);
}

static void test_available(void **state)
{
    (void)state;
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    int n = cpu_available();
    assert_in_range(n, 1, CPU_COUNT(&set));
    int first = 0;
    while (!CPU_ISSET(first, &set)) first++;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(cpu_available(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof set, &set), 0);
}

/* -- cgroup trees ---------------------------------------------------------------------------------------------------- */

static char root[PATH_MAX / 2]; /* a fresh folder for each test */

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "%s/cgroup-XXXXXX", BINARY_DIR);
    return mkdtemp(root) ? 0 : -1;
}

static int drop_root(void **state)
{
    (void)state;
    char command[PATH_MAX];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

/* Writes root/NAME, making the folders on the way. */
static void put(const char *name, const char *text)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *c = path + strlen(root) + 1; *c; c++)
        if (*c == '/') {
            *c = 0;
            mkdir(path, 0777);
            *c = '/';
        }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int quota(const char *self)
{
    char path[PATH_MAX];
    put("self", self);
    snprintf(path, sizeof path, "%s/self", root);
    return cpu_quota(root, path);
}

static void test_v2(void **state)
{
    (void)state;
    put("a/b/cpu.max", "200000 100000\n");
    assert_int_equal(quota("0::/a/b\n"), 2);
    put("a/b/cpu.max", "150000 100000\n");
    assert_int_equal(quota("0::/a/b\n"), 2); /* rounded up */
    put("a/b/cpu.max", "1000 100000\n");
    assert_int_equal(quota("0::/a/b\n"), 1);
    put("a/b/cpu.max", "max 100000\n");
    assert_int_equal(quota("0::/a/b\n"), INT_MAX);
}

static void test_v2_least_of_the_nested_groups(void **state)
{
    (void)state;
    put("a/b/c/cpu.max", "800000 100000\n");
    put("a/b/cpu.max", "max 100000\n");
    put("a/cpu.max", "300000 100000\n");
    assert_int_equal(quota("0::/a/b/c\n"), 3);
    put("a/b/c/cpu.max", "100000 100000\n");
    assert_int_equal(quota("0::/a/b/c\n"), 1);
    assert_int_equal(quota("0::/a/b\n"), 3);
    assert_int_equal(quota("0::/a/b/c/not/visible/here\n"), 1);
}

static void test_v2_quota_at_the_mount(void **state)
{
    (void)state;
    put("cpu.max", "400000 100000\n");
    assert_int_equal(quota("0::/\n"), 4);
    assert_int_equal(quota("0::/somewhere/else\n"), 4);
}

static void test_v1(void **state)
{
    (void)state;
    put("cpu,cpuacct/docker/x/cpu.cfs_quota_us", "250000\n");
    put("cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n");
    put("cpu,cpuacct/docker/cpu.cfs_quota_us", "-1\n");
    put("cpu,cpuacct/docker/cpu.cfs_period_us", "100000\n");
    const char *self = "12:cpuset:/docker/x\n4:cpu,cpuacct:/docker/x\n3:memory:/docker/x\n";
    assert_int_equal(quota(self), 3);
    put("cpu,cpuacct/docker/cpu.cfs_quota_us", "100000\n");
    assert_int_equal(quota(self), 1);
    assert_int_equal(quota("12:cpuset:/docker/x\n3:cpuacct:/docker/x\n"), INT_MAX); /* other controllers' paths do not count */
}

static void test_v1_controller_mounted_alone(void **state)
{
    (void)state;
    put("cpu/g/cpu.cfs_quota_us", "600000\n");
    put("cpu/g/cpu.cfs_period_us", "100000\n");
    assert_int_equal(quota("2:cpu:/g\n"), 6);
    assert_int_equal(quota("2:cpuacct,cpu:/g\n"), 6);
}

static void test_hybrid(void **state)
{
    (void)state;
    put("unified/s/cpu.max", "500000 100000\n");
    put("cpu/s/cpu.cfs_quota_us", "700000\n");
    put("cpu/s/cpu.cfs_period_us", "100000\n");
    assert_int_equal(quota("5:cpu:/s\n0::/s\n"), 5);
}

static void test_malformed(void **state)
{
    (void)state;
    assert_int_equal(cpu_quota(root, "/nonexistent/file"), INT_MAX);
    assert_int_equal(quota(""), INT_MAX);
    assert_int_equal(quota("nonsense\n0:\n:\n\n"), INT_MAX);
    const char *bad[] = {"", "\n", "x y\n", "100000\n", "100000 0\n", "-5 100000\n", "0 100000\n", "100000 -1\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put("a/cpu.max", bad[i]);
        assert_int_equal(quota("0::/a\n"), INT_MAX);
    }
    put("a/cpu.max", "9223372036854775807 1\n");
    assert_int_equal(quota("0::/a\n"), INT_MAX);
    put("cpu/a/cpu.cfs_quota_us", "100000\n"); /* and no period */
    assert_int_equal(quota("1:cpu:/a\n"), INT_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_only_one_architecture),
        cmocka_unit_test(test_choose),
        cmocka_unit_test(test_available),
        cmocka_unit_test_setup_teardown(test_v2, make_root, drop_root),
        cmocka_unit_test_setup_teardown(test_v2_least_of_the_nested_groups, make_root, drop_root),
        cmocka_unit_test_setup_teardown(test_v2_quota_at_the_mount, make_root, drop_root),
        cmocka_unit_test_setup_teardown(test_v1, make_root, drop_root),
        cmocka_unit_test_setup_teardown(test_v1_controller_mounted_alone, make_root, drop_root),
        cmocka_unit_test_setup_teardown(test_hybrid, make_root, drop_root),
        cmocka_unit_test_setup_teardown(test_malformed, make_root, drop_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
