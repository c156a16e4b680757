/* Rules 1 to 3, 7, 8, 11 and 12 for AVX2. A tail shorter than a step goes through a copy that is padded with zeros. */
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "kernels/x86/avx2_exp.h"
#include "kernels/x86/x86.h"

/* Folds 16 lanes held in two registers: 8, 4, 2, 1 (rule 1). */
static inline float tree16(__m256 low, __m256 high)
{
    const __m256 eight = _mm256_add_ps(low, high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

static void rmsnorm(float *y, const float *x, const float *weight, size_t n, float eps)
{
    __m256 low = _mm256_setzero_ps(), high = low;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m256 a = _mm256_loadu_ps(x + i), b = _mm256_loadu_ps(x + i + 8);
        low = _mm256_fmadd_ps(a, a, low);
        high = _mm256_fmadd_ps(b, b, high);
    }
    if (i < n) {
        float tail[16] = {0};
        memcpy(tail, x + i, (n - i) * sizeof *x);
        const __m256 a = _mm256_loadu_ps(tail), b = _mm256_loadu_ps(tail + 8);
        low = _mm256_fmadd_ps(a, a, low);
        high = _mm256_fmadd_ps(b, b, high);
    }
    const float m = tree16(low, high) / (float)n;
    const float r = 1.0f / sqrtf(m + eps);
    const __m256 factor = _mm256_set1_ps(r);
    for (i = 0; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_mul_ps(_mm256_loadu_ps(x + i), factor), _mm256_loadu_ps(weight + i)));
    for (; i < n; i++) y[i] = (x[i] * r) * weight[i];
}

/* One whole superblock of rule 3. The 128-bit quarter l of 16 columns is group l, so the four maxima, scales and inverses of the groups are
 * kept spread over two registers: groups 0, 1 in one, 2, 3 in the other. */
static bool quantise_superblock(const float *x, int8_t *q, float *d, int16_t *sums)
{
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
    __m256i top01 = _mm256_setzero_si256(), top23 = top01;
    for (int j = 0; j < 16; j++) {
        top01 = _mm256_max_epu32(top01, _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(x + 16 * j)), magnitude));
        top23 = _mm256_max_epu32(top23, _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(x + 16 * j + 8)), magnitude));
    }
    top01 = _mm256_max_epu32(top01, _mm256_shuffle_epi32(top01, _MM_SHUFFLE(1, 0, 3, 2)));
    top01 = _mm256_max_epu32(top01, _mm256_shuffle_epi32(top01, _MM_SHUFFLE(2, 3, 0, 1)));
    top23 = _mm256_max_epu32(top23, _mm256_shuffle_epi32(top23, _MM_SHUFFLE(1, 0, 3, 2)));
    top23 = _mm256_max_epu32(top23, _mm256_shuffle_epi32(top23, _MM_SHUFFLE(2, 3, 0, 1)));
    const __m256i bad = _mm256_cmpgt_epi32(_mm256_max_epu32(top01, top23), _mm256_set1_epi32(0x7f7fffff));
    if (!_mm256_testz_si256(bad, bad)) return false;
    const __m256 a01 = _mm256_castsi256_ps(top01), a23 = _mm256_castsi256_ps(top23), limit = _mm256_set1_ps(1e-30f),
                 full = _mm256_set1_ps(127.0f);
    const __m256 ok01 = _mm256_cmp_ps(a01, limit, _CMP_GE_OQ), ok23 = _mm256_cmp_ps(a23, limit, _CMP_GE_OQ);
    const __m256 d01 = _mm256_and_ps(ok01, _mm256_div_ps(a01, full)), d23 = _mm256_and_ps(ok23, _mm256_div_ps(a23, full));
    const __m256 inv01 = _mm256_and_ps(ok01, _mm256_div_ps(full, a01)), inv23 = _mm256_and_ps(ok23, _mm256_div_ps(full, a23));
    d[0] = _mm256_cvtss_f32(d01);
    d[1] = _mm_cvtss_f32(_mm256_extractf128_ps(d01, 1));
    d[2] = _mm256_cvtss_f32(d23);
    d[3] = _mm_cvtss_f32(_mm256_extractf128_ps(d23, 1));
    __m128i sum = _mm_setzero_si128();
    for (int j = 0; j < 16; j++) {
        const __m256i q01 = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 16 * j), inv01));
        const __m256i q23 = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 16 * j + 8), inv23));
        const __m128i w01 = _mm_packs_epi32(_mm256_castsi256_si128(q01), _mm256_extracti128_si256(q01, 1));
        const __m128i w23 = _mm_packs_epi32(_mm256_castsi256_si128(q23), _mm256_extracti128_si256(q23, 1));
        const __m128i all = _mm_packs_epi16(w01, w23);
        _mm_store_si128((__m128i *)(q + 16 * j), all);
        sum = _mm_add_epi16(sum, _mm_maddubs_epi16(_mm_set1_epi8(1), all));
    }
    _mm_storeu_si128((__m128i *)sums, sum);
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
    for (; i + 8 <= h; i += 8) {
        const __m256 a = _mm256_loadu_ps(head + i), b = _mm256_loadu_ps(head + i + h), cosine = _mm256_loadu_ps(c + i),
                     sine = _mm256_loadu_ps(s + i);
        _mm256_storeu_ps(head + i, _mm256_fmsub_ps(a, cosine, _mm256_mul_ps(b, sine)));
        _mm256_storeu_ps(head + i + h, _mm256_fmadd_ps(b, cosine, _mm256_mul_ps(a, sine)));
    }
    for (; i < h; i++) {
        const float a = head[i], b = head[i + h];
        head[i] = fmaf(a, c[i], -(b * s[i]));
        head[i + h] = fmaf(b, c[i], a * s[i]);
    }
}

static void to_half(uint16_t *out, const float *x, size_t n)
{
    const __m256 top = _mm256_set1_ps(65504.0f), bottom = _mm256_set1_ps(-65504.0f);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 clamped = _mm256_max_ps(bottom, _mm256_min_ps(top, _mm256_loadu_ps(x + i)));
        _mm_storeu_si128((__m128i *)(out + i), _mm256_cvtps_ph(clamped, _MM_FROUND_TO_NEAREST_INT));
    }
    if (i < n) ref_to_half(out + i, x + i, n - i);
}

static void swiglu(float *out, const float *gate, const float *up, size_t n)
{
    const __m256 one = _mm256_set1_ps(1.0f), sign = _mm256_set1_ps(-0.0f);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 g = _mm256_loadu_ps(gate + i);
        const __m256 gated = _mm256_mul_ps(g, _mm256_div_ps(one, _mm256_add_ps(one, avx2_exp32(_mm256_xor_ps(g, sign)))));
        _mm256_storeu_ps(out + i, _mm256_mul_ps(gated, _mm256_loadu_ps(up + i)));
    }
    if (i < n) ref_swiglu(out + i, gate + i, up + i, n - i);
}

static void add(float *x, const float *y, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(x + i, _mm256_add_ps(_mm256_loadu_ps(x + i), _mm256_loadu_ps(y + i)));
    for (; i < n; i++) x[i] += y[i];
}

/* Largest and second largest value per lane; the first position of the largest is looked for afterwards. */
static bool argmax(const float *z, size_t n, uint32_t *id, float *second)
{
    if (n < 32) return ref_argmax(z, n, id, second);
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
    __m256 best = _mm256_set1_ps(-INFINITY), next = best;
    __m256i top = _mm256_setzero_si256();
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 v = _mm256_loadu_ps(z + i);
        top = _mm256_max_epu32(top, _mm256_and_si256(_mm256_castps_si256(v), magnitude));
        next = _mm256_max_ps(next, _mm256_min_ps(best, v));
        best = _mm256_max_ps(best, v);
    }
    const __m256i bad = _mm256_cmpgt_epi32(top, _mm256_set1_epi32(0x7f7fffff));
    if (!_mm256_testz_si256(bad, bad)) return false;
    float all[16 + 8], largest = -INFINITY, runner_up = -INFINITY;
    size_t count = 16;
    _mm256_storeu_ps(all, best);
    _mm256_storeu_ps(all + 8, next);
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

void avx2_fill_vectors(kernel_table *table)
{
    table->quantise = quantise;
    table->rmsnorm = rmsnorm;
    table->rope = rope;
    table->to_half = to_half;
    table->attend = avx2_attend;
    table->swiglu = swiglu;
    table->add = add;
    table->argmax = argmax;
}
