/* The definition's scalar pieces that more than one file of kernels needs. */
#ifndef KERNELS_REF_H
#define KERNELS_REF_H

#include "kernels/kernels.h"

/* Whole functions of the definition, which an instruction set may fall back to for shapes it does not cover. */
void ref_five_multiply(const five_matrix *m, size_t begin, size_t end, const activations *x, float *y, size_t y_stride);
void ref_attend(const attention *a);
bool ref_quantise(const activations *a, size_t t, const float *x, size_t cols, size_t begin, size_t end);
void ref_rmsnorm(float *y, const float *x, const float *weight, size_t n, float eps);
void ref_rope(float *head, size_t rot, const float *c, const float *s);
void ref_to_half(uint16_t *out, const float *x, size_t n);
void ref_swiglu(float *out, const float *gate, const float *up, size_t n);
bool ref_argmax(const float *logits, size_t n, uint32_t *id, float *second);

/* Rule 10. */
float ref_exp32(float x);

float ref_from_half(uint16_t h);

/* Rule 1. */
float ref_tree16(float *lanes);
float ref_chain16(const float *x, const float *y, size_t n);

/* Coefficients of rule 10, highest power first (Cephes expf). */
#define EXP32_LOG2E 1.44269504088896341f
#define EXP32_LN2_HIGH 0.693359375f
#define EXP32_LN2_LOW -2.12194440e-4f
#define EXP32_P0 1.9875691500e-4f
#define EXP32_P1 1.3981999507e-3f
#define EXP32_P2 8.3334519073e-3f
#define EXP32_P3 4.1665795894e-2f
#define EXP32_P4 1.6666665459e-1f
#define EXP32_P5 5.0000001201e-1f

#endif
