/* Rules 1 to 3, 7, 8, 11 and 12 for NEON. A tail shorter than a step goes through a copy that is padded with zeros,
 * or through the plain C. */
#include <math.h>
#include <string.h>

#include "kernels/arm/arm.h"
#include "kernels/arm/neon_exp.h"

static void rmsnorm(float *y, const float *x, const float *weight, size_t n, float eps)
{
    float32x4_t lanes[4];
    for (int l = 0; l < 4; l++) lanes[l] = vdupq_n_f32(0.0f);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) UNROLLED for (int l = 0; l < 4; l++)
        {
            const float32x4_t a = vld1q_f32(x + i + 4 * l);
            lanes[l] = vfmaq_f32(lanes[l], a, a);
        }
    if (i < n) {
        float tail[16] = {0};
        memcpy(tail, x + i, (n - i) * sizeof *x);
        for (int l = 0; l < 4; l++) {
            const float32x4_t a = vld1q_f32(tail + 4 * l);
            lanes[l] = vfmaq_f32(lanes[l], a, a);
        }
    }
    const float m = neon_tree16(lanes[0], lanes[1], lanes[2], lanes[3]) / (float)n;
    const float r = 1.0f / sqrtf(m + eps);
    const float32x4_t factor = vdupq_n_f32(r);
    for (i = 0; i + 4 <= n; i += 4) vst1q_f32(y + i, vmulq_f32(vmulq_f32(vld1q_f32(x + i), factor), vld1q_f32(weight + i)));
    for (; i < n; i++) y[i] = (x[i] * r) * weight[i];
}

/* One whole superblock of rule 3. Register l of 16 columns is group l, so each group has a maximum, a scale and an
 * inverse of its own. */
static bool quantise_superblock(const float *x, int8_t *q, float *d, int16_t *sums)
{
    const uint32x4_t magnitude = vdupq_n_u32(0x7fffffff);
    uint32x4_t top[GROUPS];
    float32x4_t inv[GROUPS];
    for (int l = 0; l < GROUPS; l++) top[l] = vdupq_n_u32(0);
    for (int j = 0; j < 16; j++)
        UNROLLED for (int l = 0; l < GROUPS; l++) top[l] =
            vmaxq_u32(top[l], vandq_u32(vreinterpretq_u32_f32(vld1q_f32(x + 16 * j + 4 * l)), magnitude));
    for (int l = 0; l < GROUPS; l++) {
        const uint32_t bits = vmaxvq_u32(top[l]);
        if (bits >= 0x7f800000u) return false;
        float amax;
        memcpy(&amax, &bits, sizeof amax);
        const bool zero = amax < 1e-30f;
        d[l] = zero ? 0.0f : amax / 127.0f;
        inv[l] = vdupq_n_f32(zero ? 0.0f : 127.0f / amax);
    }
    int16x8_t sum = vdupq_n_s16(0);
    for (int j = 0; j < 16; j++) {
        int32x4_t wide[GROUPS];
        UNROLLED for (int l = 0; l < GROUPS; l++) wide[l] = vcvtnq_s32_f32(vmulq_f32(vld1q_f32(x + 16 * j + 4 * l), inv[l]));
        const int16x8_t low = vcombine_s16(vmovn_s32(wide[0]), vmovn_s32(wide[1])),
                        high = vcombine_s16(vmovn_s32(wide[2]), vmovn_s32(wide[3]));
        const int8x16_t all = vcombine_s8(vmovn_s16(low), vmovn_s16(high));
        vst1q_s8(q + 16 * j, all);
        sum = vpadalq_s8(sum, all);
    }
    vst1q_s16(sums, sum);
    return true;
}

static bool quantise(const activations *a, size_t t, const float *x, size_t cols, size_t begin, size_t end)
{
    for (size_t b = begin; b < end; b++) {
        const size_t at = b * a->rows + t;
        const float *from = x + b * SUPERBLOCK;
        float tail[SUPERBLOCK];
        if (cols < (b + 1) * SUPERBLOCK) {
            const size_t have = cols > b * SUPERBLOCK ? cols - b * SUPERBLOCK : 0;
            memset(tail, 0, sizeof tail);
            memcpy(tail, from, have * sizeof *x);
            from = tail;
        }
        if (!quantise_superblock(from, a->q + at * SUPERBLOCK, a->d + at * GROUPS, a->sums + at * 8)) return false;
    }
    return true;
}

static void rope(float *head, size_t rot, const float *c, const float *s)
{
    const size_t h = rot / 2;
    size_t i = 0;
    for (; i + 4 <= h; i += 4) {
        const float32x4_t a = vld1q_f32(head + i), b = vld1q_f32(head + i + h), cosine = vld1q_f32(c + i),
                          sine = vld1q_f32(s + i);
        vst1q_f32(head + i, vfmaq_f32(vnegq_f32(vmulq_f32(b, sine)), a, cosine));
        vst1q_f32(head + i + h, vfmaq_f32(vmulq_f32(a, sine), b, cosine));
    }
    for (; i < h; i++) {
        const float a = head[i], b = head[i + h];
        head[i] = fmaf(a, c[i], -(b * s[i]));
        head[i + h] = fmaf(b, c[i], a * s[i]);
    }
}

static void to_half(uint16_t *out, const float *x, size_t n)
{
    const float32x4_t top = vdupq_n_f32(65504.0f), bottom = vdupq_n_f32(-65504.0f);
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1_u16(out + i, vreinterpret_u16_f16(vcvt_f16_f32(vmaxq_f32(bottom, vminq_f32(top, vld1q_f32(x + i))))));
    if (i < n) ref_to_half(out + i, x + i, n - i);
}

static void swiglu(float *out, const float *gate, const float *up, size_t n)
{
    const float32x4_t one = vdupq_n_f32(1.0f);
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const float32x4_t g = vld1q_f32(gate + i);
        const float32x4_t gated = vmulq_f32(g, vdivq_f32(one, vaddq_f32(one, neon_exp32(vnegq_f32(g)))));
        vst1q_f32(out + i, vmulq_f32(gated, vld1q_f32(up + i)));
    }
    if (i < n) ref_swiglu(out + i, gate + i, up + i, n - i);
}

static void add(float *x, const float *y, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4) vst1q_f32(x + i, vaddq_f32(vld1q_f32(x + i), vld1q_f32(y + i)));
    for (; i < n; i++) x[i] += y[i];
}

/* Largest and second largest value per lane; the first position of the largest is looked for afterwards. */
static bool argmax(const float *z, size_t n, uint32_t *id, float *second)
{
    if (n < 16) return ref_argmax(z, n, id, second);
    const uint32x4_t magnitude = vdupq_n_u32(0x7fffffff);
    float32x4_t best = vdupq_n_f32(-INFINITY), next = best;
    uint32x4_t top = vdupq_n_u32(0);
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const float32x4_t v = vld1q_f32(z + i);
        top = vmaxq_u32(top, vandq_u32(vreinterpretq_u32_f32(v), magnitude));
        next = vmaxq_f32(next, vminq_f32(best, v));
        best = vmaxq_f32(best, v);
    }
    if (vmaxvq_u32(top) >= 0x7f800000u) return false;
    float all[8 + 4], largest = -INFINITY, runner_up = -INFINITY;
    size_t count = 8;
    vst1q_f32(all, best);
    vst1q_f32(all + 4, next);
    for (; i < n; i++) {
        if (!(fabsf(z[i]) < INFINITY)) return false;
        all[count++] = z[i];
    }
    for (size_t j = 0; j < count; j++) {
        if (all[j] > largest) {
            runner_up = largest;
            largest = all[j];
        } else if (all[j] > runner_up) {
            runner_up = all[j];
        }
    }
    size_t at = 0;
    while (z[at] != largest) at++;
    *id = (uint32_t)at;
    if (second) *second = runner_up;
    return true;
}

void neon_fill_vectors(kernel_table *table)
{
    table->quantise = quantise;
    table->rmsnorm = rmsnorm;
    table->rope = rope;
    table->to_half = to_half;
    table->attend = neon_attend;
    table->swiglu = swiglu;
    table->add = add;
    table->argmax = argmax;
}
