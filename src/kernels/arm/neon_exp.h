/* Rule 10 on 4 lanes. */
#ifndef KERNELS_ARM_NEON_EXP_H
#define KERNELS_ARM_NEON_EXP_H

#include <arm_neon.h>

#include "kernels/ref/ref.h"

/* fmax and fmin give NaN when one operand is, so a NaN goes through. */
static inline float32x4_t neon_exp32(float32x4_t x)
{
    const float32x4_t c = vminq_f32(vdupq_n_f32(88.0f), vmaxq_f32(vdupq_n_f32(-87.0f), x));
    const float32x4_t n = vrndnq_f32(vmulq_f32(c, vdupq_n_f32(EXP32_LOG2E)));
    float32x4_t r = vfmaq_f32(c, n, vdupq_n_f32(-EXP32_LN2_HIGH));
    r = vfmaq_f32(r, n, vdupq_n_f32(-EXP32_LN2_LOW));
    float32x4_t p = vdupq_n_f32(EXP32_P0);
    p = vfmaq_f32(vdupq_n_f32(EXP32_P1), p, r);
    p = vfmaq_f32(vdupq_n_f32(EXP32_P2), p, r);
    p = vfmaq_f32(vdupq_n_f32(EXP32_P3), p, r);
    p = vfmaq_f32(vdupq_n_f32(EXP32_P4), p, r);
    p = vfmaq_f32(vdupq_n_f32(EXP32_P5), p, r);
    const float32x4_t y = vaddq_f32(vfmaq_f32(r, p, vmulq_f32(r, r)), vdupq_n_f32(1.0f));
    const int32x4_t factor = vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127)), 23);
    const float32x4_t scaled = vmulq_f32(y, vreinterpretq_f32_s32(factor));
    const uint32x4_t below = vcltq_f32(x, vdupq_n_f32(-87.0f));
    return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(scaled), below));
}

#endif
