/* AVX-512 in plain C: included before src/kernels/x86/avx512_matrix.c (with OUTRIDER_EMULATE_AVX512, and
 * kernels_avx512 renamed) it lets the kernels of that file run and be compared on any processor. SIMDe supplies the
 * intrinsics; those it lacks stand below. */
#ifndef SUPPORT_EMULATE_AVX512_H
#define SUPPORT_EMULATE_AVX512_H

#define SIMDE_ENABLE_NATIVE_ALIASES
#pragma GCC diagnostic ignored "-Wpsabi"
#include <simde/x86/avx512.h>
#include <simde/x86/fma.h>
#include <string.h>

#if !defined(__AVX512F__)
typedef simde__mmask64 __mmask64;
#endif

static inline simde__m512 emulated_permute_ps(simde__m512 a, int order)
{
    float in[16], out[16];
    memcpy(in, &a, sizeof in);
    for (int i = 0; i < 16; i++) out[i] = in[i / 4 * 4 + (order >> i % 4 * 2 & 3)];
    memcpy(&a, out, sizeof out);
    return a;
}
#undef _mm512_permute_ps
#define _mm512_permute_ps emulated_permute_ps

static inline simde__m512 emulated_cvtepi32_ps(simde__m512i a)
{
    int32_t in[16];
    float out[16];
    simde__m512 r;
    memcpy(in, &a, sizeof in);
    for (int i = 0; i < 16; i++) out[i] = (float)in[i];
    memcpy(&r, out, sizeof r);
    return r;
}
#undef _mm512_cvtepi32_ps
#define _mm512_cvtepi32_ps emulated_cvtepi32_ps

/* SIMDe's own fma may round twice. */
static inline simde__m512 emulated_fmadd_ps(simde__m512 a, simde__m512 b, simde__m512 c)
{
    float x[16], y[16], z[16];
    memcpy(x, &a, sizeof x);
    memcpy(y, &b, sizeof y);
    memcpy(z, &c, sizeof z);
    for (int i = 0; i < 16; i++) z[i] = __builtin_fmaf(x[i], y[i], z[i]);
    memcpy(&c, z, sizeof z);
    return c;
}
#undef _mm512_fmadd_ps
#define _mm512_fmadd_ps emulated_fmadd_ps

/* The alias of this version of SIMDe has the parameters of the masked form. */
#undef _mm512_madd_epi16
#define _mm512_madd_epi16 simde_mm512_madd_epi16

static inline simde__m512i emulated_zextsi128_si512(simde__m128i a)
{
    simde__m512i r;
    memset(&r, 0, sizeof r);
    memcpy(&r, &a, sizeof a);
    return r;
}
#undef _mm512_zextsi128_si512
#define _mm512_zextsi128_si512 emulated_zextsi128_si512

#endif
