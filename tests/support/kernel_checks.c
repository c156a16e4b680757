/* The checks of the matrix kernels and of quantise; those of the other functions stand in kernel_check_vector.c. */
#include "kernel_checks.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guarded.h"
#include "kernel_check_vector.h"

enum { CODES, LEVELS, SCALE, Q, D, SUMS, Y, X };
enum { WIDEST = 17, Y_GAP = 3 };

static const size_t all_rows[] = {1, 7, 12, 13, 33};
static const size_t all_cols[] = {1, 24, 63, 64, 65, 80, 208, 255, 256, 257, 600, 4096};
static const size_t all_widths[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 17};
#define COUNT(array) (sizeof(array) / sizeof *(array))

static guarded_where where;

static void *place_guarded(int number, size_t size, size_t align) { return guarded_place(CODES + number, size, align, where); }

static void *place_heap(int number, size_t size, size_t align)
{
    (void)number, (void)align;
    return check_alloc(size);
}

/* -- Activations --------------------------------------------------------------------------------------------------- */

/* Rows of quantised activations, each on its own, from which calls of any width are put together. */
typedef struct row_source {
    size_t superblocks;
    int8_t *q; /* [WIDEST][superblocks][256] */
    float *d;  /* [WIDEST][superblocks][4] */
} row_source;

typedef enum row_kind {
    ROWS_RANDOM,
    ROWS_TOP,
    ROWS_BOTTOM,
    ROWS_ALTERNATING,
    ROWS_HUGE_SCALE,
    ROWS_TINY_SCALE,
    ROWS_ZERO,
    ROW_KINDS
} row_kind;

/* The padding behind cols is zero, as quantise leaves it. */
static void row_source_make(row_source *s, size_t cols, row_kind kind, rng *r)
{
    s->superblocks = (cols + SUPERBLOCK - 1) / SUPERBLOCK;
    const size_t padded = s->superblocks * SUPERBLOCK, scales = s->superblocks * GROUPS;
    s->q = check_alloc(WIDEST * padded);
    s->d = check_alloc(WIDEST * scales * sizeof *s->d);
    for (size_t t = 0; t < WIDEST; t++) {
        for (size_t c = 0; c < cols; c++) {
            int q = rng_int(r, -127, 127);
            if (kind == ROWS_TOP) q = 127;
            if (kind == ROWS_BOTTOM) q = -127;
            if (kind == ROWS_ALTERNATING) q = (c + t) % 2 ? -127 : 127;
            if (kind == ROWS_ZERO) q = 0;
            s->q[t * padded + c] = (int8_t)q;
        }
        for (size_t l = 0; l < scales; l++) {
            float d = rng_unit(r) * 0.02f;
            if (kind == ROWS_HUGE_SCALE) d = FLT_MAX / 127.0f * rng_unit(r);
            if (kind == ROWS_TINY_SCALE) d = rng_next(r) % 2 ? FLT_TRUE_MIN * (float)rng_int(r, 0, 1000) : 1e-32f;
            if (kind == ROWS_ZERO) d = 0.0f;
            s->d[t * scales + l] = d;
        }
    }
}

static void row_source_free(row_source *s)
{
    free(s->q);
    free(s->d);
}

static void place_activations(activations *a, size_t rows, size_t superblocks, void *(*place)(int, size_t, size_t))
{
    a->rows = rows;
    a->superblocks = superblocks;
    a->q = place(Q, rows * superblocks * SUPERBLOCK, 64);
    a->d = place(D, rows * superblocks * GROUPS * sizeof *a->d, 16);
    a->sums = place(SUMS, rows * superblocks * 8 * sizeof *a->sums, 16);
}

/* Rows first .. first + rows - 1 of the source as one call's activations. */
static void gather(activations *a, const row_source *s, size_t first, size_t rows, void *(*place)(int, size_t, size_t))
{
    place_activations(a, rows, s->superblocks, place);
    for (size_t b = 0; b < s->superblocks; b++)
        for (size_t t = 0; t < rows; t++) {
            const size_t at = b * rows + t, from = (first + t) * s->superblocks + b;
            memcpy(a->q + at * SUPERBLOCK, s->q + from * SUPERBLOCK, SUPERBLOCK);
            memcpy(a->d + at * GROUPS, s->d + from * GROUPS, GROUPS * sizeof *a->d);
            memset(a->sums + at * 8, 0, 8 * sizeof *a->sums);
            for (size_t c = 0; c < SUPERBLOCK; c++)
                a->sums[at * 8 + c / 2 % 8] = (int16_t)(a->sums[at * 8 + c / 2 % 8] + a->q[at * SUPERBLOCK + c]);
        }
}

static void *place_heap_activations(int number, size_t size, size_t align) { return place_heap(number, size, align); }

static void free_activations(activations *a)
{
    free(a->q);
    free(a->d);
    free(a->sums);
}

/* -- Matrices ------------------------------------------------------------------------------------------------------ */

/* What a matrix case is about, for messages. */
typedef struct matrix_case {
    const char *name;
    size_t rows, cols;
    int weights, activations;
} matrix_case;

/* A call of width `width` on rows [from, to) of the output wrote exactly those rows, and the bits of `expected`
 * [WIDEST][rows]. */
static bool compare_output(const kernel_table *table, const matrix_case *mc, const float *y, size_t stride, size_t width,
                           size_t from, size_t to, const float *expected)
{
    for (size_t t = 0; t < width; t++) {
        for (size_t r = 0; r < (t + 1 < width ? stride : mc->rows); r++) {
            const float *got = y + t * stride + r;
            float untouched;
            memset(&untouched, GUARDED_PATTERN, sizeof untouched);
            const float *want = r >= from && r < to ? expected + t * mc->rows + r : &untouched;
            if (first_difference(got, want, 1) == 0)
                return check_failed(table,
                                    "%s: %zu x %zu, weights %d, activations %d, width %zu, rows %zu to %zu, %s: row %zu of "
                                    "activation row %zu: %a "
                                    "expected, got %a",
                                    mc->name, mc->rows, mc->cols, mc->weights, mc->activations, width, from, to,
                                    where == GUARDED_END ? "at end" : "at start", r, t, (double)*want, (double)*got);
        }
    }
    if (!guarded_intact())
        return check_failed(table, "%s: %zu x %zu, width %zu, rows %zu to %zu: wrote outside its buffers", mc->name, mc->rows,
                            mc->cols, width, from, to);
    return true;
}

/* Called for each case with its width: multiplies output rows of units [begin, end) and compares. */
typedef struct matrix_call {
    const kernel_table *table;
    const matrix_case *mc;
    const five_matrix *five; /* NULL: int8 */
    const int8_matrix *int8;
    const row_source *x;
    const float *expected;
} matrix_call;

static bool multiply_and_compare(const matrix_call *call, const activations *a, size_t begin, size_t end)
{
    const size_t rows = call->mc->rows, stride = rows + Y_GAP;
    const size_t unit = call->five ? call->table->tile_rows : 1;
    float *y = guarded_place(Y, ((a->rows - 1) * stride + rows) * sizeof *y, sizeof *y, where);
    if (call->five)
        call->table->five_multiply(call->five, begin, end, a, y, stride);
    else
        call->table->int8_multiply(call->int8, begin, end, a, y, stride);
    const size_t to = end * unit < rows ? end * unit : rows;
    return compare_output(call->table, call->mc, y, stride, a->rows, begin * unit, to, call->expected);
}

/* All widths over all rows; all ranges where `ranges`. */
static bool all_calls(const matrix_call *call, size_t units, bool ranges)
{
    for (size_t w = 0; w < COUNT(all_widths); w++) {
        activations a;
        gather(&a, call->x, 0, all_widths[w], place_guarded);
        if (!multiply_and_compare(call, &a, 0, units)) return false;
        if (!ranges || (all_widths[w] != 1 && all_widths[w] != 4 && all_widths[w] != 7)) continue;
        for (size_t begin = 0; begin <= units; begin++)
            for (size_t end = begin; end <= units; end++)
                if (!multiply_and_compare(call, &a, begin, end)) return false;
    }
    return true;
}

/* Weights and activations that go together: everything random, and the corners where sums are largest. */
static const struct {
    five_kind weights;
    row_kind rows;
} five_pairs[] = {
    {FIVE_RANDOM, ROWS_RANDOM},      {FIVE_ALL_HIGH, ROWS_TOP},      {FIVE_ALL_LOW, ROWS_BOTTOM},
    {FIVE_ALL_MINUS_HIGH, ROWS_TOP}, {FIVE_ALTERNATING, ROWS_TOP},   {FIVE_ALTERNATING, ROWS_ALTERNATING},
    {FIVE_RANDOM, ROWS_HUGE_SCALE},  {FIVE_RANDOM, ROWS_TINY_SCALE}, {FIVE_ZERO, ROWS_ALTERNATING},
    {FIVE_ALL_HIGH, ROWS_ZERO},
};

/* Brief runs leave out the widest columns except in the first two pairs with 13 rows. */
static bool left_out(check_depth depth, size_t rows, size_t cols, size_t pair)
{
    return depth == CHECK_BRIEF && ((cols == 4096 && (rows != 13 || pair > 1)) || (rows == 33 && cols != 257));
}

static bool five_case(const kernel_table *table, const matrix_case *mc, rng *r)
{
    kernel_table plain;
    kernels_ref(&plain);
    five_source source;
    row_source x;
    five_matrix of_plain, of_table;
    five_source_make(&source, mc->rows, mc->cols, (five_kind)mc->weights, r);
    row_source_make(&x, mc->cols, (row_kind)mc->activations, r);
    five_source_pack(&source, &plain, &of_plain, place_heap);
    float *expected = check_alloc(WIDEST * mc->rows * sizeof *expected);
    for (size_t t = 0; t < WIDEST; t++) {
        activations a;
        gather(&a, &x, t, 1, place_heap_activations);
        plain.five_multiply(&of_plain, 0, of_plain.tiles, &a, expected + t * mc->rows, mc->rows);
        free_activations(&a);
    }
    bool ok = true;
    for (int w = 0; w < GUARDED_PLACES && ok; w++) {
        where = (guarded_where)w;
        guarded_clear();
        five_source_pack(&source, table, &of_table, place_guarded);
        const matrix_call call = {.table = table, .mc = mc, .five = &of_table, .x = &x, .expected = expected};
        ok = all_calls(&call, of_table.tiles, mc->cols == 257);
    }
    free(expected);
    free(of_plain.codes);
    free(of_plain.levels);
    free(of_plain.scale);
    row_source_free(&x);
    five_source_free(&source);
    return ok;
}

static bool check_five(const kernel_table *table, check_depth depth)
{
    rng r = {1};
    for (size_t i = 0; i < COUNT(all_rows); i++)
        for (size_t c = 0; c < COUNT(all_cols); c++)
            for (size_t p = 0; p < COUNT(five_pairs); p++) {
                if (left_out(depth, all_rows[i], all_cols[c], p)) continue;
                const matrix_case mc = {"five_multiply", all_rows[i], all_cols[c], (int)five_pairs[p].weights,
                                        (int)five_pairs[p].rows};
                if (!five_case(table, &mc, &r)) return false;
            }
    return true;
}

typedef enum int8_kind { INT8_RANDOM, INT8_LOWEST, INT8_TOP, INT8_ALTERNATING, INT8_ZERO } int8_kind;

static const struct {
    int8_kind weights;
    row_kind rows;
} int8_pairs[] = {
    {INT8_RANDOM, ROWS_RANDOM},     {INT8_LOWEST, ROWS_TOP},        {INT8_LOWEST, ROWS_BOTTOM},
    {INT8_TOP, ROWS_BOTTOM},        {INT8_ALTERNATING, ROWS_TOP},   {INT8_ALTERNATING, ROWS_ALTERNATING},
    {INT8_RANDOM, ROWS_HUGE_SCALE}, {INT8_RANDOM, ROWS_TINY_SCALE}, {INT8_ZERO, ROWS_RANDOM},
};

static void int8_fill(int8_t *k, size_t cols, int8_kind kind, rng *r)
{
    for (size_t c = 0; c < cols; c++) {
        int value = rng_int(r, -128, 127);
        if (kind == INT8_LOWEST) value = -128;
        if (kind == INT8_TOP) value = 127;
        if (kind == INT8_ALTERNATING) value = c % 2 ? 127 : -128;
        if (kind == INT8_ZERO) value = 0;
        k[c] = (int8_t)value;
    }
}

static bool int8_case(const kernel_table *table, const matrix_case *mc, rng *r)
{
    kernel_table plain;
    kernels_ref(&plain);
    row_source x;
    row_source_make(&x, mc->cols, (row_kind)mc->activations, r);
    const size_t padded = x.superblocks * SUPERBLOCK;
    int8_t *k = check_alloc(mc->rows * padded);
    float *scale = check_alloc(mc->rows * sizeof *scale), *expected = check_alloc(WIDEST * mc->rows * sizeof *expected);
    for (size_t i = 0; i < mc->rows; i++) {
        int8_fill(k + i * padded, mc->cols, (int8_kind)mc->weights, r);
        scale[i] = rng_bell(r) * 0.01f;
    }
    int8_matrix m = {mc->rows, mc->cols, x.superblocks, k, scale};
    for (size_t t = 0; t < WIDEST; t++) {
        activations a;
        gather(&a, &x, t, 1, place_heap_activations);
        plain.int8_multiply(&m, 0, mc->rows, &a, expected + t * mc->rows, mc->rows);
        free_activations(&a);
    }
    bool ok = true;
    for (int w = 0; w < GUARDED_PLACES && ok; w++) {
        where = (guarded_where)w;
        guarded_clear();
        /* Rows of k need no alignment; the odd bytes in front make that sure. */
        const size_t odd = w == GUARDED_START ? 5 : 0;
        int8_t *placed = (int8_t *)guarded_place(CODES, mc->rows * padded + odd, 1, where) + odd;
        float *placed_scale = guarded_place(SCALE, mc->rows * sizeof *scale, sizeof *scale, where);
        memcpy(placed, k, mc->rows * padded);
        memcpy(placed_scale, scale, mc->rows * sizeof *scale);
        const int8_matrix guarded = {mc->rows, mc->cols, x.superblocks, placed, placed_scale};
        const matrix_call call = {.table = table, .mc = mc, .int8 = &guarded, .x = &x, .expected = expected};
        ok = all_calls(&call, mc->rows, mc->cols == 257);
    }
    free(k);
    free(scale);
    free(expected);
    row_source_free(&x);
    return ok;
}

static bool check_int8(const kernel_table *table, check_depth depth)
{
    rng r = {2};
    for (size_t i = 0; i < COUNT(all_rows); i++)
        for (size_t c = 0; c < COUNT(all_cols); c++)
            for (size_t p = 0; p < COUNT(int8_pairs); p++) {
                if (left_out(depth, all_rows[i], all_cols[c], p)) continue;
                const matrix_case mc = {"int8_multiply", all_rows[i], all_cols[c], (int)int8_pairs[p].weights,
                                        (int)int8_pairs[p].rows};
                if (!int8_case(table, &mc, &r)) return false;
            }
    return true;
}

/* A row of level k times a unit vector gives back k: so packing keeps every weight in its place, whatever a table's
 * form is. */
static bool check_pack(const kernel_table *table, check_depth depth)
{
    (void)depth;
    rng r = {3};
    const size_t rows = 13, cols = 300, padded = 2 * SUPERBLOCK;
    five_source source;
    five_source_make(&source, rows, cols, FIVE_RANDOM, &r);
    bool ok = true;
    for (size_t i = 0; i < rows; i++) source.scale[i] = 1.0f;
    for (int w = 0; w < GUARDED_PLACES && ok; w++) {
        where = (guarded_where)w;
        guarded_clear();
        five_matrix m;
        five_source_pack(&source, table, &m, place_guarded);
        row_source x;
        row_source_make(&x, cols, ROWS_ZERO, &r);
        for (size_t l = 0; l < 2 * GROUPS; l++) x.d[l] = 1.0f;
        for (size_t c = 0; c < cols && ok; c++) {
            memset(x.q, 0, padded);
            x.q[c] = 1;
            activations a;
            gather(&a, &x, 0, 1, place_guarded);
            float *y = guarded_place(Y, rows * sizeof *y, sizeof *y, where);
            table->five_multiply(&m, 0, m.tiles, &a, y, rows);
            for (size_t i = 0; i < rows && ok; i++) {
                const uint8_t *planes = source.planes + 3 * i * source.plane_bytes + c / 8;
                const int p = planes[0] >> c % 8 & 1, n = planes[source.plane_bytes] >> c % 8 & 1,
                          h = planes[2 * source.plane_bytes] >> c % 8 & 1;
                const float want = (float)((p - n) * source.levels[2 * i + (size_t)h]);
                /* Compared as numbers: a zero weight may give either zero. */
                if (y[i] != want)
                    ok = check_failed(table, "five_pack_row: row %zu column %zu: %g expected, got %g", i, c, (double)want,
                                      (double)y[i]);
            }
        }
        row_source_free(&x);
    }
    five_source_free(&source);
    return ok && (guarded_intact() || check_failed(table, "five_pack_row: wrote outside its buffers"));
}

/* -- Quantise ------------------------------------------------------------------------------------------------------ */

/* Row t of `rows`, superblocks [begin, end): equal to the plain C, and nothing else is touched. */
static bool quantise_call(const kernel_table *table, const float *x, size_t cols, size_t rows, size_t t, size_t begin,
                          size_t end, int kind)
{
    kernel_table plain;
    kernels_ref(&plain);
    const size_t superblocks = (cols + SUPERBLOCK - 1) / SUPERBLOCK, blocks = superblocks * rows;
    activations want, got;
    place_activations(&want, rows, superblocks, place_heap_activations);
    memset(want.q, GUARDED_PATTERN, blocks * SUPERBLOCK);
    memset(want.d, GUARDED_PATTERN, blocks * GROUPS * sizeof *want.d);
    memset(want.sums, GUARDED_PATTERN, blocks * 8 * sizeof *want.sums);
    place_activations(&got, rows, superblocks, place_guarded);
    bool ok = plain.quantise(&want, t, x, cols, begin, end);
    if (table->quantise(&got, t, x, cols, begin, end) != ok)
        ok = false;
    else
        ok = !memcmp(want.q, got.q, blocks * SUPERBLOCK) && !memcmp(want.d, got.d, blocks * GROUPS * sizeof *want.d) &&
             !memcmp(want.sums, got.sums, blocks * 8 * sizeof *want.sums) && guarded_intact();
    free_activations(&want);
    if (!ok)
        check_failed(table, "quantise: %zu columns, fill %d, row %zu of %zu, superblocks %zu to %zu differ", cols, kind, t,
                     rows, begin, end);
    return ok;
}

static bool check_quantise(const kernel_table *table, check_depth depth)
{
    (void)depth;
    rng r = {4};
    for (size_t c = 0; c < COUNT(all_cols); c++)
        for (int kind = 0; kind < FILLS; kind++)
            for (int w = 0; w < GUARDED_PLACES; w++) {
                where = (guarded_where)w;
                guarded_clear();
                const size_t cols = all_cols[c], superblocks = (cols + SUPERBLOCK - 1) / SUPERBLOCK;
                float *x = guarded_place(X, cols * sizeof *x, sizeof *x, where);
                fill_floats(x, cols, (fill)kind, &r);
                if (!quantise_call(table, x, cols, 1, 0, 0, superblocks, kind)) return false;
                if (!quantise_call(table, x, cols, 3, 1, 0, superblocks, kind)) return false;
                if (superblocks > 1 && !quantise_call(table, x, cols, 2, 1, 1, superblocks, kind)) return false;
                if (!quantise_call(table, x, cols, 2, 0, superblocks - 1, superblocks, kind)) return false;
                if (!quantise_call(table, x, cols, 2, 0, 0, 0, kind)) return false;
            }
    /* A value that is no number, at every column. */
    const float wrong[] = {NAN, -NAN, INFINITY, -INFINITY};
    const size_t cols = 300;
    where = GUARDED_END;
    guarded_clear();
    float *x = guarded_place(X, cols * sizeof *x, sizeof *x, where);
    for (size_t at = 0; at < cols; at++)
        for (size_t n = 0; n < COUNT(wrong); n++) {
            fill_floats(x, cols, FILL_BELL, &r);
            x[at] = wrong[n];
            activations a;
            place_activations(&a, 1, 2, place_guarded);
            if (table->quantise(&a, 0, x, cols, 0, 2))
                return check_failed(table, "quantise: %g at %zu was taken", (double)wrong[n], at);
            if (!table->quantise(&a, 0, x, cols, at < SUPERBLOCK ? 1 : 0, at < SUPERBLOCK ? 2 : 1))
                return check_failed(table, "quantise: refused for a value outside its range");
        }
    return true;
}

const kernel_check kernel_checks[] = {
    {"five_pack_row", check_pack}, {"five_multiply", check_five},
    {"int8_multiply", check_int8}, {"quantise", check_quantise},
    {"rmsnorm", check_rmsnorm},    {"rope", check_rope},
    {"to_half", check_to_half},    {"attend", check_attend},
    {"swiglu", check_swiglu},      {"add", check_add},
    {"argmax", check_argmax},
};
const size_t kernel_check_count = COUNT(kernel_checks);
