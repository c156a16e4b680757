/* Rule 10 on 8 lanes. */
#ifndef KERNELS_X86_AVX2_EXP_H
#define KERNELS_X86_AVX2_EXP_H

#include <immintrin.h>

#include "kernels/ref/ref.h"

/* max and min give their second operand when one is NaN, so a NaN goes through. */
static inline __m256 avx2_exp32(__m256 x)
{
    const __m256 c = _mm256_min_ps(_mm256_set1_ps(88.0f), _mm256_max_ps(_mm256_set1_ps(-87.0f), x));
    const __m256 n = _mm256_round_ps(_mm256_mul_ps(c, _mm256_set1_ps(EXP32_LOG2E)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-EXP32_LN2_HIGH), c);
    r = _mm256_fmadd_ps(n, _mm256_set1_ps(-EXP32_LN2_LOW), r);
    __m256 p = _mm256_set1_ps(EXP32_P0);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP32_P1));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP32_P2));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP32_P3));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP32_P4));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP32_P5));
    const __m256 y = _mm256_add_ps(_mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r), _mm256_set1_ps(1.0f));
    const __m256i factor = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
    const __m256 scaled = _mm256_mul_ps(y, _mm256_castsi256_ps(factor));
    return _mm256_andnot_ps(_mm256_cmp_ps(x, _mm256_set1_ps(-87.0f), _CMP_LT_OQ), scaled);
}

#endif
