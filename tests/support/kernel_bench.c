/* Times the matrix kernels: not a test. Minima over many runs, because the machine may be shared. */
#include "kernel_checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
static uint64_t cycles(void) { return __rdtsc(); }
#else
static uint64_t cycles(void) { return 0; }
#endif

enum { RUNS = 40, SMALL_ROWS = 192, SMALL_COLS = 1024, LARGE_ROWS = 6144, LARGE_COLS = 8192 };

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *place_heap(int number, size_t size, size_t align)
{
    (void)number, (void)align;
    return check_alloc(size);
}

/* One line: the least time of a call, per 192 weights (twelve rows of 16 columns, or what a 512-bit vector of codes
 * holds). */
static void report(const char *name, size_t width, size_t weights, size_t bytes, uint64_t ns, uint64_t ticks)
{
    const double units = (double)weights / 192.0;
    printf("%-14s T=%-3zu %8.2f ns %8.2f cycles %8.2f cycles/row  %6.2f GB/s\n", name, width, (double)ns / units,
           (double)ticks / units, (double)ticks / units / (double)width, (double)bytes / (double)ns);
}

static void bench_size(const kernel_table *table, const char *label, size_t rows, size_t cols, int runs)
{
    rng r = {12};
    five_source source;
    five_matrix five;
    five_source_make(&source, rows, cols, FIVE_RANDOM, &r);
    five_source_pack(&source, table, &five, place_heap);
    int8_t *k = check_alloc(rows * five.superblocks * SUPERBLOCK);
    for (size_t i = 0; i < rows * cols; i++) k[i] = (int8_t)rng_int(&r, -127, 127);
    const int8_matrix int8 = {rows, cols, five.superblocks, k, source.scale};
    static const size_t widths[] = {1, 2, 3, 4, 5, 6, 7, 8, 16, 64};
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        const size_t width = widths[w];
        float *x = check_alloc(cols * sizeof *x), *y = check_alloc(width * rows * sizeof *y);
        void *buffer = check_alloc(activations_bytes(width, cols));
        activations a;
        activations_place(&a, width, cols, buffer);
        for (size_t t = 0; t < width; t++) {
            fill_floats(x, cols, FILL_BELL, &r);
            table->quantise(&a, t, x, cols, 0, a.superblocks);
        }
        for (int kind = 0; kind < 2; kind++) {
            uint64_t least_ns = UINT64_MAX, least_ticks = UINT64_MAX;
            for (int i = 0; i < runs; i++) {
                const uint64_t ns = now_ns(), ticks = cycles();
                if (kind == 0)
                    table->five_multiply(&five, 0, five.tiles, &a, y, rows);
                else
                    table->int8_multiply(&int8, 0, rows, &a, y, rows);
                const uint64_t took_ticks = cycles() - ticks, took = now_ns() - ns;
                if (took < least_ns) least_ns = took;
                if (took_ticks < least_ticks) least_ticks = took_ticks;
            }
            char name[32];
            snprintf(name, sizeof name, "%s %s", kind ? "int8" : "five", label);
            report(name, width, rows * cols, kind ? rows * cols : five.tiles * five.superblocks * table->tile_bytes, least_ns,
                   least_ticks);
        }
        free(x);
        free(y);
        free(buffer);
    }
    free(k);
    free(five.codes);
    free(five.levels);
    free(five.scale);
    five_source_free(&source);
}

void kernel_bench(const kernel_table *table)
{
    printf("%s, per 192 weights\n", cpu_isa_name(table->isa));
    bench_size(table, "cache", SMALL_ROWS, SMALL_COLS, table->isa == CPU_REF ? 3 : RUNS * 10);
    if (table->isa != CPU_REF) bench_size(table, "memory", LARGE_ROWS, LARGE_COLS, RUNS / 4);
}
