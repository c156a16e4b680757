/* Data for the kernel checks. */
#include "kernel_checks.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool kernel_check_quiet;

bool check_failed(const kernel_table *table, const char *format, ...)
{
    if (kernel_check_quiet) return false;
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s: ", cpu_isa_name(table->isa));
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return false;
}

size_t first_difference(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(a + i, b + i, sizeof *a) && !(a[i] != a[i] && b[i] != b[i])) return i;
    return n;
}

/* splitmix64 */
uint32_t rng_next(rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)(z >> 32);
}

int rng_int(rng *r, int low, int high) { return low + (int)(rng_next(r) % (uint32_t)(high - low + 1)); }

float rng_unit(rng *r) { return (float)(rng_next(r) >> 8) * 0x1p-24f; }

float rng_bell(rng *r)
{
    float sum = -6.0f;
    for (int i = 0; i < 12; i++) sum += rng_unit(r);
    return sum;
}

void fill_floats(float *x, size_t n, fill kind, rng *r)
{
    const float same = rng_bell(r);
    for (size_t i = 0; i < n; i++) {
        const float sign = rng_next(r) & 1 ? 1.0f : -1.0f;
        switch (kind) {
        case FILL_ZERO: x[i] = 0.0f; break;
        case FILL_NEGATIVE_ZERO: x[i] = rng_next(r) & 1 ? 0.0f : -0.0f; break;
        case FILL_DENORMAL: x[i] = sign * (float)(rng_next(r) >> 9) * FLT_TRUE_MIN; break;
        case FILL_HUGE: x[i] = sign * (rng_next(r) % 4 ? FLT_MAX * rng_unit(r) : FLT_MAX); break;
        case FILL_BELOW_LIMIT: x[i] = sign * nextafterf(1e-30f, 0.0f); break;
        case FILL_ABOVE_LIMIT: x[i] = sign * (rng_next(r) % 3 ? 1e-30f : nextafterf(1e-30f, 1.0f) * rng_unit(r)); break;
        case FILL_EQUAL: x[i] = same; break;
        case FILL_ALTERNATING: x[i] = i % 2 ? -same : same; break;
        case FILL_SPREAD: x[i] = sign * ldexpf(1.0f + rng_unit(r), rng_int(r, -40, 40)); break;
        /* Halves of steps of the int8 scale, where rounding to even shows: the largest magnitude is 127. */
        case FILL_HALVES: x[i] = i % 16 == 0 ? 127.0f : (float)rng_int(r, -253, 253) * 0.5f; break;
        default: x[i] = rng_bell(r);
        }
    }
}

void *check_alloc(size_t size)
{
    size = (size + 63) / 64 * 64;
    void *p = aligned_alloc(64, size ? size : 64);
    if (!p) abort();
    memset(p, 0, size);
    return p;
}

/* One weight: sign and which of the two levels. */
static void weight_of(five_kind kind, size_t c, rng *r, int *sign, int *high)
{
    switch (kind) {
    case FIVE_ALL_HIGH: *sign = 1, *high = 1; break;
    case FIVE_ALL_LOW: *sign = 1, *high = 0; break;
    case FIVE_ALL_MINUS_HIGH: *sign = -1, *high = 1; break;
    case FIVE_ALTERNATING: *sign = c % 2 ? -1 : 1, *high = (int)(c / 2 % 2); break;
    case FIVE_ZERO: *sign = 0, *high = 0; break;
    default: *sign = rng_int(r, -1, 1), *high = *sign ? rng_int(r, 0, 1) : 0;
    }
}

void five_source_make(five_source *s, size_t rows, size_t cols, five_kind kind, rng *r)
{
    *s = (five_source){.rows = rows, .cols = cols, .plane_bytes = (cols + 7) / 8};
    s->planes = check_alloc(rows * 3 * s->plane_bytes);
    s->levels = check_alloc(rows * 2 * sizeof *s->levels);
    s->scale = check_alloc(rows * sizeof *s->scale);
    for (size_t i = 0; i < rows; i++) {
        uint8_t *planes[3];
        for (int p = 0; p < 3; p++) planes[p] = s->planes + (3 * i + (size_t)p) * s->plane_bytes;
        for (size_t c = 0; c < 8 * s->plane_bytes; c++) {
            int sign, high;
            weight_of(kind, c, r, &sign, &high);
            int bits[3] = {sign > 0, sign < 0, high};
            if (c >= cols)
                for (int p = 0; p < 3; p++) bits[p] = rng_int(r, 0, 1);
            for (int p = 0; p < 3; p++) planes[p][c / 8] |= (uint8_t)(bits[p] << c % 8);
        }
        const bool extreme = kind != FIVE_RANDOM;
        s->levels[2 * i] = (int16_t)(extreme ? 127 : rng_int(r, -127, 127));
        s->levels[2 * i + 1] = (int16_t)(extreme ? i % 2 ? -127 : 127 : rng_int(r, -127, 127));
        s->scale[i] = extreme ? 1.0f : rng_bell(r) * 0.01f;
    }
}

void five_source_free(five_source *s)
{
    free(s->planes);
    free(s->levels);
    free(s->scale);
    *s = (five_source){0};
}

void five_source_pack(const five_source *s, const kernel_table *table, five_matrix *m,
                      void *(*place)(int number, size_t size, size_t align))
{
    *m = (five_matrix){.rows = s->rows, .cols = s->cols};
    m->superblocks = (s->cols + SUPERBLOCK - 1) / SUPERBLOCK;
    m->tiles = (s->rows + table->tile_rows - 1) / table->tile_rows;
    const size_t padded = m->tiles * table->tile_rows, tile_bytes = m->superblocks * table->tile_bytes;
    m->codes = place(0, m->tiles * tile_bytes, 64);
    m->levels = place(1, padded * 2 * sizeof *m->levels, 2 * sizeof *m->levels);
    m->scale = place(2, padded * sizeof *m->scale, sizeof *m->scale);
    memset(m->codes, 0, m->tiles * tile_bytes);
    memset(m->levels, 0, padded * 2 * sizeof *m->levels);
    memset(m->scale, 0, padded * sizeof *m->scale);
    memcpy(m->levels, s->levels, s->rows * 2 * sizeof *m->levels);
    memcpy(m->scale, s->scale, s->rows * sizeof *m->scale);
    for (size_t i = 0; i < s->rows; i++) {
        const uint8_t *planes = s->planes + 3 * i * s->plane_bytes;
        const five_row row = {planes, planes + s->plane_bytes, planes + 2 * s->plane_bytes, s->cols};
        table->five_pack_row(m->codes + i / table->tile_rows * tile_bytes, i % table->tile_rows, &row, s->levels[2 * i],
                             s->levels[2 * i + 1]);
    }
}
