/* The kernels against the values of the oracle (tests/kernels/make_vectors.py, which also says how the file is
 * made). */
#include "kernel_checks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/ref/ref.h"

enum { NAME_BYTES = 24, HEAD_BYTES = 32 };

static uint8_t *file;
static size_t file_size;

static bool load(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    fseek(f, 0, SEEK_END);
    file_size = (size_t)ftell(f);
    rewind(f);
    file = check_alloc(file_size);
    const bool ok = fread(file, 1, file_size, f) == file_size && file_size > 8 && !memcmp(file, "KVECTORS", 8);
    fclose(f);
    return ok;
}

/* The payload of a record; a missing one ends the process, for the file belongs to this test. */
static void *vector(const char *name, size_t *bytes)
{
    for (size_t at = 8; at + HEAD_BYTES <= file_size;) {
        uint32_t size;
        memcpy(&size, file + at + NAME_BYTES, sizeof size);
        if (!strncmp((const char *)file + at, name, NAME_BYTES)) {
            if (bytes) *bytes = size;
            return file + at + HEAD_BYTES;
        }
        at += HEAD_BYTES + (size + 7u) / 8 * 8;
    }
    fprintf(stderr, "kernel vectors: no record \"%s\"\n", name);
    abort();
}

static float *vector_of(const char *group, const char *part, size_t *n)
{
    char name[2 * NAME_BYTES];
    size_t bytes;
    snprintf(name, sizeof name, "%s %s", group, part);
    float *values = vector(name, &bytes);
    if (n) *n = bytes / sizeof *values;
    return values;
}

static bool same(const kernel_table *table, const char *what, const float *want, const float *got, size_t n)
{
    const size_t at = first_difference(want, got, n);
    return at == n ||
           check_failed(table, "oracle, %s: %a expected at %zu, got %a", what, (double)want[at], at, (double)got[at]);
}

static bool exp_vectors(const kernel_table *table)
{
    size_t n;
    const float *x = vector_of("exp32", "x", &n), *y = vector_of("exp32", "y", NULL);
    for (size_t i = 0; i < n; i++) {
        const float got = ref_exp32(x[i]);
        if (first_difference(&y[i], &got, 1) == 0)
            return check_failed(table, "oracle, exp32 of %a: %a expected, got %a", (double)x[i], (double)y[i], (double)got);
    }
    return true;
}

static bool elementwise_vectors(const kernel_table *table)
{
    size_t n;
    float got[4096];
    uint16_t halves[4096];
    const float *gate = vector_of("swiglu", "gate", &n);
    table->swiglu(got, gate, vector_of("swiglu", "up", NULL), n);
    if (!same(table, "swiglu", vector_of("swiglu", "y", NULL), got, n)) return false;
    const float *x = vector_of("half", "x", &n);
    table->to_half(halves, x, n);
    if (memcmp(halves, vector("half y", NULL), n * sizeof *halves)) return check_failed(table, "oracle, to_half differs");
    static const char *const norms[] = {"rmsnorm 24", "rmsnorm 80", "rmsnorm 257"};
    for (size_t i = 0; i < 3; i++) {
        x = vector_of(norms[i], "x", &n);
        table->rmsnorm(got, x, vector_of(norms[i], "w", NULL), n, 1e-6f);
        if (!same(table, norms[i], vector_of(norms[i], "y", NULL), got, n)) return false;
    }
    static const char *const turns[] = {"rope 64 0", "rope 64 1", "rope 64 777", "rope 24 40000"};
    for (size_t i = 0; i < 4; i++) {
        x = vector_of(turns[i], "x", &n);
        memcpy(got, x, n * sizeof *x);
        table->rope(got, n, vector_of(turns[i], "c", NULL), vector_of(turns[i], "s", NULL));
        if (!same(table, turns[i], vector_of(turns[i], "y", NULL), got, n)) return false;
    }
    return true;
}

static void *place_heap(int number, size_t size, size_t align)
{
    (void)number, (void)align;
    return check_alloc(size);
}

static bool matrix_vectors(const kernel_table *table)
{
    size_t cols, rows;
    float got[64];
    const float *x = vector_of("quantise", "x", &cols);
    activations a;
    void *buffer = check_alloc(activations_bytes(1, cols));
    activations_place(&a, 1, cols, buffer);
    bool ok = table->quantise(&a, 0, x, cols, 0, a.superblocks);
    ok = ok && !memcmp(a.q, vector("quantise q", NULL), a.superblocks * SUPERBLOCK);
    ok = ok && same(table, "quantise d", vector_of("quantise", "d", NULL), a.d, a.superblocks * GROUPS);
    five_source source = {.cols = cols, .plane_bytes = (cols + 7) / 8, .planes = vector("five planes", NULL)};
    source.levels = vector("five levels", NULL);
    source.scale = vector_of("five", "scale", &rows);
    source.rows = rows;
    five_matrix m;
    five_source_pack(&source, table, &m, place_heap);
    table->five_multiply(&m, 0, m.tiles, &a, got, rows);
    ok = ok && same(table, "five_multiply", vector_of("five", "y", NULL), got, rows);
    const int8_matrix k = {rows, cols, a.superblocks, vector("int8 k", NULL), vector_of("int8", "scale", NULL)};
    table->int8_multiply(&k, 0, rows, &a, got, rows);
    ok = ok && same(table, "int8_multiply", vector_of("int8", "y", NULL), got, rows);
    free(m.codes);
    free(m.levels);
    free(m.scale);
    free(buffer);
    return ok || check_failed(table, "oracle, matrices differ");
}

static bool attend_vectors(const kernel_table *table)
{
    static const struct {
        size_t dim, heads, positions;
    } cases[] = {{24, 3, 1}, {24, 3, 33}, {24, 3, 257}, {24, 1, 513}, {64, 5, 65}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char group[NAME_BYTES], name[2 * NAME_BYTES];
        const size_t dim = cases[i].dim;
        const uint16_t *k[3], *v[3];
        float got[5 * 64];
        snprintf(group, sizeof group, "attend %zu %zu %zu", dim, cases[i].heads, cases[i].positions);
        for (size_t c = 0; c < 3; c++) {
            snprintf(name, sizeof name, "%s k", group);
            k[c] = (const uint16_t *)vector(name, NULL) + c * ATTEND_CHUNK * dim;
            snprintf(name, sizeof name, "%s v", group);
            v[c] = (const uint16_t *)vector(name, NULL) + c * ATTEND_CHUNK * dim;
        }
        attention a = {.q = vector_of(group, "q", NULL),
                       .heads = cases[i].heads,
                       .head_dim = dim,
                       .q_scale = 1.0f / sqrtf((float)dim),
                       .positions = cases[i].positions,
                       .k = k,
                       .v = v,
                       .out = got};
        a.scratch = check_alloc(4 * 3 * sizeof *a.scratch);
        table->attend(&a);
        free(a.scratch);
        if (!same(table, group, vector_of(group, "y", NULL), got, cases[i].heads * dim)) return false;
    }
    return true;
}

bool kernel_check_vectors(const kernel_table *table, const char *path)
{
    if (!load(path)) return check_failed(table, "%s cannot be read", path);
    const bool ok = exp_vectors(table) && elementwise_vectors(table) && matrix_vectors(table) && attend_vectors(table);
    free(file);
    return ok;
}
