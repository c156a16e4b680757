/* The thread pool: every index once, whatever threads, sizes and grains; many loops in a row; loops after workers have parked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/pool.h"

enum { MOST = 5000, THREADS = 8 };

typedef struct loop {
    _Atomic int seen[MOST];
    atomic_int wrong;
    size_t n, grain;
    int threads;
} loop;

static void visit(void *arg, size_t begin, size_t end, int worker)
{
    loop *l = arg;
    if (begin >= end || end > l->n || worker < 0 || worker >= l->threads) atomic_fetch_add(&l->wrong, 1);
    /* A loop that fits one grain is one part; others begin at multiples of it. */
    if (l->n > l->grain && (begin % l->grain || (end - begin > l->grain && l->threads > 1))) atomic_fetch_add(&l->wrong, 1);
    for (size_t i = begin; i < end; i++) atomic_fetch_add(&l->seen[i], 1);
}

static loop work;

static void run(pool *p, size_t n, size_t grain)
{
    memset(&work, 0, sizeof work);
    work.n = n;
    work.grain = grain;
    work.threads = pool_threads(p);
    pool_run(p, n, grain, visit, &work);
    assert_int_equal(atomic_load(&work.wrong), 0);
    for (size_t i = 0; i < MOST; i++) assert_int_equal(atomic_load(&work.seen[i]), i < n);
}

static void test_every_index_once(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 7, 64, 100, 1023, 5000}, grains[] = {1, 3, 64, 5000, 100000};
    for (int threads = 1; threads <= THREADS; threads++) {
        pool *p;
        outrider_error err;
        assert_int_equal(pool_open(&p, threads, &err), OUTRIDER_OK);
        assert_int_equal(pool_threads(p), threads);
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (size_t g = 0; g < sizeof grains / sizeof *grains; g++) run(p, sizes[s], grains[g]);
        pool_close(p);
    }
}

static void add_up(void *arg, size_t begin, size_t end, int worker)
{
    (void)worker;
    for (size_t i = begin; i < end; i++) ((uint32_t *)arg)[i]++;
}

/* Plain memory written by one loop is seen by the next, 20,000 times over. */
static void test_loops_in_a_row(void **state)
{
    (void)state;
    pool *p;
    outrider_error err;
    uint32_t values[37] = {0};
    assert_int_equal(pool_open(&p, 3, &err), OUTRIDER_OK);
    for (int i = 0; i < 20000; i++) pool_run(p, 37, 2, add_up, values);
    for (size_t i = 0; i < 37; i++) assert_int_equal(values[i], 20000);
    pool_close(p);
}

/* Workers sleep when nothing comes (the process uses next to no time) and wake when something does. */
static void test_idle_workers_sleep(void **state)
{
    (void)state;
    pool *p;
    outrider_error err;
    assert_int_equal(pool_open(&p, 4, &err), OUTRIDER_OK);
    run(p, 100, 1);
    const struct timespec nap = {0, 50000000};
    nanosleep(&nap, NULL);
    const clock_t before = clock();
    for (int i = 0; i < 6; i++) nanosleep(&nap, NULL);
    assert_true((double)(clock() - before) / CLOCKS_PER_SEC < 0.05);
    run(p, 100, 1);
    pool_close(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_index_once),
        cmocka_unit_test(test_loops_in_a_row),
        cmocka_unit_test(test_idle_workers_sleep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
