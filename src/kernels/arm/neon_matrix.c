/* Rule 5 for NEON without the dot product instructions.
 *
 * A nibble of the codes becomes the row's integer level by one table look-up (kernels/trio.h with one lane).
 * Products of bytes are 16 bits wide, and two of them fit into 16 bits (2 * 127 * 127 = 32258; int8 rows: 2 * 128 *
 * 127 = 32512), so the columns of two neighbouring j are multiplied, multiplied and added, and only then widened:
 * per 32 products four multiplications and two widening additions. The low half of a register holds groups 0 and 1,
 * the high half 2 and 3, each as two 32-bit sums that are added at the superblock's end. */
#include "kernels/arm/arm.h"
#include "kernels/trio.h"

enum { MOST_FIVE = 2, MOST_INT8 = 2 };

static void pack_row(uint8_t *tile, size_t row_in_tile, const five_row *row, int k_lo, int k_hi)
{
    (void)k_lo, (void)k_hi;
    trio_pack_row(tile, 1, row_in_tile, row);
}

/* Sums of one row and one activation row. */
typedef struct pair_sums {
    int32x4_t low, high;
} pair_sums;

static inline pair_sums no_sums(void) { return (pair_sums){vdupq_n_s32(0), vdupq_n_s32(0)}; }

/* Adds the products of k, l (16 columns each) with x, y. */
static inline void add_products(pair_sums *s, int8x16_t k, int8x16_t l, int8x16_t x, int8x16_t y)
{
    const int16x8_t low = vmlal_s8(vmull_s8(vget_low_s8(k), vget_low_s8(x)), vget_low_s8(l), vget_low_s8(y));
    const int16x8_t high = vmlal_high_s8(vmull_high_s8(k, x), l, y);
    s->low = vpadalq_s16(s->low, low);
    s->high = vpadalq_s16(s->high, high);
}

/* acc + dot * d for the four groups. */
static inline float32x4_t add_superblock(float32x4_t acc, pair_sums s, float32x4_t d)
{
    return vfmaq_f32(acc, vcvtq_f32_s32(vpaddq_s32(s.low, s.high)), d);
}

#define FIVE_TILE(T)                                                                                                         \
    static void five_tile_##T(const five_matrix *m, size_t tile, const activations *a, size_t t0, float *y, size_t y_stride) \
    {                                                                                                                        \
        const neon_levels levels = neon_make_levels(m->levels + tile * NEON_TILE_ROWS * 2);                                  \
        const uint8_t *codes = m->codes + tile * m->superblocks * NEON_TILE_BYTES;                                           \
        float32x4_t acc[3][T];                                                                                               \
        UNROLLED for (int t = 0; t < T; t++) acc[0][t] = acc[1][t] = acc[2][t] = vdupq_n_f32(0.0f);                          \
        for (size_t b = 0; b < m->superblocks; b++, codes += NEON_TILE_BYTES) {                                              \
            const int8_t *q = a->q + (b * a->rows + t0) * SUPERBLOCK;                                                        \
            const float *d = a->d + (b * a->rows + t0) * GROUPS;                                                             \
            pair_sums s0[T], s1[T], s2[T];                                                                                   \
            UNROLLED for (int t = 0; t < T; t++) s0[t] = s1[t] = s2[t] = no_sums();                                          \
            for (int at = 0; at < SUPERBLOCK; at += 32) {                                                                    \
                int8x16_t u0, u1, u2, v0, v1, v2;                                                                            \
                neon_expand(&levels, codes + at, &u0, &u1, &u2);                                                             \
                neon_expand(&levels, codes + at + 16, &v0, &v1, &v2);                                                        \
                UNROLLED for (int t = 0; t < T; t++)                                                                         \
                {                                                                                                            \
                    const int8x16_t x = vld1q_s8(q + t * SUPERBLOCK + at), z = vld1q_s8(q + t * SUPERBLOCK + at + 16);       \
                    add_products(&s0[t], u0, v0, x, z);                                                                      \
                    add_products(&s1[t], u1, v1, x, z);                                                                      \
                    add_products(&s2[t], u2, v2, x, z);                                                                      \
                }                                                                                                            \
            }                                                                                                                \
            UNROLLED for (int t = 0; t < T; t++)                                                                             \
            {                                                                                                                \
                const float32x4_t scales = vld1q_f32(d + t * GROUPS);                                                        \
                acc[0][t] = add_superblock(acc[0][t], s0[t], scales);                                                        \
                acc[1][t] = add_superblock(acc[1][t], s1[t], scales);                                                        \
                acc[2][t] = add_superblock(acc[2][t], s2[t], scales);                                                        \
            }                                                                                                                \
        }                                                                                                                    \
        for (int t = 0; t < T; t++)                                                                                          \
            for (size_t i = 0, row = tile * NEON_TILE_ROWS; i < 3 && row < m->rows; i++, row++)                              \
                y[(t0 + (size_t)t) * y_stride + row] = m->scale[row] * neon_fold_groups(acc[i][t]);                          \
    }

FIVE_TILE(1)
FIVE_TILE(2)

static void five_multiply(const five_matrix *m, size_t begin, size_t end, const activations *x, float *y, size_t y_stride)
{
    for (size_t tile = begin; tile < end; tile++)
        for (size_t t = 0; t < x->rows;) {
            const size_t run = neon_next_run(x->rows - t, MOST_FIVE);
            (run == 1 ? five_tile_1 : five_tile_2)(m, tile, x, t, y, y_stride);
            t += run;
        }
}

/* Two int8 rows, or the same one twice: then the second result is not written. */
#define INT8_ROWS(T)                                                                                                   \
    static void int8_rows_##T(const int8_matrix *m, size_t row, size_t n, const activations *a, size_t t0, float *y,   \
                              size_t stride)                                                                           \
    {                                                                                                                  \
        const size_t row_bytes = m->superblocks * SUPERBLOCK;                                                          \
        const int8_t *k0 = m->k + row * row_bytes, *k1 = k0 + (n > 1 ? row_bytes : 0);                                 \
        float32x4_t acc0[T], acc1[T];                                                                                  \
        UNROLLED for (int t = 0; t < T; t++) acc0[t] = acc1[t] = vdupq_n_f32(0.0f);                                    \
        for (size_t b = 0; b < m->superblocks; b++, k0 += SUPERBLOCK, k1 += SUPERBLOCK) {                              \
            const int8_t *q = a->q + (b * a->rows + t0) * SUPERBLOCK;                                                  \
            const float *d = a->d + (b * a->rows + t0) * GROUPS;                                                       \
            pair_sums s0[T], s1[T];                                                                                    \
            UNROLLED for (int t = 0; t < T; t++) s0[t] = s1[t] = no_sums();                                            \
            for (int at = 0; at < SUPERBLOCK; at += 32) {                                                              \
                const int8x16_t u0 = vld1q_s8(k0 + at), v0 = vld1q_s8(k0 + at + 16), u1 = vld1q_s8(k1 + at),           \
                                v1 = vld1q_s8(k1 + at + 16);                                                           \
                UNROLLED for (int t = 0; t < T; t++)                                                                   \
                {                                                                                                      \
                    const int8x16_t x = vld1q_s8(q + t * SUPERBLOCK + at), z = vld1q_s8(q + t * SUPERBLOCK + at + 16); \
                    add_products(&s0[t], u0, v0, x, z);                                                                \
                    add_products(&s1[t], u1, v1, x, z);                                                                \
                }                                                                                                      \
            }                                                                                                          \
            UNROLLED for (int t = 0; t < T; t++)                                                                       \
            {                                                                                                          \
                const float32x4_t scales = vld1q_f32(d + t * GROUPS);                                                  \
                acc0[t] = add_superblock(acc0[t], s0[t], scales);                                                      \
                acc1[t] = add_superblock(acc1[t], s1[t], scales);                                                      \
            }                                                                                                          \
        }                                                                                                              \
        for (int t = 0; t < T; t++) {                                                                                  \
            float *out = y + (t0 + (size_t)t) * stride + row;                                                          \
            out[0] = m->scale[row] * neon_fold_groups(acc0[t]);                                                        \
            if (n > 1) out[1] = m->scale[row + 1] * neon_fold_groups(acc1[t]);                                         \
        }                                                                                                              \
    }

INT8_ROWS(1)
INT8_ROWS(2)

static void int8_multiply(const int8_matrix *m, size_t begin, size_t end, const activations *x, float *y, size_t y_stride)
{
    for (size_t row = begin; row < end; row += 2)
        for (size_t t = 0; t < x->rows;) {
            const size_t run = neon_next_run(x->rows - t, MOST_INT8);
            (run == 1 ? int8_rows_1 : int8_rows_2)(m, row, end - row < 2 ? 1 : 2, x, t, y, y_stride);
            t += run;
        }
}

void kernels_neon(kernel_table *table)
{
    table->tile_rows = NEON_TILE_ROWS;
    table->tile_bytes = NEON_TILE_BYTES;
    table->five_pack_row = pack_row;
    table->five_multiply = five_multiply;
    table->int8_multiply = int8_multiply;
    neon_fill_vectors(table);
}
