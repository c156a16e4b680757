/* Rule 9 for NEON. Up to four query heads that share a KV head go together, so that a key or value is converted from
 * f16 once for all of them and their chains of fma hide each other's latency. */
#include <math.h>
#include <string.h>

#include "kernels/arm/arm.h"
#include "kernels/arm/neon_exp.h"

typedef attention_partial partial;

/* Sixteen f16 values as f32. */
static inline void load_half16(const uint16_t *p, float32x4_t *out)
{
    const float16x8_t a = vreinterpretq_f16_u16(vld1q_u16(p)), b = vreinterpretq_f16_u16(vld1q_u16(p + 8));
    out[0] = vcvt_f32_f16(vget_low_f16(a));
    out[1] = vcvt_high_f32_f16(a);
    out[2] = vcvt_f32_f16(vget_low_f16(b));
    out[3] = vcvt_high_f32_f16(b);
}

/* Turns n scores into weights in place; m and l of the chunk. What stands behind the n scores becomes weight 0. */
static void weigh(float *s, size_t n, partial *part)
{
    float m = -INFINITY;
    for (size_t j = 0; j < n; j++) m = s[j] > m ? s[j] : m;
    for (size_t j = n; j < (n + 15) / 16 * 16; j++) s[j] = -INFINITY;
    const float32x4_t top = vdupq_n_f32(m);
    float32x4_t lanes[4];
    for (int l = 0; l < 4; l++) lanes[l] = vdupq_n_f32(0.0f);
    for (size_t j = 0; j < n; j += 16) UNROLLED for (int l = 0; l < 4; l++)
        {
            const float32x4_t e = neon_exp32(vsubq_f32(vld1q_f32(s + j + 4 * l), top));
            vst1q_f32(s + j + 4 * l, e);
            lanes[l] = vaddq_f32(lanes[l], e);
        }
    part->m = m;
    part->l = neon_tree16(lanes[0], lanes[1], lanes[2], lanes[3]);
}

/* H heads over one chunk of n positions: scores, their maximum, weights, and the weighted sum of values. */
#define ATTEND_CHUNK_OF(H)                                                                                                  \
    static void chunk_##H(const float *q, size_t dim, const uint16_t *k, const uint16_t *v, size_t n, partial *parts)       \
    {                                                                                                                       \
        float s[H][ATTEND_CHUNK + 16];                                                                                      \
        for (size_t j = 0; j < n; j++) {                                                                                    \
            float32x4_t lanes[H][4];                                                                                        \
            UNROLLED for (int h = 0; h < H; h++) UNROLLED for (int l = 0; l < 4; l++) lanes[h][l] = vdupq_n_f32(0.0f);      \
            for (size_t i = 0; i < dim; i += 16) {                                                                          \
                float32x4_t key[4];                                                                                         \
                load_half16(k + j * dim + i, key);                                                                          \
                UNROLLED for (int h = 0; h < H; h++) UNROLLED for (int l = 0; l < 4; l++) lanes[h][l] =                     \
                    vfmaq_f32(lanes[h][l], vld1q_f32(q + (size_t)h * dim + i + 4 * l), key[l]);                             \
            }                                                                                                               \
            UNROLLED for (int h = 0; h < H; h++) s[h][j] = neon_tree16(lanes[h][0], lanes[h][1], lanes[h][2], lanes[h][3]); \
        }                                                                                                                   \
        for (int h = 0; h < H; h++) weigh(s[h], n, &parts[h]);                                                              \
        for (size_t i = 0; i < dim; i += 16) {                                                                              \
            float32x4_t sum[H][4];                                                                                          \
            UNROLLED for (int h = 0; h < H; h++) UNROLLED for (int l = 0; l < 4; l++) sum[h][l] = vdupq_n_f32(0.0f);        \
            for (size_t j = 0; j < n; j++) {                                                                                \
                float32x4_t value[4];                                                                                       \
                load_half16(v + j * dim + i, value);                                                                        \
                UNROLLED for (int h = 0; h < H; h++)                                                                        \
                {                                                                                                           \
                    const float32x4_t e = vdupq_n_f32(s[h][j]);                                                             \
                    UNROLLED for (int l = 0; l < 4; l++) sum[h][l] = vfmaq_f32(sum[h][l], e, value[l]);                     \
                }                                                                                                           \
            }                                                                                                               \
            UNROLLED for (int h = 0; h < H; h++) UNROLLED for (int l = 0; l < 4; l++)                                       \
                vst1q_f32(parts[h].o + i + 4 * l, sum[h][l]);                                                               \
        }                                                                                                                   \
    }

ATTEND_CHUNK_OF(1)
ATTEND_CHUNK_OF(2)
ATTEND_CHUNK_OF(4)

/* Adds one chunk to the running result with its weight against the overall maximum. */
static void combine(const partial *part, float top, float *total, float *out, size_t dim)
{
    const float w = ref_exp32(part->m - top);
    const float32x4_t weight = vdupq_n_f32(w);
    *total = fmaf(part->l, w, *total);
    for (size_t i = 0; i < dim; i += 4) vst1q_f32(out + i, vfmaq_f32(vld1q_f32(out + i), vld1q_f32(part->o + i), weight));
}

/* H heads over all chunks. The overall maximum is known only after the last chunk, so each chunk's partial result
 * waits in the scratch; they are then combined in the order of the chunks. */
static void heads(const attention *a, size_t first, size_t n_heads)
{
    const size_t dim = a->head_dim, chunks = (a->positions + ATTEND_CHUNK - 1) / ATTEND_CHUNK;
    partial *parts = a->scratch;
    float q[4 * ATTEND_MAX_DIM];
    for (size_t i = 0; i < n_heads * dim; i++) q[i] = a->q[first * dim + i] * a->q_scale;
    for (size_t c = 0; c < chunks; c++) {
        const size_t n = c + 1 < chunks ? ATTEND_CHUNK : a->positions - c * ATTEND_CHUNK;
        (n_heads == 4 ? chunk_4 : n_heads == 2 ? chunk_2 : chunk_1)(q, dim, a->k[c], a->v[c], n, parts + c * n_heads);
    }
    for (size_t h = 0; h < n_heads; h++) {
        float *out = a->out + (first + h) * dim, top = -INFINITY, total = 0.0f;
        for (size_t c = 0; c < chunks; c++) top = parts[c * n_heads + h].m > top ? parts[c * n_heads + h].m : top;
        memset(out, 0, dim * sizeof *out);
        for (size_t c = 0; c < chunks; c++) combine(&parts[c * n_heads + h], top, &total, out, dim);
        const float32x4_t whole = vdupq_n_f32(total);
        for (size_t i = 0; i < dim; i += 4) vst1q_f32(out + i, vdivq_f32(vld1q_f32(out + i), whole));
    }
}

void neon_attend(const attention *a)
{
    if (a->head_dim % 16) {
        ref_attend(a);
        return;
    }
    for (size_t h = 0; h < a->heads;) {
        const size_t left = a->heads - h, n = left >= 4 ? 4 : left >= 2 ? 2 : 1;
        heads(a, h, n);
        h += n;
    }
}
