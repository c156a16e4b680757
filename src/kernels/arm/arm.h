/* What the files of the Arm kernels share among themselves. All of it is base armv8-a. */
#ifndef KERNELS_ARM_H
#define KERNELS_ARM_H

#include <arm_neon.h>

#include "kernels/kernels.h"

/* The NEON kernels that are not matrix kernels (neon_vector.c, neon_attend.c). */
void neon_fill_vectors(kernel_table *table);
void neon_attend(const attention *a);

/* Rows of a tile and bytes of its superblock in the trio layout with one lane. */
enum { NEON_TILE_ROWS = 3, NEON_TILE_BYTES = 256 };

/* Integer levels by nibble (kernels/trio.h): of the low nibble's own row, of the high nibble's, and the two parts of
 * the third row. */
typedef struct neon_levels {
    int8x16_t low, high, third_low, third_high;
} neon_levels;

/* Signs of lo and hi by nibble n: digits n % 5, and the third row's n / 5. */
static const int8_t neon_lo_of_digit[16] = {0, 1, -1, 0, 0, 0, 1, -1, 0, 0, 0, 1, -1, 0, 0, 0};
static const int8_t neon_hi_of_digit[16] = {0, 0, 0, 1, -1, 0, 0, 0, 1, -1, 0, 0, 0, 1, -1, 0};
static const int8_t neon_of_extra[16] = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, 0};

/* `levels` points to the [lo, hi] of the tile's three rows. */
static inline neon_levels neon_make_levels(const int16_t *levels)
{
    const int8x16_t lo = vld1q_s8(neon_lo_of_digit), hi = vld1q_s8(neon_hi_of_digit), extra = vld1q_s8(neon_of_extra);
    neon_levels t;
    t.low = vmlaq_s8(vmulq_s8(lo, vdupq_n_s8((int8_t)levels[0])), hi, vdupq_n_s8((int8_t)levels[1]));
    t.high = vmlaq_s8(vmulq_s8(lo, vdupq_n_s8((int8_t)levels[2])), hi, vdupq_n_s8((int8_t)levels[3]));
    t.third_low = vmulq_s8(extra, vdupq_n_s8((int8_t)levels[4]));
    t.third_high = vmulq_s8(extra, vdupq_n_s8((int8_t)levels[5]));
    return t;
}

/* Levels of the tile's rows at 16 columns. */
static inline void neon_expand(const neon_levels *t, const uint8_t *codes, int8x16_t *u0, int8x16_t *u1, int8x16_t *u2)
{
    const uint8x16_t code = vld1q_u8(codes), low = vandq_u8(code, vdupq_n_u8(15)), high = vshrq_n_u8(code, 4);
    *u0 = vqtbl1q_s8(t->low, low);
    *u1 = vqtbl1q_s8(t->high, high);
    *u2 = vaddq_s8(vqtbl1q_s8(t->third_low, low), vqtbl1q_s8(t->third_high, high));
}

/* (acc0 + acc2) + (acc1 + acc3) */
static inline float neon_fold_groups(float32x4_t acc)
{
    const float32x2_t halves = vadd_f32(vget_low_f32(acc), vget_high_f32(acc));
    return vget_lane_f32(halves, 0) + vget_lane_f32(halves, 1);
}

/* Rule 1, tree16, of 16 lanes in four registers. */
static inline float neon_tree16(float32x4_t a, float32x4_t b, float32x4_t c, float32x4_t d)
{
    const float32x4_t four = vaddq_f32(vaddq_f32(a, c), vaddq_f32(b, d));
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

/* The sums of a register block are arrays only in name: the loops over them must be unrolled for that. */
#define UNROLLED _Pragma("GCC unroll 8")

/* Cuts the activation rows into runs of at most `most` that are as even as can be. */
static inline size_t neon_next_run(size_t left, size_t most)
{
    const size_t runs = (left + most - 1) / most;
    return (left + runs - 1) / runs;
}

#endif
