/* Rule 5 for AVX-512 with VNNI (vpdpbusd: 4 products of an unsigned and a signed byte, summed into 32 bits, exact).
 *
 * Five-value rows: in each 128-bit lane of a vector of codes stand three rows, and a table of the lane's own turns a
 * nibble into the row's integer level + 128, the unsigned operand; the 128 is taken back by starting the sum at -128
 * times the sum of the group's q. A 32-bit element of a sum is a row's group, so a superblock ends with one
 * conversion and one fma for four rows.
 *
 * int8 rows: k + 128 (its bytes with the top bit turned) is the unsigned operand, with the same correction. A vector
 * is 64 columns of one row, so the four lanes of four rows' sums are added up by a transposition, after which the
 * sums stand as above.
 *
 * All sums of products are below 64 * 255 * 127 in magnitude. */
#if !defined(OUTRIDER_EMULATE_AVX512)
#include <immintrin.h>
#endif

#include "kernels/trio.h"
#include "kernels/x86/x86.h"

enum { LANES = 4, TILE_ROWS = 3 * LANES, TILE_BYTES = 16 * 16 * LANES, MOST_FIVE = 8, MOST_INT8 = 5, INT8_BLOCK = 4 };

static void pack_row(uint8_t *tile, size_t row_in_tile, const five_row *row, int k_lo, int k_hi)
{
    (void)k_lo, (void)k_hi;
    trio_pack_row(tile, LANES, row_in_tile, row);
}

/* sum + the products of unsigned u and signed x. gcc 12 copies every sum twice around the intrinsic (60 moves in a
 * loop of 24 of them), and then spills; the asm keeps a sum in its register. */
static inline __m512i add_products(__m512i sum, __m512i u, __m512i x)
{
#if defined(__GNUC__) && !defined(__clang__) && !defined(OUTRIDER_EMULATE_AVX512)
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(u), "v"(x));
    return sum;
#else
    return _mm512_dpbusd_epi32(sum, u, x);
#endif
}

static inline __m512i broadcast16(const void *p) { return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)p)); }

/* Writes ((acc0 + acc2) + (acc1 + acc3)) * scale of each lane's row, for the first n lanes. */
static inline void store_rows(__m512 acc, const float *scale, float *y, size_t n)
{
    const __m512 halves = _mm512_add_ps(acc, _mm512_permute_ps(acc, _MM_SHUFFLE(1, 0, 3, 2)));
    const __m512 whole = _mm512_add_ps(halves, _mm512_permute_ps(halves, _MM_SHUFFLE(2, 3, 0, 1)));
    const __m512i first = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    float sums[LANES];
    _mm_storeu_ps(sums, _mm512_castps512_ps128(_mm512_permutexvar_ps(first, whole)));
    for (size_t i = 0; i < n; i++) y[i] = scale[i] * sums[i];
}

/* The sums are arrays only in name: they must become registers, so the loops over t are unrolled. */
#if defined(OUTRIDER_EMULATE_AVX512)
#define UNROLLED
#else
#define UNROLLED _Pragma("GCC unroll 8")
#endif

/* The lanes' tables of one tile by nibble: of the low nibble's own row, of the high nibble's, and the two parts of
 * the third row (of which one is zero, or both, so that the sum of the parts is level + 128 too). */
typedef struct level_tables {
    __m512i low, high, third_low, third_high;
} level_tables;

/* Bits of 16 table entries, for all four lanes. */
#define ENTRIES(bits) ((__mmask64)0x0001000100010001u * (bits))

/* start + lo, - lo, + hi, - hi in the entries of the four masks; `levels` points to the [lo, hi] of four rows. */
static inline __m512i table_of(int start, const int16_t *levels, unsigned plus_lo, unsigned minus_lo, unsigned plus_hi,
                               unsigned minus_hi)
{
    const __m512i rows = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    const __m512i both = _mm512_permutexvar_epi32(rows, _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)levels)));
    const __m512i lo = _mm512_shuffle_epi8(both, _mm512_setzero_si512()), hi = _mm512_shuffle_epi8(both, _mm512_set1_epi8(2));
    __m512i table = _mm512_set1_epi8((char)start);
    table = _mm512_mask_add_epi8(table, ENTRIES(plus_lo), table, lo);
    table = _mm512_mask_sub_epi8(table, ENTRIES(minus_lo), table, lo);
    table = _mm512_mask_add_epi8(table, ENTRIES(plus_hi), table, hi);
    return _mm512_mask_sub_epi8(table, ENTRIES(minus_hi), table, hi);
}

/* Digits 1, 2, 3, 4 of nibble n stand at n % 5; the third row's ternary digits 1 and 2 at n / 5. */
static inline void make_tables(level_tables *t, const int16_t *levels)
{
    t->low = table_of(-128, levels, 0x0842, 0x1084, 0x2108, 0x4210);
    t->high = table_of(-128, levels + 2 * LANES, 0x0842, 0x1084, 0x2108, 0x4210);
    t->third_low = table_of(-128, levels + 4 * LANES, 0x03e0, 0x7c00, 0, 0);
    t->third_high = table_of(0, levels + 4 * LANES, 0, 0, 0x03e0, 0x7c00);
}

/* One tile times T activation rows from row t0 on. Of the 32 registers the sums take 3 T: beside 18 and more of them
 * there is no room for the tables, which then come from the first-level cache each time (the empty asm makes the
 * compiler believe that the address changes, or it would keep them in registers and spill sums instead). The float
 * sums lie in memory between superblocks. */
#define FIVE_TILE(T)                                                                                                           \
    static void five_tile_##T(const five_matrix *m, size_t tile, const activations *a, size_t t0, float *y, size_t y_stride)   \
    {                                                                                                                          \
        level_tables made;                                                                                                     \
        make_tables(&made, m->levels + tile * TILE_ROWS * 2);                                                                  \
        const level_tables *table = &made;                                                                                     \
        const __m512i nibble = _mm512_set1_epi8(15), minus = _mm512_set1_epi16(-128);                                          \
        const uint8_t *codes = m->codes + tile * m->superblocks * TILE_BYTES;                                                  \
        __m512 acc[3][T];                                                                                                      \
        for (int i = 0; i < 3; i++)                                                                                            \
            for (int t = 0; t < T; t++) acc[i][t] = _mm512_setzero_ps();                                                       \
        for (size_t b = 0; b < m->superblocks; b++, codes += TILE_BYTES) {                                                     \
            const int8_t *q = a->q + (b * a->rows + t0) * SUPERBLOCK;                                                          \
            const int16_t *sums = a->sums + (b * a->rows + t0) * 8;                                                            \
            const float *d = a->d + (b * a->rows + t0) * GROUPS;                                                               \
            __m512i s0[T], s1[T], s2[T];                                                                                       \
            UNROLLED for (int t = 0; t < T; t++) s0[t] = s1[t] = s2[t] = _mm512_madd_epi16(broadcast16(sums + t * 8), minus);  \
            for (int j = 0; j < 16; j++) {                                                                                     \
                if (T >= 6) __asm__("" : "+r"(table));                                                                         \
                const __m512i code = _mm512_load_si512(codes + 64 * j);                                                        \
                const __m512i low = _mm512_and_si512(code, nibble);                                                            \
                const __m512i high = _mm512_and_si512(_mm512_srli_epi16(code, 4), nibble);                                     \
                const __m512i u0 = _mm512_shuffle_epi8(table->low, low), u1 = _mm512_shuffle_epi8(table->high, high);          \
                const __m512i u2 =                                                                                             \
                    _mm512_add_epi8(_mm512_shuffle_epi8(table->third_low, low), _mm512_shuffle_epi8(table->third_high, high)); \
                UNROLLED for (int t = 0; t < T; t++)                                                                           \
                {                                                                                                              \
                    const __m512i x = broadcast16(q + t * SUPERBLOCK + 16 * j);                                                \
                    s0[t] = add_products(s0[t], u0, x);                                                                        \
                    s1[t] = add_products(s1[t], u1, x);                                                                        \
                    s2[t] = add_products(s2[t], u2, x);                                                                        \
                }                                                                                                              \
            }                                                                                                                  \
            UNROLLED for (int t = 0; t < T; t++)                                                                               \
            {                                                                                                                  \
                const __m512 scales = _mm512_broadcast_f32x4(_mm_loadu_ps(d + t * GROUPS));                                    \
                acc[0][t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(s0[t]), scales, acc[0][t]);                                     \
                acc[1][t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(s1[t]), scales, acc[1][t]);                                     \
                acc[2][t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(s2[t]), scales, acc[2][t]);                                     \
            }                                                                                                                  \
        }                                                                                                                      \
        for (int t = 0; t < T; t++)                                                                                            \
            for (size_t i = 0; i < 3; i++) {                                                                                   \
                const size_t row = tile * TILE_ROWS + i * LANES;                                                               \
                if (row >= m->rows) break;                                                                                     \
                const size_t n = m->rows - row < LANES ? m->rows - row : LANES;                                                \
                store_rows(acc[i][t], m->scale + row, y + (t0 + (size_t)t) * y_stride + row, n);                               \
            }                                                                                                                  \
    }

FIVE_TILE(1)
FIVE_TILE(2)
FIVE_TILE(3)
FIVE_TILE(4)
FIVE_TILE(5)
FIVE_TILE(6)
FIVE_TILE(7)
FIVE_TILE(8)

/* Cuts the activation rows into runs of at most `most` that are as even as can be: 9 = 5 + 4, 17 = 6 + 6 + 5. */
static inline size_t next_run(size_t left, size_t most)
{
    const size_t runs = (left + most - 1) / most;
    return (left + runs - 1) / runs;
}

static void five_multiply(const five_matrix *m, size_t begin, size_t end, const activations *x, float *y, size_t y_stride)
{
    static void (*const of[MOST_FIVE])(const five_matrix *, size_t, const activations *, size_t, float *, size_t) = {
        five_tile_1, five_tile_2, five_tile_3, five_tile_4, five_tile_5, five_tile_6, five_tile_7, five_tile_8};
    for (size_t tile = begin; tile < end; tile++)
        for (size_t t = 0; t < x->rows;) {
            const size_t run = next_run(x->rows - t, MOST_FIVE);
            of[run - 1](m, tile, x, t, y, y_stride);
            t += run;
        }
}

/* Element e of lane r of the result: the sum of element e over the lanes of the r-th vector. */
static inline __m512i add_lanes(__m512i a, __m512i b, __m512i c, __m512i d)
{
    const __m512i ab = _mm512_add_epi32(_mm512_shuffle_i32x4(a, b, _MM_SHUFFLE(1, 0, 1, 0)),
                                        _mm512_shuffle_i32x4(a, b, _MM_SHUFFLE(3, 2, 3, 2)));
    const __m512i cd = _mm512_add_epi32(_mm512_shuffle_i32x4(c, d, _MM_SHUFFLE(1, 0, 1, 0)),
                                        _mm512_shuffle_i32x4(c, d, _MM_SHUFFLE(3, 2, 3, 2)));
    return _mm512_add_epi32(_mm512_shuffle_i32x4(ab, cd, _MM_SHUFFLE(2, 0, 2, 0)),
                            _mm512_shuffle_i32x4(ab, cd, _MM_SHUFFLE(3, 1, 3, 1)));
}

/* Rows row .. row + n - 1 (n <= 4) times T activation rows. With fewer than four rows the last one stands for the
 * missing ones, whose results are not written. */
#define INT8_ROWS(T)                                                                                                       \
    static void int8_rows_##T(const int8_matrix *m, size_t row, size_t n, const activations *a, size_t t0, float *y,       \
                              size_t stride)                                                                               \
    {                                                                                                                      \
        const __m512i turn = _mm512_set1_epi8(-128);                                                                       \
        const __m128i minus = _mm_set1_epi16(-128);                                                                        \
        const size_t row_bytes = m->superblocks * SUPERBLOCK;                                                              \
        const int8_t *k0 = m->k + row * row_bytes, *k1 = k0 + (n > 1 ? row_bytes : 0), *k2 = k1 + (n > 2 ? row_bytes : 0), \
                     *k3 = k2 + (n > 3 ? row_bytes : 0);                                                                   \
        __m512 acc[T];                                                                                                     \
        for (int t = 0; t < T; t++) acc[t] = _mm512_setzero_ps();                                                          \
        for (size_t b = 0; b < m->superblocks; b++) {                                                                      \
            const int8_t *q = a->q + (b * a->rows + t0) * SUPERBLOCK;                                                      \
            const int16_t *sums = a->sums + (b * a->rows + t0) * 8;                                                        \
            const float *d = a->d + (b * a->rows + t0) * GROUPS;                                                           \
            __m512i s0[T], s1[T], s2[T], s3[T];                                                                            \
            UNROLLED for (int t = 0; t < T; t++) s0[t] = s1[t] = s2[t] = s3[t] =                                           \
                _mm512_zextsi128_si512(_mm_madd_epi16(_mm_loadu_si128((const __m128i *)(sums + t * 8)), minus));           \
            for (size_t at = b * SUPERBLOCK, i = 0; i < SUPERBLOCK; at += 64, i += 64) {                                   \
                const __m512i u0 = _mm512_xor_si512(_mm512_loadu_si512(k0 + at), turn);                                    \
                const __m512i u1 = _mm512_xor_si512(_mm512_loadu_si512(k1 + at), turn);                                    \
                const __m512i u2 = _mm512_xor_si512(_mm512_loadu_si512(k2 + at), turn);                                    \
                const __m512i u3 = _mm512_xor_si512(_mm512_loadu_si512(k3 + at), turn);                                    \
                UNROLLED for (int t = 0; t < T; t++)                                                                       \
                {                                                                                                          \
                    const __m512i x = _mm512_load_si512(q + t * SUPERBLOCK + i);                                           \
                    s0[t] = add_products(s0[t], u0, x);                                                                    \
                    s1[t] = add_products(s1[t], u1, x);                                                                    \
                    s2[t] = add_products(s2[t], u2, x);                                                                    \
                    s3[t] = add_products(s3[t], u3, x);                                                                    \
                }                                                                                                          \
            }                                                                                                              \
            UNROLLED for (int t = 0; t < T; t++)                                                                           \
            {                                                                                                              \
                const __m512 scales = _mm512_broadcast_f32x4(_mm_loadu_ps(d + t * GROUPS));                                \
                const __m512 dot = _mm512_cvtepi32_ps(add_lanes(s0[t], s1[t], s2[t], s3[t]));                              \
                acc[t] = _mm512_fmadd_ps(dot, scales, acc[t]);                                                             \
            }                                                                                                              \
        }                                                                                                                  \
        for (int t = 0; t < T; t++) store_rows(acc[t], m->scale + row, y + (t0 + (size_t)t) * stride + row, n);            \
    }

INT8_ROWS(1)
INT8_ROWS(2)
INT8_ROWS(3)
INT8_ROWS(4)
INT8_ROWS(5)

static void int8_multiply(const int8_matrix *m, size_t begin, size_t end, const activations *x, float *y, size_t y_stride)
{
    static void (*const of[MOST_INT8])(const int8_matrix *, size_t, size_t, const activations *, size_t, float *,
                                       size_t) = {int8_rows_1, int8_rows_2, int8_rows_3, int8_rows_4, int8_rows_5};
    for (size_t row = begin; row < end; row += INT8_BLOCK) {
        const size_t n = end - row < INT8_BLOCK ? end - row : INT8_BLOCK;
        for (size_t t = 0; t < x->rows;) {
            const size_t run = next_run(x->rows - t, MOST_INT8);
            of[run - 1](m, row, n, x, t, y, y_stride);
            t += run;
        }
    }
}

/* What is no matrix kernel stays with AVX2. */
void kernels_avx512(kernel_table *table)
{
    table->tile_rows = TILE_ROWS;
    table->tile_bytes = TILE_BYTES;
    table->five_pack_row = pack_row;
    table->five_multiply = five_multiply;
    table->int8_multiply = int8_multiply;
}
