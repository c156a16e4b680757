/* Rule 5 for Arm processors with the dot product instructions: sdot adds four products of signed bytes to a 32-bit
 * sum, which is exactly a group of a row (kernels/trio.h with one lane). The packed form is NEON's. */
#include "kernels/arm/arm.h"

enum { MOST_FIVE = 8, MOST_INT8 = 5, INT8_BLOCK = 4 };

/* One tile times T activation rows from row t0 on. Of the 32 registers the sums take 3 T: beside 18 and more of them
 * there is no room for the tables, which then come from the first-level cache each time (the empty asm makes the
 * compiler believe that the address changes, or it would keep them in registers and spill sums instead). */
#define FIVE_TILE(T)                                                                                                         \
    static void five_tile_##T(const five_matrix *m, size_t tile, const activations *a, size_t t0, float *y, size_t y_stride) \
    {                                                                                                                        \
        const neon_levels made = neon_make_levels(m->levels + tile * NEON_TILE_ROWS * 2), *levels = &made;                   \
        const uint8_t *codes = m->codes + tile * m->superblocks * NEON_TILE_BYTES;                                           \
        float32x4_t acc[3][T];                                                                                               \
        for (int i = 0; i < 3; i++)                                                                                          \
            for (int t = 0; t < T; t++) acc[i][t] = vdupq_n_f32(0.0f);                                                       \
        for (size_t b = 0; b < m->superblocks; b++, codes += NEON_TILE_BYTES) {                                              \
            const int8_t *q = a->q + (b * a->rows + t0) * SUPERBLOCK;                                                        \
            const float *d = a->d + (b * a->rows + t0) * GROUPS;                                                             \
            int32x4_t s0[T], s1[T], s2[T];                                                                                   \
            UNROLLED for (int t = 0; t < T; t++) s0[t] = s1[t] = s2[t] = vdupq_n_s32(0);                                     \
            for (int at = 0; at < SUPERBLOCK; at += 16) {                                                                    \
                if (T >= 6) __asm__("" : "+r"(levels));                                                                      \
                int8x16_t u0, u1, u2;                                                                                        \
                neon_expand(levels, codes + at, &u0, &u1, &u2);                                                              \
                UNROLLED for (int t = 0; t < T; t++)                                                                         \
                {                                                                                                            \
                    const int8x16_t x = vld1q_s8(q + t * SUPERBLOCK + at);                                                   \
                    s0[t] = vdotq_s32(s0[t], u0, x);                                                                         \
                    s1[t] = vdotq_s32(s1[t], u1, x);                                                                         \
                    s2[t] = vdotq_s32(s2[t], u2, x);                                                                         \
                }                                                                                                            \
            }                                                                                                                \
            UNROLLED for (int t = 0; t < T; t++)                                                                             \
            {                                                                                                                \
                const float32x4_t scales = vld1q_f32(d + t * GROUPS);                                                        \
                acc[0][t] = vfmaq_f32(acc[0][t], vcvtq_f32_s32(s0[t]), scales);                                              \
                acc[1][t] = vfmaq_f32(acc[1][t], vcvtq_f32_s32(s1[t]), scales);                                              \
                acc[2][t] = vfmaq_f32(acc[2][t], vcvtq_f32_s32(s2[t]), scales);                                              \
            }                                                                                                                \
        }                                                                                                                    \
        for (int t = 0; t < T; t++)                                                                                          \
            for (size_t i = 0, row = tile * NEON_TILE_ROWS; i < 3 && row < m->rows; i++, row++)                              \
                y[(t0 + (size_t)t) * y_stride + row] = m->scale[row] * neon_fold_groups(acc[i][t]);                          \
    }

FIVE_TILE(1)
FIVE_TILE(2)
FIVE_TILE(3)
FIVE_TILE(4)
FIVE_TILE(5)
FIVE_TILE(6)
FIVE_TILE(7)
FIVE_TILE(8)

static void five_multiply(const five_matrix *m, size_t begin, size_t end, const activations *x, float *y, size_t y_stride)
{
    static void (*const of[MOST_FIVE])(const five_matrix *, size_t, const activations *, size_t, float *, size_t) = {
        five_tile_1, five_tile_2, five_tile_3, five_tile_4, five_tile_5, five_tile_6, five_tile_7, five_tile_8};
    for (size_t tile = begin; tile < end; tile++)
        for (size_t t = 0; t < x->rows;) {
            const size_t run = neon_next_run(x->rows - t, MOST_FIVE);
            of[run - 1](m, tile, x, t, y, y_stride);
            t += run;
        }
}

/* Rows row .. row + n - 1 (n <= 4) times T activation rows. With fewer than four rows the last one stands for the
 * missing ones, whose results are not written. */
#define INT8_ROWS(T)                                                                                                     \
    static void int8_rows_##T(const int8_matrix *m, size_t row, size_t n, const activations *a, size_t t0, float *y,     \
                              size_t stride)                                                                             \
    {                                                                                                                    \
        const size_t row_bytes = m->superblocks * SUPERBLOCK;                                                            \
        const int8_t *k[INT8_BLOCK];                                                                                     \
        float32x4_t acc[INT8_BLOCK][T];                                                                                  \
        UNROLLED for (size_t r = 0; r < INT8_BLOCK; r++)                                                                 \
        {                                                                                                                \
            k[r] = m->k + (row + (r < n ? r : n - 1)) * row_bytes;                                                       \
            UNROLLED for (int t = 0; t < T; t++) acc[r][t] = vdupq_n_f32(0.0f);                                          \
        }                                                                                                                \
        for (size_t b = 0; b < m->superblocks; b++) {                                                                    \
            const int8_t *q = a->q + (b * a->rows + t0) * SUPERBLOCK;                                                    \
            const float *d = a->d + (b * a->rows + t0) * GROUPS;                                                         \
            int32x4_t s[INT8_BLOCK][T];                                                                                  \
            UNROLLED for (int r = 0; r < INT8_BLOCK; r++) UNROLLED for (int t = 0; t < T; t++) s[r][t] = vdupq_n_s32(0); \
            for (size_t at = 0; at < SUPERBLOCK; at += 16) {                                                             \
                int8x16_t u[INT8_BLOCK];                                                                                 \
                UNROLLED for (int r = 0; r < INT8_BLOCK; r++) u[r] = vld1q_s8(k[r] + b * SUPERBLOCK + at);               \
                UNROLLED for (int t = 0; t < T; t++)                                                                     \
                {                                                                                                        \
                    const int8x16_t x = vld1q_s8(q + t * SUPERBLOCK + at);                                               \
                    UNROLLED for (int r = 0; r < INT8_BLOCK; r++) s[r][t] = vdotq_s32(s[r][t], u[r], x);                 \
                }                                                                                                        \
            }                                                                                                            \
            UNROLLED for (int t = 0; t < T; t++)                                                                         \
            {                                                                                                            \
                const float32x4_t scales = vld1q_f32(d + t * GROUPS);                                                    \
                UNROLLED for (int r = 0; r < INT8_BLOCK; r++) acc[r][t] =                                                \
                    vfmaq_f32(acc[r][t], vcvtq_f32_s32(s[r][t]), scales);                                                \
            }                                                                                                            \
        }                                                                                                                \
        for (int t = 0; t < T; t++)                                                                                      \
            for (size_t r = 0; r < n; r++)                                                                               \
                y[(t0 + (size_t)t) * stride + row + r] = m->scale[row + r] * neon_fold_groups(acc[r][t]);                \
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
            const size_t run = neon_next_run(x->rows - t, MOST_INT8);
            of[run - 1](m, row, n, x, t, y, y_stride);
            t += run;
        }
    }
}

void kernels_dotprod(kernel_table *table)
{
    table->five_multiply = five_multiply;
    table->int8_multiply = int8_multiply;
}
