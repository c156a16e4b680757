/* The checks of the functions that are no matrix kernels. */
#include "kernel_check_vector.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guarded.h"
#include "kernels/ref/ref.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static float *floats(int slot, size_t n, guarded_where where)
{
    return guarded_place(slot, n * sizeof(float), sizeof(float), where);
}

static bool intact(const kernel_table *table, const char *name, size_t n)
{
    return guarded_intact() || check_failed(table, "%s: %zu values: wrote outside its buffers", name, n);
}

static bool same_floats(const kernel_table *table, const char *name, size_t n, int kind, const float *want, const float *got)
{
    const size_t at = first_difference(want, got, n);
    return at == n || check_failed(table, "%s: %zu values of fill %d: %a expected at %zu, got %a", name, n, kind,
                                   (double)want[at], at, (double)got[at]);
}

static const size_t lengths[] = {1,  2,  7,  8,  9,  15, 16,  17,  23,  24,  31,  32,
                                 33, 63, 64, 65, 72, 80, 127, 128, 255, 256, 257, 4096};

bool check_rmsnorm(const kernel_table *table, check_depth depth)
{
    (void)depth;
    rng r = {5};
    kernel_table plain;
    kernels_ref(&plain);
    static float want[4096];
    for (size_t i = 0; i < COUNT(lengths); i++)
        for (int kind = 0; kind < FILLS; kind++)
            for (int w = 0; w < GUARDED_PLACES; w++) {
                const size_t n = lengths[i];
                const float eps = kind % 2 ? 1e-6f : 1e-5f;
                guarded_clear();
                float *x = floats(0, n, (guarded_where)w), *weight = floats(1, n, (guarded_where)w),
                      *y = floats(2, n, (guarded_where)w);
                fill_floats(x, n, (fill)kind, &r);
                fill_floats(weight, n, FILL_BELL, &r);
                plain.rmsnorm(want, x, weight, n, eps);
                table->rmsnorm(y, x, weight, n, eps);
                if (!same_floats(table, "rmsnorm", n, kind, want, y)) return false;
                table->rmsnorm(x, x, weight, n, eps);
                if (!same_floats(table, "rmsnorm in place", n, kind, want, x) || !intact(table, "rmsnorm", n)) return false;
            }
    return true;
}

bool check_rope(const kernel_table *table, check_depth depth)
{
    (void)depth;
    rng r = {6};
    kernel_table plain;
    kernels_ref(&plain);
    static const size_t turned[] = {2, 4, 6, 8, 12, 16, 18, 24, 32, 40, 64, 80, 128, 256};
    float want[256 + 1], c[128], s[128];
    for (size_t i = 0; i < COUNT(turned); i++)
        for (int kind = 0; kind < FILLS; kind++)
            for (int w = 0; w < GUARDED_PLACES; w++) {
                const size_t n = turned[i];
                guarded_clear();
                float *x = floats(0, n, (guarded_where)w), *cosine = floats(1, n / 2, (guarded_where)w),
                      *sine = floats(2, n / 2, (guarded_where)w);
                fill_floats(x, n, (fill)kind, &r);
                for (size_t j = 0; j < n / 2; j++) {
                    const float angle = rng_unit(&r) * 6.2831853f;
                    c[j] = cosine[j] = cosf(angle);
                    s[j] = sine[j] = sinf(angle);
                }
                memcpy(want, x, n * sizeof *x);
                plain.rope(want, n, c, s);
                table->rope(x, n, cosine, sine);
                if (!same_floats(table, "rope", n, kind, want, x) || !intact(table, "rope", n)) return false;
            }
    return true;
}

static bool same_halves(const kernel_table *table, const float *x, const uint16_t *want, const uint16_t *got, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const bool both_nan = (want[i] & 0x7fff) > 0x7c00 && (got[i] & 0x7fff) > 0x7c00;
        if (want[i] != got[i] && !both_nan)
            return check_failed(table, "to_half: %a: %04x expected, got %04x", (double)x[i], want[i], got[i]);
    }
    return true;
}

/* Every f16 value, the middle between it and the next one, and the f32 neighbours of both, with both signs: whole
 * domain of rounding decisions. */
bool check_to_half(const kernel_table *table, check_depth depth)
{
    rng r = {7};
    kernel_table plain;
    kernels_ref(&plain);
    enum { STEP = 12 };
    static uint16_t want[4096];
    guarded_clear();
    for (uint32_t h = 0; h <= 0x7bff; h++) {
        float *x = floats(0, STEP, GUARDED_END);
        uint16_t *got = guarded_place(1, STEP * sizeof *got, 2, GUARDED_END);
        const float value = ref_from_half((uint16_t)h), next = h < 0x7bff ? ref_from_half((uint16_t)(h + 1)) : 65536.0f;
        const float middle = value + (next - value) * 0.5f;
        const float points[6] = {value,  nextafterf(value, -1.0f), nextafterf(value, INFINITY),
                                 middle, nextafterf(middle, 0.0f), nextafterf(middle, INFINITY)};
        for (size_t i = 0; i < STEP; i++) x[i] = i < 6 ? points[i] : -points[i - 6];
        plain.to_half(want, x, STEP);
        table->to_half(got, x, STEP);
        if (!same_halves(table, x, want, got, STEP)) return false;
    }
    const float special[] = {INFINITY, -INFINITY, FLT_MAX, -FLT_MAX, NAN, FLT_TRUE_MIN, -FLT_TRUE_MIN, 65519.996f, 65520.0f};
    const int rounds = depth == CHECK_FULL ? 400 : 20;
    for (int round = 0; round < rounds; round++) {
        const size_t n = (size_t)rng_int(&r, 1, round % 8 ? 64 : 4096);
        const guarded_where where = (guarded_where)(round % GUARDED_PLACES);
        float *x = floats(0, n, where);
        uint16_t *got = guarded_place(1, n * sizeof *got, 2, where);
        for (size_t i = 0; i < n; i++) {
            /* Half of them anywhere among the finite f32, half where f16 has values. */
            const uint32_t bits = rng_next(&r) & 0xff7fffff;
            memcpy(&x[i], &bits, 4);
            if (i % 2) x[i] = ldexpf(rng_unit(&r) - 0.5f, rng_int(&r, -26, 18));
        }
        x[rng_next(&r) % n] = special[(size_t)round % COUNT(special)];
        plain.to_half(want, x, n);
        table->to_half(got, x, n);
        if (!same_halves(table, x, want, got, n) || !intact(table, "to_half", n)) return false;
    }
    return true;
}

/* -- Attention ----------------------------------------------------------------------------------------------------- */

typedef enum attend_kind { ATTEND_BELL, ATTEND_PEAKED, ATTEND_EQUAL, ATTEND_EXTREME, ATTEND_KINDS } attend_kind;

static uint16_t half_value(attend_kind kind, bool key, rng *r)
{
    float x = rng_bell(r);
    uint16_t h;
    if (kind == ATTEND_PEAKED && key) x *= 20.0f;
    if (kind == ATTEND_EQUAL && key) x = 0.5f;
    if (kind == ATTEND_EXTREME) {
        const uint32_t bits = rng_next(r);
        if (!key || bits % 4 == 0) return (uint16_t)(bits % 0x7c00 | (bits >> 16 & 0x8000));
    }
    ref_to_half(&h, &x, 1);
    return h;
}

enum { SLOT_Q = 0, SLOT_OUT, SLOT_SCRATCH, SLOT_KV, MOST_CHUNKS = 5 };

/* Keys and values end with the last position that is seen: the rows of a chunk behind it may not be read. */
static bool attend_case(const kernel_table *table, size_t dim, size_t heads, size_t positions, attend_kind kind,
                        guarded_where where, rng *r)
{
    kernel_table plain;
    kernels_ref(&plain);
    const size_t chunks = (positions + ATTEND_CHUNK - 1) / ATTEND_CHUNK;
    const uint16_t *k[MOST_CHUNKS], *v[MOST_CHUNKS];
    static float want[8 * ATTEND_MAX_DIM];
    guarded_clear();
    for (size_t c = 0; c < chunks; c++) {
        const size_t n = c + 1 < chunks ? ATTEND_CHUNK : positions - c * ATTEND_CHUNK;
        uint16_t *keys = guarded_place(SLOT_KV + 2 * (int)c, n * dim * sizeof *keys, 2, where);
        uint16_t *values = guarded_place(SLOT_KV + 2 * (int)c + 1, n * dim * sizeof *values, 2, where);
        for (size_t i = 0; i < n * dim; i++) {
            keys[i] = half_value(kind, true, r);
            values[i] = half_value(kind, false, r);
        }
        k[c] = keys;
        v[c] = values;
    }
    float *q = floats(SLOT_Q, heads * dim, where), *out = floats(SLOT_OUT, heads * dim, where);
    fill_floats(q, heads * dim, kind == ATTEND_EXTREME ? FILL_SPREAD : FILL_BELL, r);
    attention a = {.q = q,
                   .heads = heads,
                   .head_dim = dim,
                   .q_scale = 1.0f / sqrtf((float)dim),
                   .positions = positions,
                   .k = k,
                   .v = v,
                   .out = want};
    a.scratch = guarded_place(SLOT_SCRATCH, 4 * chunks * sizeof *a.scratch, sizeof(float), where);
    plain.attend(&a);
    a.out = out;
    table->attend(&a);
    const size_t at = first_difference(want, out, heads * dim);
    if (at < heads * dim)
        return check_failed(table, "attend: %zu heads of %zu, %zu positions, data %d: head %zu value %zu: %a expected, got %a",
                            heads, dim, positions, (int)kind, at / dim, at % dim, (double)want[at], (double)out[at]);
    return intact(table, "attend", heads * dim);
}

bool check_attend(const kernel_table *table, check_depth depth)
{
    rng r = {8};
    static const size_t dims[] = {24, 64, 128, 256}, odd_dims[] = {8, 16, 20, 72, 80};
    static const size_t positions[] = {1,   2,   15,  16,  17,  31,  32,  33,  63,   64,   65,  127,
                                       128, 129, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025};
    for (size_t d = 0; d < COUNT(dims); d++)
        for (size_t p = 0; p < COUNT(positions); p++) {
            if (depth == CHECK_BRIEF && positions[p] > 513) continue;
            for (size_t heads = 1; heads <= 8; heads++) {
                /* The long ones with each number of heads, not with each kind of data as well. */
                const attend_kind kind = (attend_kind)((p + heads) % ATTEND_KINDS);
                if (!attend_case(table, dims[d], heads, positions[p], kind, (guarded_where)(heads % 2), &r)) return false;
                for (int other = 0; other < ATTEND_KINDS && positions[p] < 64 && heads < 4; other++)
                    if (!attend_case(table, dims[d], heads, positions[p], (attend_kind)other, (guarded_where)((heads + 1) % 2),
                                     &r))
                        return false;
            }
        }
    for (size_t d = 0; d < COUNT(odd_dims); d++)
        for (size_t heads = 1; heads <= 5; heads++)
            if (!attend_case(table, odd_dims[d], heads, 40, ATTEND_BELL, GUARDED_END, &r)) return false;
    return true;
}

/* -- Elementwise --------------------------------------------------------------------------------------------------- */

/* Rule 10's branches, as arguments of exp32 (swiglu takes its gate with the sign turned). */
static const float exp_corners[] = {-87.0f,       88.0f,     0.0f,      -0.0f,        -86.99999f,    -87.00001f,
                                    -87.5f,       87.99999f, 88.00001f, 89.0f,        INFINITY,      -INFINITY,
                                    NAN,          FLT_MAX,   -FLT_MAX,  FLT_TRUE_MIN, -FLT_TRUE_MIN, 0.34657359f,
                                    -0.34657359f, 1e-8f,     -1e-8f,    -103.97f,     -1000.0f};

bool check_swiglu(const kernel_table *table, check_depth depth)
{
    rng r = {9};
    kernel_table plain;
    kernels_ref(&plain);
    static float want[8192];
    const int rounds = depth == CHECK_FULL ? 200 : 40;
    for (int round = 0; round < rounds; round++) {
        const size_t n = round < (int)COUNT(lengths) ? lengths[round] : 4096;
        const guarded_where where = (guarded_where)(round % GUARDED_PLACES);
        guarded_clear();
        float *gate = floats(0, n, where), *up = floats(1, n, where), *out = floats(2, n, where);
        fill_floats(up, n, round % 8 ? FILL_BELL : FILL_SPREAD, &r);
        for (size_t i = 0; i < n; i++) {
            gate[i] = (rng_unit(&r) - 0.5f) * (i % 4 ? 180.0f : 10.0f);
            if (i % 64 == 5) gate[i] = -exp_corners[rng_next(&r) % COUNT(exp_corners)];
            /* A run of neighbours around each multiple of ln 2 / 2, where the exponent changes. */
            if (i % 64 > 56)
                gate[i] = nextafterf(i % 64 == 57 ? (float)rng_int(&r, -250, 250) * 0.34657359f : gate[i - 1], 1000.0f);
        }
        plain.swiglu(want, gate, up, n);
        table->swiglu(out, gate, up, n);
        if (!same_floats(table, "swiglu", n, round, want, out)) return false;
        table->swiglu(gate, gate, up, n);
        if (!same_floats(table, "swiglu in place", n, round, want, gate) || !intact(table, "swiglu", n)) return false;
    }
    return true;
}

bool check_add(const kernel_table *table, check_depth depth)
{
    (void)depth;
    rng r = {10};
    kernel_table plain;
    kernels_ref(&plain);
    static float want[4096];
    for (size_t i = 0; i < COUNT(lengths); i++)
        for (int kind = 0; kind < FILLS; kind++)
            for (int w = 0; w < GUARDED_PLACES; w++) {
                const size_t n = lengths[i];
                guarded_clear();
                float *x = floats(0, n, (guarded_where)w), *y = floats(1, n, (guarded_where)w);
                fill_floats(x, n, (fill)kind, &r);
                fill_floats(y, n, (fill)(rng_next(&r) % FILLS), &r);
                memcpy(want, x, n * sizeof *x);
                plain.add(want, y, n);
                table->add(x, y, n);
                if (!same_floats(table, "add", n, kind, want, x) || !intact(table, "add", n)) return false;
            }
    return true;
}

static bool argmax_call(const kernel_table *table, const float *z, size_t n)
{
    kernel_table plain;
    kernels_ref(&plain);
    uint32_t want = 7, got = 7, alone = 7;
    float want_second = 0.0f, got_second = 0.0f;
    const bool ok = plain.argmax(z, n, &want, &want_second);
    if (table->argmax(z, n, &got, &got_second) != ok || table->argmax(z, n, &alone, NULL) != ok)
        return check_failed(table, "argmax: %zu logits: %s", n, ok ? "refused" : "took a value that is no number");
    if (!ok) return true;
    if (got != want || alone != want)
        return check_failed(table, "argmax: %zu logits: id %u expected, got %u and %u", n, want, got, alone);
    /* As numbers: the runner-up may be either zero. */
    return got_second == want_second || n < 2 ||
           check_failed(table, "argmax: %zu logits: second %a expected, got %a", n, (double)want_second, (double)got_second);
}

bool check_argmax(const kernel_table *table, check_depth depth)
{
    (void)depth;
    rng r = {11};
    static const size_t counts[] = {1, 2, 3, 7, 8, 9, 16, 31, 32, 33, 39, 40, 41, 63, 64, 65, 100, 127, 256, 257, 1000, 1001};
    const float wrong[] = {NAN, -NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < COUNT(counts); i++) {
        const size_t n = counts[i];
        for (int kind = 0; kind < FILLS; kind++)
            for (int w = 0; w < GUARDED_PLACES; w++) {
                guarded_clear();
                float *z = floats(0, n, (guarded_where)w);
                fill_floats(z, n, (fill)kind, &r);
                if (!argmax_call(table, z, n)) return false;
                /* Two and three equal winners anywhere. */
                for (int round = 0; round < 20; round++) {
                    fill_floats(z, n, (fill)kind, &r);
                    const float top = kind == FILL_HUGE ? FLT_MAX : 1e10f;
                    for (int j = 0; j < 2 + round % 2; j++) z[rng_next(&r) % n] = top;
                    if (!argmax_call(table, z, n)) return false;
                }
            }
        float *z = floats(0, n, GUARDED_END);
        fill_floats(z, n, FILL_BELL, &r);
        for (size_t at = 0; at < n; at++)
            for (size_t k = 0; k < COUNT(wrong); k++) {
                const float kept = z[at];
                z[at] = wrong[k];
                if (!argmax_call(table, z, n)) return false;
                z[at] = kept;
                if (k == 0 && !argmax_call(table, z, n)) return false;
            }
        for (size_t at = 0; at < n; at++) z[at] = -FLT_MAX;
        if (!argmax_call(table, z, n)) return false;
    }
    return true;
}
