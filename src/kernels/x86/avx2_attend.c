/* Rule 9 for AVX2. Up to four query heads that share a KV head go together, so that a key or value is converted from f16 once for
 * all of them and their chains of fma hide each other's latency. */
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "kernels/x86/avx2_exp.h"
#include "kernels/x86/x86.h"

typedef attention_partial partial;

static inline __m256 half8(const uint16_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }

static inline float tree16(__m256 low, __m256 high)
{
    const __m256 eight = _mm256_add_ps(low, high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* H heads over one chunk of n positions: scores, their maximum, weights, and the weighted sum of values. */
#define ATTEND_CHUNK_OF(H)                                                                                                  \
    static void chunk_##H(const float *q, size_t dim, const uint16_t *k, const uint16_t *v, size_t n, partial *parts)       \
    {                                                                                                                       \
        float s[H][ATTEND_CHUNK + 16];                                                                                      \
        for (size_t j = 0; j < n; j++) {                                                                                    \
            __m256 low[H], high[H];                                                                                         \
            for (int h = 0; h < H; h++) low[h] = high[h] = _mm256_setzero_ps();                                             \
            for (size_t i = 0; i < dim; i += 16) {                                                                          \
                const __m256 k0 = half8(k + j * dim + i), k1 = half8(k + j * dim + i + 8);                                  \
                for (int h = 0; h < H; h++) {                                                                               \
                    low[h] = _mm256_fmadd_ps(_mm256_loadu_ps(q + (size_t)h * dim + i), k0, low[h]);                         \
                    high[h] = _mm256_fmadd_ps(_mm256_loadu_ps(q + (size_t)h * dim + i + 8), k1, high[h]);                   \
                }                                                                                                           \
            }                                                                                                               \
            for (int h = 0; h < H; h++) s[h][j] = tree16(low[h], high[h]);                                                  \
        }                                                                                                                   \
        for (int h = 0; h < H; h++) weigh(s[h], n, &parts[h]);                                                              \
        for (size_t i = 0; i < dim; i += 16) {                                                                              \
            __m256 low[H], high[H];                                                                                         \
            for (int h = 0; h < H; h++) low[h] = high[h] = _mm256_setzero_ps();                                             \
            for (size_t j = 0; j < n; j++) {                                                                                \
                const __m256 v0 = half8(v + j * dim + i), v1 = half8(v + j * dim + i + 8);                                  \
                for (int h = 0; h < H; h++) {                                                                               \
                    const __m256 e = _mm256_broadcast_ss(&s[h][j]);                                                         \
                    low[h] = _mm256_fmadd_ps(e, v0, low[h]);                                                                \
                    high[h] = _mm256_fmadd_ps(e, v1, high[h]);                                                              \
                }                                                                                                           \
            }                                                                                                               \
            for (int h = 0; h < H; h++) {                                                                                   \
                _mm256_storeu_ps(parts[h].o + i, low[h]);                                                                   \
                _mm256_storeu_ps(parts[h].o + i + 8, high[h]);                                                              \
            }                                                                                                               \
        }                                                                                                                   \
    }

/* Turns n scores into weights in place; m and l of the chunk. What stands behind the n scores becomes weight 0. */
static void weigh(float *s, size_t n, partial *part)
{
    float m = -INFINITY;
    for (size_t j = 0; j < n; j++) m = s[j] > m ? s[j] : m;
    for (size_t j = n; j < (n + 15) / 16 * 16; j++) s[j] = -INFINITY;
    const __m256 top = _mm256_set1_ps(m);
    __m256 low = _mm256_setzero_ps(), high = low;
    for (size_t j = 0; j < n; j += 16) {
        const __m256 a = avx2_exp32(_mm256_sub_ps(_mm256_loadu_ps(s + j), top));
        const __m256 b = avx2_exp32(_mm256_sub_ps(_mm256_loadu_ps(s + j + 8), top));
        _mm256_storeu_ps(s + j, a);
        _mm256_storeu_ps(s + j + 8, b);
        low = _mm256_add_ps(low, a);
        high = _mm256_add_ps(high, b);
    }
    part->m = m;
    part->l = tree16(low, high);
}

ATTEND_CHUNK_OF(1)
ATTEND_CHUNK_OF(2)
ATTEND_CHUNK_OF(4)

/* Adds one chunk to the running result with its weight against the overall maximum. */
static void combine(const partial *part, float top, float *total, float *out, size_t dim)
{
    const float w = ref_exp32(part->m - top);
    const __m256 weight = _mm256_set1_ps(w);
    *total = fmaf(part->l, w, *total);
    for (size_t i = 0; i < dim; i += 8)
        _mm256_storeu_ps(out + i, _mm256_fmadd_ps(_mm256_loadu_ps(part->o + i), weight, _mm256_loadu_ps(out + i)));
}

/* H heads over all chunks. The overall maximum is known only after the last chunk, so each chunk's partial result waits in the
 * scratch; they are then combined in the order of the chunks. */
static void heads(const attention *a, size_t first, size_t n_heads)
{
    const size_t dim = a->head_dim, chunks = (a->positions + ATTEND_CHUNK - 1) / ATTEND_CHUNK;
    partial *parts = (partial *)a->scratch;
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
        const __m256 whole = _mm256_set1_ps(total);
        for (size_t i = 0; i < dim; i += 8) _mm256_storeu_ps(out + i, _mm256_div_ps(_mm256_loadu_ps(out + i), whole));
    }
}

void avx2_attend(const attention *a)
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
