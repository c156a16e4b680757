/* Rule 5 for AVX2.
 *
 * Five-value rows: without a 4-way dot product the levels would need a sign trick and a widening step per 32 products. So the row's integer
 * dot product is split instead: k = k_lo * t_lo + k_hi * t_hi with ternary t, hence dot = k_lo * P + k_hi * Q with P = sum t_lo q and
 * Q = sum t_hi q. The shuffle yields u = t + 1 in 0..2 as the unsigned operand of vpmaddubsw; a 16-bit lane adds 16 such pairs in a superblock
 * (|sum| <= 16 * 2 * 2 * 127 = 8128, no overflow), starts at minus the sum of its q, and one vpmaddwd with k_lo (k_hi) per superblock ends it. Per 32
 * products that is two multiplications and two additions, and the expansion needs no table of the row's levels.
 *
 * int8 rows: |k| (at most 128, unsigned) times q with the sign of k moved onto it; a pair is at most 2 * 128 * 127 = 32512. */
#include <immintrin.h>
#include <string.h>

#include "kernels/trio.h"
#include "kernels/x86/x86.h"

enum { LANES = 2, TILE_ROWS = 3 * LANES, TILE_BYTES = 16 * 16 * LANES };

static void pack_row(uint8_t *tile, size_t row_in_tile, const five_row *row, int k_lo, int k_hi)
{
    (void)k_lo, (void)k_hi;
    trio_pack_row(tile, LANES, row_in_tile, row);
}

/* Ternary digit + 1 by nibble n = digit + 5 * extra: of the nibble's own weight (lo and hi part), and of the third row's part. */
#define LO_OF_DIGIT 1, 2, 0, 1, 1, 1, 2, 0, 1, 1, 1, 2, 0, 1, 1, 1
#define HI_OF_DIGIT 1, 1, 1, 2, 0, 1, 1, 1, 2, 0, 1, 1, 1, 2, 0, 1
#define OF_EXTRA 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0, 1

static inline __m256i broadcast16(const void *p) { return _mm256_broadcastsi128_si256(_mm_loadu_si128(p)); }

/* ((acc0 + acc2) + (acc1 + acc3)) in each 128-bit lane, for the two rows of a register. */
static inline void store_pair(__m256 acc, const float *scale, size_t row, size_t rows, float *y)
{
    const __m256 halves = _mm256_add_ps(acc, _mm256_permute_ps(acc, _MM_SHUFFLE(1, 0, 3, 2)));
    const __m256 whole = _mm256_add_ps(halves, _mm256_permute_ps(halves, _MM_SHUFFLE(2, 3, 0, 1)));
    if (row < rows) y[row] = scale[row] * _mm256_cvtss_f32(whole);
    if (row + 1 < rows) y[row + 1] = scale[row + 1] * _mm_cvtss_f32(_mm256_extractf128_ps(whole, 1));
}

/* One pair of rows (part 0, 1 or 2 of the tile) over one superblock for T activation rows: adds to acc. */
#define SUPERBLOCK_OF_PAIR(T, PART)                                                                                         \
    do {                                                                                                                    \
        __m256i p[T], n[T];                                                                                                 \
        for (int t = 0; t < T; t++) p[t] = n[t] = _mm256_sub_epi16(_mm256_setzero_si256(), broadcast16(sums + t * 8));      \
        for (int j = 0; j < 16; j++) {                                                                                      \
            const __m256i code = _mm256_load_si256((const __m256i *)codes + j);                                            \
            const __m256i low = _mm256_and_si256(code, nibble);                                                             \
            const __m256i high = _mm256_and_si256(_mm256_srli_epi16(code, 4), nibble);                                      \
            const __m256i u = _mm256_shuffle_epi8(PART == 2 ? of_extra : lo_of_digit, PART == 1 ? high : low);              \
            const __m256i v = _mm256_shuffle_epi8(PART == 2 ? of_extra : hi_of_digit, PART == 0 ? low : high);              \
            for (int t = 0; t < T; t++) {                                                                                   \
                const __m256i x = broadcast16(q + t * SUPERBLOCK + 16 * j);                                                 \
                p[t] = _mm256_add_epi16(p[t], _mm256_maddubs_epi16(u, x));                                                  \
                n[t] = _mm256_add_epi16(n[t], _mm256_maddubs_epi16(v, x));                                                  \
            }                                                                                                               \
        }                                                                                                                   \
        for (int t = 0; t < T; t++) {                                                                                       \
            const __m256i dot = _mm256_add_epi32(_mm256_madd_epi16(p[t], k_lo[PART]), _mm256_madd_epi16(n[t], k_hi[PART])); \
            const __m256 scales = _mm256_broadcast_ps((const __m128 *)(d + t * GROUPS));                                    \
            acc[PART][t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), scales, acc[PART][t]);                                  \
        }                                                                                                                   \
    } while (0)

/* One tile times T activation rows from row t0 on. For one row the three pairs go through the codes together (all in registers);
 * for more, pair by pair: the codes then come from the first-level cache. */
#define FIVE_TILE(T)                                                                                                      \
    static void five_tile_##T(const five_matrix *m, size_t tile, const activations *a, size_t t0, float *y, size_t y_stride) \
    {                                                                                                                     \
        const __m256i nibble = _mm256_set1_epi8(15);                                                                      \
        const __m256i lo_of_digit = broadcast16((const int8_t[16]){LO_OF_DIGIT});                                         \
        const __m256i hi_of_digit = broadcast16((const int8_t[16]){HI_OF_DIGIT});                                         \
        const __m256i of_extra = broadcast16((const int8_t[16]){OF_EXTRA});                                               \
        __m256i k_lo[3], k_hi[3];                                                                                         \
        __m256 acc[3][T];                                                                                                 \
        for (int i = 0; i < 3; i++) {                                                                                     \
            const int16_t *k = m->levels + (tile * TILE_ROWS + 2 * (size_t)i) * 2;                                        \
            k_lo[i] = _mm256_set_m128i(_mm_set1_epi16(k[2]), _mm_set1_epi16(k[0]));                                       \
            k_hi[i] = _mm256_set_m128i(_mm_set1_epi16(k[3]), _mm_set1_epi16(k[1]));                                       \
            for (int t = 0; t < T; t++) acc[i][t] = _mm256_setzero_ps();                                                  \
        }                                                                                                                 \
        const uint8_t *codes = m->codes + tile * m->superblocks * TILE_BYTES;                                             \
        for (size_t b = 0; b < m->superblocks; b++, codes += TILE_BYTES) {                                                \
            const int8_t *q = a->q + (b * a->rows + t0) * SUPERBLOCK;                                                     \
            const float *d = a->d + (b * a->rows + t0) * GROUPS;                                                          \
            const int16_t *sums = a->sums + (b * a->rows + t0) * 8;                                                       \
            SUPERBLOCK_OF_PAIR(T, 0);                                                                                     \
            SUPERBLOCK_OF_PAIR(T, 1);                                                                                     \
            SUPERBLOCK_OF_PAIR(T, 2);                                                                                     \
        }                                                                                                                 \
        for (int t = 0; t < T; t++)                                                                                       \
            for (size_t i = 0; i < 3; i++)                                                                                \
                store_pair(acc[i][t], m->scale, tile * TILE_ROWS + 2 * i, m->rows, y + (t0 + (size_t)t) * y_stride);      \
    }

FIVE_TILE(2)
FIVE_TILE(3)
FIVE_TILE(4)

/* The six 16-bit sums of one superblock for a single activation row, from the codes in one go. */
static void five_tile_1(const five_matrix *m, size_t tile, const activations *a, size_t t0, float *y, size_t y_stride)
{
    const __m256i nibble = _mm256_set1_epi8(15);
    const __m256i lo_of_digit = broadcast16((const int8_t[16]){LO_OF_DIGIT});
    const __m256i hi_of_digit = broadcast16((const int8_t[16]){HI_OF_DIGIT});
    const __m256i of_extra = broadcast16((const int8_t[16]){OF_EXTRA});
    __m256i k_lo[3], k_hi[3];
    __m256 acc[3];
    for (int i = 0; i < 3; i++) {
        const int16_t *k = m->levels + (tile * TILE_ROWS + 2 * (size_t)i) * 2;
        k_lo[i] = _mm256_set_m128i(_mm_set1_epi16(k[2]), _mm_set1_epi16(k[0]));
        k_hi[i] = _mm256_set_m128i(_mm_set1_epi16(k[3]), _mm_set1_epi16(k[1]));
        acc[i] = _mm256_setzero_ps();
    }
    const uint8_t *codes = m->codes + tile * m->superblocks * TILE_BYTES;
    for (size_t b = 0; b < m->superblocks; b++, codes += TILE_BYTES) {
        const int8_t *q = a->q + (b * a->rows + t0) * SUPERBLOCK;
        const __m256i start = _mm256_sub_epi16(_mm256_setzero_si256(), broadcast16(a->sums + (b * a->rows + t0) * 8));
        __m256i p0 = start, p1 = start, p2 = start, n0 = start, n1 = start, n2 = start;
        for (int j = 0; j < 16; j++) {
            const __m256i code = _mm256_load_si256((const __m256i *)codes + j);
            const __m256i low = _mm256_and_si256(code, nibble);
            const __m256i high = _mm256_and_si256(_mm256_srli_epi16(code, 4), nibble);
            const __m256i x = broadcast16(q + 16 * j);
            p0 = _mm256_add_epi16(p0, _mm256_maddubs_epi16(_mm256_shuffle_epi8(lo_of_digit, low), x));
            n0 = _mm256_add_epi16(n0, _mm256_maddubs_epi16(_mm256_shuffle_epi8(hi_of_digit, low), x));
            p1 = _mm256_add_epi16(p1, _mm256_maddubs_epi16(_mm256_shuffle_epi8(lo_of_digit, high), x));
            n1 = _mm256_add_epi16(n1, _mm256_maddubs_epi16(_mm256_shuffle_epi8(hi_of_digit, high), x));
            p2 = _mm256_add_epi16(p2, _mm256_maddubs_epi16(_mm256_shuffle_epi8(of_extra, low), x));
            n2 = _mm256_add_epi16(n2, _mm256_maddubs_epi16(_mm256_shuffle_epi8(of_extra, high), x));
        }
        const __m256 scales = _mm256_broadcast_ps((const __m128 *)(a->d + (b * a->rows + t0) * GROUPS));
        const __m256i dot0 = _mm256_add_epi32(_mm256_madd_epi16(p0, k_lo[0]), _mm256_madd_epi16(n0, k_hi[0]));
        const __m256i dot1 = _mm256_add_epi32(_mm256_madd_epi16(p1, k_lo[1]), _mm256_madd_epi16(n1, k_hi[1]));
        const __m256i dot2 = _mm256_add_epi32(_mm256_madd_epi16(p2, k_lo[2]), _mm256_madd_epi16(n2, k_hi[2]));
        acc[0] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot0), scales, acc[0]);
        acc[1] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot1), scales, acc[1]);
        acc[2] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot2), scales, acc[2]);
    }
    for (size_t i = 0; i < 3; i++) store_pair(acc[i], m->scale, tile * TILE_ROWS + 2 * i, m->rows, y + t0 * y_stride);
}

/* Cuts `rows` activation rows into runs of 1..4 that are as even as can be: 5 = 3 + 2, 8 = 4 + 4, 9 = 3 + 3 + 3. */
static inline size_t next_run(size_t left)
{
    const size_t runs = (left + 3) / 4;
    return (left + runs - 1) / runs;
}

static void five_multiply(const five_matrix *m, size_t begin, size_t end, const activations *x, float *y, size_t y_stride)
{
    for (size_t tile = begin; tile < end; tile++)
        for (size_t t = 0; t < x->rows;) {
            const size_t run = next_run(x->rows - t);
            (run == 1 ? five_tile_1 : run == 2 ? five_tile_2 : run == 3 ? five_tile_3 : five_tile_4)(m, tile, x, t, y,
                                                                                                     y_stride);
            t += run;
        }
}

/* R int8 rows times T activation rows. A register holds 32 columns, so its 128-bit lanes are the even and the odd j of a
 * superblock; their integer sums are added at its end. */
#define INT8_ROWS(R, T)                                                                                                    \
    static void int8_rows_##R##_##T(const int8_matrix *m, size_t row, const activations *a, size_t t0, float *y, size_t stride) \
    {                                                                                                                      \
        const __m256i ones = _mm256_set1_epi16(1);                                                                         \
        __m128 acc[R][T];                                                                                                  \
        for (int r = 0; r < R; r++)                                                                                        \
            for (int t = 0; t < T; t++) acc[r][t] = _mm_setzero_ps();                                                      \
        for (size_t b = 0; b < m->superblocks; b++) {                                                                      \
            const int8_t *k = m->k + (row * m->superblocks + b) * SUPERBLOCK;                                              \
            const int8_t *q = a->q + (b * a->rows + t0) * SUPERBLOCK;                                                      \
            __m256i dot[R][T];                                                                                             \
            for (int r = 0; r < R; r++)                                                                                    \
                for (int t = 0; t < T; t++) dot[r][t] = _mm256_setzero_si256();                                            \
            for (int i = 0; i < 8; i++)                                                                                    \
                for (int r = 0; r < R; r++) {                                                                              \
                    const __m256i w = _mm256_loadu_si256((const __m256i *)(k + (size_t)r * m->superblocks * SUPERBLOCK) + i); \
                    const __m256i size = _mm256_abs_epi8(w);                                                               \
                    for (int t = 0; t < T; t++) {                                                                          \
                        const __m256i x = _mm256_load_si256((const __m256i *)(q + t * SUPERBLOCK) + i);                    \
                        const __m256i pairs = _mm256_maddubs_epi16(size, _mm256_sign_epi8(x, w));                          \
                        dot[r][t] = _mm256_add_epi32(dot[r][t], _mm256_madd_epi16(pairs, ones));                           \
                    }                                                                                                      \
                }                                                                                                          \
            for (int t = 0; t < T; t++) {                                                                                  \
                const __m128 scales = _mm_loadu_ps(a->d + (b * a->rows + t0 + (size_t)t) * GROUPS);                        \
                for (int r = 0; r < R; r++) {                                                                              \
                    const __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(dot[r][t]), _mm256_extracti128_si256(dot[r][t], 1)); \
                    acc[r][t] = _mm_fmadd_ps(_mm_cvtepi32_ps(sum), scales, acc[r][t]);                                     \
                }                                                                                                          \
            }                                                                                                              \
        }                                                                                                                  \
        for (int t = 0; t < T; t++)                                                                                        \
            for (int r = 0; r < R; r++) {                                                                                  \
                const __m128 halves = _mm_add_ps(acc[r][t], _mm_movehl_ps(acc[r][t], acc[r][t]));                          \
                const float whole = _mm_cvtss_f32(_mm_add_ss(halves, _mm_movehdup_ps(halves)));                            \
                y[(t0 + (size_t)t) * stride + row + (size_t)r] = m->scale[row + (size_t)r] * whole;                        \
            }                                                                                                              \
    }

INT8_ROWS(1, 1)
INT8_ROWS(1, 2)
INT8_ROWS(1, 3)
INT8_ROWS(1, 4)
INT8_ROWS(2, 1)
INT8_ROWS(2, 2)
INT8_ROWS(2, 3)
INT8_ROWS(2, 4)

static void int8_multiply(const int8_matrix *m, size_t begin, size_t end, const activations *x, float *y, size_t y_stride)
{
    static void (*const of[2][4])(const int8_matrix *, size_t, const activations *, size_t, float *, size_t) = {
        {int8_rows_1_1, int8_rows_1_2, int8_rows_1_3, int8_rows_1_4},
        {int8_rows_2_1, int8_rows_2_2, int8_rows_2_3, int8_rows_2_4}};
    for (size_t row = begin; row < end;) {
        const size_t rows = end - row >= 2 ? 2 : 1;
        for (size_t t = 0; t < x->rows;) {
            const size_t run = next_run(x->rows - t);
            of[rows - 1][run - 1](m, row, x, t, y, y_stride);
            t += run;
        }
        row += rows;
    }
}

void kernels_avx2(kernel_table *table)
{
    table->tile_rows = TILE_ROWS;
    table->tile_bytes = TILE_BYTES;
    table->five_pack_row = pack_row;
    table->five_multiply = five_multiply;
    table->int8_multiply = int8_multiply;
    avx2_fill_vectors(table);
}
