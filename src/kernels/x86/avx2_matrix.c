/* Rule 5 for AVX2.
 *
 * Five-value rows: without a 4-way dot product the levels would need a sign trick and a widening step per 32
 * products. So the row's integer dot product is split instead: k = k_lo * t_lo + k_hi * t_hi with ternary t, hence
 * dot = k_lo * P + k_hi * Q with P = sum t_lo q and Q = sum t_hi q. The shuffle yields u = t + 1 in 0..2 as the
 * unsigned operand of vpmaddubsw; a 16-bit lane adds 16 such pairs in a superblock (|sum| <= 16 * 2 * 2 * 127 =
 * 8128, no overflow), starts at minus the sum of its q, and one vpmaddwd with k_lo (k_hi) per superblock ends it.
 * Per 32 products that is two multiplications and two additions, and the expansion needs no table of the row's
 * levels. On Zen 3 a row of activations costs 8 to 9 cycles per 192 weights so, of which the ports allow 6.
 *
 * int8 rows: |k| (at most 128, unsigned) times q with the sign of k moved onto it; a pair is at most 2 * 128 * 127 =
 * 32512. */
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

/* Ternary digit + 1 by nibble n = digit + 5 * extra: of the nibble's own weight (lo and hi part), and of the third
 * row's part. */
#define LO_OF_DIGIT 1, 2, 0, 1, 1, 1, 2, 0, 1, 1, 1, 2, 0, 1, 1, 1
#define HI_OF_DIGIT 1, 1, 1, 2, 0, 1, 1, 1, 2, 0, 1, 1, 1, 2, 0, 1
#define OF_EXTRA    1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0, 1

static inline __m256i broadcast16(const void *p) { return _mm256_broadcastsi128_si256(_mm_loadu_si128(p)); }

/* sum + the pairwise products of unsigned u and signed x, in 16 bits. gcc 12 would put all multiplications of a loop
 * before all additions and spill the sums; the asm keeps the two together. */
static inline __m256i add_pairs(__m256i sum, __m256i u, __m256i x)
{
#if defined(__GNUC__) && !defined(__clang__)
    __m256i pairs;
    __asm__("vpmaddubsw %3, %2, %1\n\tvpaddw %1, %0, %0" : "+x"(sum), "=&x"(pairs) : "x"(u), "x"(x));
    return sum;
#else
    return _mm256_add_epi16(sum, _mm256_maddubs_epi16(u, x));
#endif
}

/* The weights stream through once, faster than the processor's own prefetching follows (it stops at each page): ask
 * this far ahead. */
enum { AHEAD_BYTES = 2048 };
static inline void ask_ahead(const void *p) { _mm_prefetch((const char *)p + AHEAD_BYTES, _MM_HINT_T0); }

/* ((acc0 + acc2) + (acc1 + acc3)) in each 128-bit lane, for the two rows of a register. */
static inline void store_pair(__m256 acc, const float *scale, size_t row, size_t rows, float *y)
{
    const __m256 halves = _mm256_add_ps(acc, _mm256_permute_ps(acc, _MM_SHUFFLE(1, 0, 3, 2)));
    const __m256 whole = _mm256_add_ps(halves, _mm256_permute_ps(halves, _MM_SHUFFLE(2, 3, 0, 1)));
    if (row < rows) y[row] = scale[row] * _mm256_cvtss_f32(whole);
    if (row + 1 < rows) y[row + 1] = scale[row + 1] * _mm_cvtss_f32(_mm256_extractf128_ps(whole, 1));
}

/* One pair of rows (part 0, 1 or 2 of the tile) over the first N vectors of one superblock for T activation rows: adds to
 * acc. N is 16 but in the last superblock, whose padding columns (q = 0, and not in the sums) need not be read. */
#define SUPERBLOCK_OF_PAIR(T, PART, N)                                                                                      \
    do {                                                                                                                    \
        __m256i p[T], n[T];                                                                                                 \
        for (int t = 0; t < T; t++) p[t] = n[t] = _mm256_sub_epi16(_mm256_setzero_si256(), broadcast16(sums + t * 8));      \
        for (int j = 0; j < (N); j++) {                                                                                     \
            if (PART == 0) ask_ahead(codes + 32 * j);                                                                       \
            const __m256i code = _mm256_load_si256((const __m256i *)codes + j);                                             \
            const __m256i low = _mm256_and_si256(code, nibble);                                                             \
            const __m256i high = _mm256_and_si256(_mm256_srli_epi16(code, 4), nibble);                                      \
            const __m256i u = _mm256_shuffle_epi8(PART == 2 ? of_extra : lo_of_digit, PART == 1 ? high : low);              \
            const __m256i v = _mm256_shuffle_epi8(PART == 2 ? of_extra : hi_of_digit, PART == 0 ? low : high);              \
            for (int t = 0; t < T; t++) {                                                                                   \
                const __m256i x = broadcast16(q + t * SUPERBLOCK + 16 * j);                                                 \
                p[t] = add_pairs(p[t], u, x);                                                                               \
                n[t] = add_pairs(n[t], v, x);                                                                               \
            }                                                                                                               \
        }                                                                                                                   \
        for (int t = 0; t < T; t++) {                                                                                       \
            const __m256i dot = _mm256_add_epi32(_mm256_madd_epi16(p[t], k_lo[PART]), _mm256_madd_epi16(n[t], k_hi[PART])); \
            const __m256 scales = _mm256_broadcast_ps((const __m128 *)(d + t * GROUPS));                                    \
            acc[PART][t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), scales, acc[PART][t]);                                  \
        }                                                                                                                   \
    } while (0)

/* One tile times T activation rows from row t0 on. For one row the three pairs go through the codes together (all in
 * registers); for more, pair by pair: the codes then come from the first-level cache. */
#define FIVE_TILE(T)                                                                                                         \
    static void five_tile_##T(const five_matrix *m, size_t tile, const activations *a, size_t t0, float *y, size_t y_stride) \
    {                                                                                                                        \
        const __m256i nibble = _mm256_set1_epi8(15);                                                                         \
        const __m256i lo_of_digit = broadcast16((const int8_t[16]){LO_OF_DIGIT});                                            \
        const __m256i hi_of_digit = broadcast16((const int8_t[16]){HI_OF_DIGIT});                                            \
        const __m256i of_extra = broadcast16((const int8_t[16]){OF_EXTRA});                                                  \
        __m256i k_lo[3], k_hi[3];                                                                                            \
        __m256 acc[3][T];                                                                                                    \
        for (int i = 0; i < 3; i++) {                                                                                        \
            const int16_t *k = m->levels + (tile * TILE_ROWS + 2 * (size_t)i) * 2;                                           \
            k_lo[i] = _mm256_set_m128i(_mm_set1_epi16(k[2]), _mm_set1_epi16(k[0]));                                          \
            k_hi[i] = _mm256_set_m128i(_mm_set1_epi16(k[3]), _mm_set1_epi16(k[1]));                                          \
            for (int t = 0; t < T; t++) acc[i][t] = _mm256_setzero_ps();                                                     \
        }                                                                                                                    \
        const uint8_t *codes = m->codes + tile * m->superblocks * TILE_BYTES;                                                \
        const size_t whole = m->cols / SUPERBLOCK;                                                                           \
        const int rest = (int)(m->cols % SUPERBLOCK + 15) / 16;                                                              \
        for (size_t b = 0; b < m->superblocks; b++, codes += TILE_BYTES) {                                                   \
            const int8_t *q = a->q + (b * a->rows + t0) * SUPERBLOCK;                                                        \
            const float *d = a->d + (b * a->rows + t0) * GROUPS;                                                             \
            const int16_t *sums = a->sums + (b * a->rows + t0) * 8;                                                          \
            if (b < whole) {                                                                                                 \
                SUPERBLOCK_OF_PAIR(T, 0, 16);                                                                                \
                SUPERBLOCK_OF_PAIR(T, 1, 16);                                                                                \
                SUPERBLOCK_OF_PAIR(T, 2, 16);                                                                                \
            } else {                                                                                                         \
                SUPERBLOCK_OF_PAIR(T, 0, rest);                                                                              \
                SUPERBLOCK_OF_PAIR(T, 1, rest);                                                                              \
                SUPERBLOCK_OF_PAIR(T, 2, rest);                                                                              \
            }                                                                                                                \
        }                                                                                                                    \
        for (int t = 0; t < T; t++)                                                                                          \
            for (size_t i = 0; i < 3; i++)                                                                                   \
                store_pair(acc[i][t], m->scale, tile *TILE_ROWS + 2 * i, m->rows, y + (t0 + (size_t)t) * y_stride);          \
    }

FIVE_TILE(2)
FIVE_TILE(3)
FIVE_TILE(4)
FIVE_TILE(5)
FIVE_TILE(6)

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
        const int vectors = b < m->cols / SUPERBLOCK ? 16 : (int)(m->cols % SUPERBLOCK + 15) / 16;
        for (int j = 0; j < vectors; j++) {
            ask_ahead(codes + 32 * j);
            const __m256i code = _mm256_load_si256((const __m256i *)codes + j);
            const __m256i low = _mm256_and_si256(code, nibble);
            const __m256i high = _mm256_and_si256(_mm256_srli_epi16(code, 4), nibble);
            const __m256i x = broadcast16(q + 16 * j);
            p0 = add_pairs(p0, _mm256_shuffle_epi8(lo_of_digit, low), x);
            n0 = add_pairs(n0, _mm256_shuffle_epi8(hi_of_digit, low), x);
            p1 = add_pairs(p1, _mm256_shuffle_epi8(lo_of_digit, high), x);
            n1 = add_pairs(n1, _mm256_shuffle_epi8(hi_of_digit, high), x);
            p2 = add_pairs(p2, _mm256_shuffle_epi8(of_extra, low), x);
            n2 = add_pairs(n2, _mm256_shuffle_epi8(of_extra, high), x);
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

/* For many activation rows the codes of a superblock are expanded once, into u: [3 pairs][16 vectors of codes][lo,
 * hi]. */
static void expand(const uint8_t *codes, __m256i *u)
{
    const __m256i nibble = _mm256_set1_epi8(15);
    const __m256i lo_of_digit = broadcast16((const int8_t[16]){LO_OF_DIGIT});
    const __m256i hi_of_digit = broadcast16((const int8_t[16]){HI_OF_DIGIT});
    const __m256i of_extra = broadcast16((const int8_t[16]){OF_EXTRA});
    for (int j = 0; j < 16; j++, u += 2) {
        const __m256i code = _mm256_load_si256((const __m256i *)codes + j);
        const __m256i low = _mm256_and_si256(code, nibble);
        const __m256i high = _mm256_and_si256(_mm256_srli_epi16(code, 4), nibble);
        u[0] = _mm256_shuffle_epi8(lo_of_digit, low);
        u[1] = _mm256_shuffle_epi8(hi_of_digit, low);
        u[32] = _mm256_shuffle_epi8(lo_of_digit, high);
        u[33] = _mm256_shuffle_epi8(hi_of_digit, high);
        u[64] = _mm256_shuffle_epi8(of_extra, low);
        u[65] = _mm256_shuffle_epi8(of_extra, high);
    }
}

enum { MOST_AT_ONCE = 6, MANY = 8, MOST_TOGETHER = 48 };

/* One expanded superblock times T activation rows: adds to acc [3 pairs][MOST_TOGETHER]; k is [3 pairs][k_lo, k_hi]. */
#define FIVE_BLOCK(T)                                                                                                      \
    static void five_block_##T(const __m256i *u, const int8_t *q, const float *d, const int16_t *sums, const __m256i *k,   \
                               __m256 *acc)                                                                                \
    {                                                                                                                      \
        for (int i = 0; i < 3; i++, u += 32, k += 2, acc += MOST_TOGETHER) {                                               \
            __m256i p[T], n[T];                                                                                            \
            for (int t = 0; t < T; t++) p[t] = n[t] = _mm256_sub_epi16(_mm256_setzero_si256(), broadcast16(sums + t * 8)); \
            for (int j = 0; j < 16; j++)                                                                                   \
                for (int t = 0; t < T; t++) {                                                                              \
                    const __m256i x = broadcast16(q + t * SUPERBLOCK + 16 * j);                                            \
                    p[t] = add_pairs(p[t], u[2 * j], x);                                                                   \
                    n[t] = add_pairs(n[t], u[2 * j + 1], x);                                                               \
                }                                                                                                          \
            for (int t = 0; t < T; t++) {                                                                                  \
                const __m256i dot = _mm256_add_epi32(_mm256_madd_epi16(p[t], k[0]), _mm256_madd_epi16(n[t], k[1]));        \
                const __m256 scales = _mm256_broadcast_ps((const __m128 *)(d + t * GROUPS));                               \
                acc[t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), scales, acc[t]);                                         \
            }                                                                                                              \
        }                                                                                                                  \
    }

FIVE_BLOCK(3)
FIVE_BLOCK(4)
FIVE_BLOCK(5)
FIVE_BLOCK(6)

/* One tile times n activation rows, n >= 3: in fours, and at the end what is left, 3 to 6. */
static void five_tile_many(const five_matrix *m, size_t tile, const activations *a, size_t t0, size_t n, float *y,
                           size_t y_stride)
{
    static void (*const of[])(const __m256i *, const int8_t *, const float *, const int16_t *, const __m256i *,
                              __m256 *) = {five_block_3, five_block_4, five_block_5, five_block_6};
    __m256i k[6], u[3 * 32];
    __m256 acc[3 * MOST_TOGETHER];
    for (size_t i = 0; i < 3; i++) {
        const int16_t *levels = m->levels + (tile * TILE_ROWS + 2 * i) * 2;
        k[2 * i] = _mm256_set_m128i(_mm_set1_epi16(levels[2]), _mm_set1_epi16(levels[0]));
        k[2 * i + 1] = _mm256_set_m128i(_mm_set1_epi16(levels[3]), _mm_set1_epi16(levels[1]));
        for (size_t t = 0; t < n; t++) acc[i * MOST_TOGETHER + t] = _mm256_setzero_ps();
    }
    const uint8_t *codes = m->codes + tile * m->superblocks * TILE_BYTES;
    for (size_t b = 0; b < m->superblocks; b++, codes += TILE_BYTES) {
        expand(codes, u);
        for (size_t t = 0; t < n;) {
            const size_t run = n - t > MOST_AT_ONCE ? 4 : n - t, at = b * a->rows + t0 + t;
            of[run - 3](u, a->q + at * SUPERBLOCK, a->d + at * GROUPS, a->sums + at * 8, k, acc + t);
            t += run;
        }
    }
    for (size_t t = 0; t < n; t++)
        for (size_t i = 0; i < 3; i++)
            store_pair(acc[i * MOST_TOGETHER + t], m->scale, tile * TILE_ROWS + 2 * i, m->rows, y + (t0 + t) * y_stride);
}

/* Cuts activation rows into runs of at most `most` that are as even as can be: 7 = 4 + 3, 8 = 4 + 4, 11 = 6 + 5. */
static inline size_t next_run(size_t left, size_t most)
{
    const size_t runs = (left + most - 1) / most;
    return (left + runs - 1) / runs;
}

static void five_multiply(const five_matrix *m, size_t begin, size_t end, const activations *x, float *y, size_t y_stride)
{
    static void (*const of[MOST_AT_ONCE])(const five_matrix *, size_t, const activations *, size_t, float *, size_t) = {
        five_tile_1, five_tile_2, five_tile_3, five_tile_4, five_tile_5, five_tile_6};
    const bool many = x->rows >= MANY;
    for (size_t tile = begin; tile < end; tile++)
        for (size_t t = 0, run; t < x->rows; t += run) {
            run = next_run(x->rows - t, many ? MOST_TOGETHER : MOST_AT_ONCE);
            if (many)
                five_tile_many(m, tile, x, t, run, y, y_stride);
            else
                of[run - 1](m, tile, x, t, y, y_stride);
        }
}

/* sum + the products of k and x in fours, by way of |k| and x with k's sign; in one piece for the reason that
 * add_pairs gives. */
static inline __m256i add_signed(__m256i sum, __m256i size, __m256i k, __m256i x)
{
    const __m256i ones = _mm256_set1_epi16(1);
#if defined(__GNUC__) && !defined(__clang__)
    __m256i part;
    __asm__("vpsignb %4, %3, %1\n\tvpmaddubsw %1, %2, %1\n\tvpmaddwd %5, %1, %1\n\tvpaddd %1, %0, %0"
            : "+x"(sum), "=&x"(part)
            : "x"(size), "x"(x), "x"(k), "x"(ones));
    return sum;
#else
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(size, _mm256_sign_epi8(x, k)), ones));
#endif
}

/* One int8 row times T activation rows: the weights come from memory as one stream. A register holds 32 columns, so
 * its 128-bit lanes are the even and the odd j of a superblock; their integer sums are added at its end. */
#define INT8_ROW(T)                                                                                                          \
    static void int8_row_##T(const int8_matrix *m, size_t row, const activations *a, size_t t0, float *y, size_t stride)     \
    {                                                                                                                        \
        __m128 acc[T];                                                                                                       \
        for (int t = 0; t < T; t++) acc[t] = _mm_setzero_ps();                                                               \
        const int8_t *k = m->k + row * m->superblocks * SUPERBLOCK;                                                          \
        for (size_t b = 0; b < m->superblocks; b++, k += SUPERBLOCK) {                                                       \
            const int8_t *q = a->q + (b * a->rows + t0) * SUPERBLOCK;                                                        \
            const float *d = a->d + (b * a->rows + t0) * GROUPS;                                                             \
            __m256i dot[T];                                                                                                  \
            for (int t = 0; t < T; t++) dot[t] = _mm256_setzero_si256();                                                     \
            const int vectors = b < m->cols / SUPERBLOCK ? 8 : (int)(m->cols % SUPERBLOCK + 31) / 32;                        \
            for (int i = 0; i < vectors; i++) {                                                                              \
                ask_ahead(k + 32 * i);                                                                                       \
                const __m256i w = _mm256_loadu_si256((const __m256i *)k + i), size = _mm256_abs_epi8(w);                     \
                for (int t = 0; t < T; t++)                                                                                  \
                    dot[t] = add_signed(dot[t], size, w, _mm256_load_si256((const __m256i *)(q + t * SUPERBLOCK) + i));      \
            }                                                                                                                \
            for (int t = 0; t < T; t++) {                                                                                    \
                const __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(dot[t]), _mm256_extracti128_si256(dot[t], 1));      \
                acc[t] = _mm_fmadd_ps(_mm_cvtepi32_ps(sum), _mm_loadu_ps(d + t * GROUPS), acc[t]);                           \
            }                                                                                                                \
        }                                                                                                                    \
        for (int t = 0; t < T; t++) {                                                                                        \
            const __m128 halves = _mm_add_ps(acc[t], _mm_movehl_ps(acc[t], acc[t]));                                         \
            y[(t0 + (size_t)t) * stride + row] = m->scale[row] * _mm_cvtss_f32(_mm_add_ss(halves, _mm_movehdup_ps(halves))); \
        }                                                                                                                    \
    }

INT8_ROW(1)
INT8_ROW(2)
INT8_ROW(3)
INT8_ROW(4)
INT8_ROW(5)
INT8_ROW(6)
INT8_ROW(7)
INT8_ROW(8)

static void int8_multiply(const int8_matrix *m, size_t begin, size_t end, const activations *x, float *y, size_t y_stride)
{
    static void (*const of[])(const int8_matrix *, size_t, const activations *, size_t, float *, size_t) = {
        int8_row_1, int8_row_2, int8_row_3, int8_row_4, int8_row_5, int8_row_6, int8_row_7, int8_row_8};
    for (size_t row = begin; row < end; row++)
        for (size_t t = 0, run; t < x->rows; t += run) {
            run = next_run(x->rows - t, sizeof of / sizeof *of);
            of[run - 1](m, row, x, t, y, y_stride);
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
