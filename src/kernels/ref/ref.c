/* The plain C kernels: the engine's definition. Written to be read beside docs/EXACTNESS.md; speed is nobody's
 * concern here. Compiled without contraction, so that fmaf stands exactly where the contract has an fma. */
#include "kernels/ref/ref.h"

#include <math.h>
#include <string.h>

/* Rule 1, tree16: 16 lanes folded 8, 4, 2, 1. */
float ref_tree16(float *lanes)
{
    for (int h = 8; h >= 1; h /= 2)
        for (int j = 0; j < h; j++) lanes[j] += lanes[j + h];
    return lanes[0];
}

/* Rule 1, chain16. The vectors count as padded with zeros to a multiple of 16, and the padding takes part (it turns
 * a lane of -0 to +0). */
float ref_chain16(const float *x, const float *y, size_t n)
{
    float lanes[16] = {0};
    for (size_t i = 0; i < (n + 15) / 16 * 16; i++) {
        const float a = i < n ? x[i] : 0.0f, b = i < n ? y[i] : 0.0f;
        lanes[i % 16] = fmaf(a, b, lanes[i % 16]);
    }
    return ref_tree16(lanes);
}

/* Rule 10. The scaling by 2^n is one multiplication: n lies in -126..127, so the factor is a normal number. */
float ref_exp32(float x)
{
    if (x != x) return x;
    if (x < -87.0f) return 0.0f;
    const float c = x > 88.0f ? 88.0f : x;
    const float n = rintf(c * EXP32_LOG2E);
    float r = fmaf(n, -EXP32_LN2_HIGH, c);
    r = fmaf(n, -EXP32_LN2_LOW, r);
    float p = EXP32_P0;
    p = fmaf(p, r, EXP32_P1);
    p = fmaf(p, r, EXP32_P2);
    p = fmaf(p, r, EXP32_P3);
    p = fmaf(p, r, EXP32_P4);
    p = fmaf(p, r, EXP32_P5);
    const float y = fmaf(p, r * r, r) + 1.0f;
    const uint32_t bits = (uint32_t)((int32_t)n + 127) << 23;
    float factor;
    memcpy(&factor, &bits, 4);
    return y * factor;
}

float ref_from_half(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 0x3ff;
    if (exponent == 0) {
        const float magnitude = (float)mantissa * 0x1p-24f;
        return sign ? -magnitude : magnitude;
    }
    const uint32_t bits = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | mantissa << 13;
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

/* Rule 8: saturated at +-65504, rounded to nearest even; NaN stays NaN, so that it comes to light where rule 12
 * looks. Below the normal range the sum with 0.5 places the f16 unit (2^-24) at the last bit of the f32 mantissa, so
 * the addition itself rounds. */
static uint16_t half_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    float magnitude = fabsf(x);
    if (magnitude != magnitude) return sign | 0x7e00;
    if (magnitude >= 65504.0f) return sign | 0x7bff;
    if (magnitude < 0x1p-14f) {
        const float shifted = magnitude + 0.5f;
        memcpy(&bits, &shifted, 4);
        return (uint16_t)(sign | (bits - 0x3f000000u));
    }
    memcpy(&bits, &magnitude, 4);
    bits += 0xfff + (bits >> 13 & 1);
    return (uint16_t)(sign | ((bits >> 13) - (112u << 10)));
}

void ref_to_half(uint16_t *out, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) out[i] = half_of(x[i]);
}

void ref_rmsnorm(float *y, const float *x, const float *weight, size_t n, float eps)
{
    const float m = ref_chain16(x, x, n) / (float)n;
    const float r = 1.0f / sqrtf(m + eps);
    for (size_t i = 0; i < n; i++) y[i] = (x[i] * r) * weight[i];
}

/* Rule 3. The magnitude's bits, seen as an integer, order as the magnitude does and put infinity and NaN on top. */
static uint32_t magnitude_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits & 0x7fffffffu;
}

bool ref_quantise(const activations *a, size_t t, const float *x, size_t cols, size_t begin, size_t end)
{
    for (size_t b = begin; b < end; b++) {
        int8_t *q = a->q + (b * a->rows + t) * SUPERBLOCK;
        float *d = a->d + (b * a->rows + t) * GROUPS;
        int16_t *sums = a->sums + (b * a->rows + t) * 8;
        uint32_t top[GROUPS] = {0};
        for (size_t c = 0; c < SUPERBLOCK && b * SUPERBLOCK + c < cols; c++) {
            const uint32_t bits = magnitude_bits(x[b * SUPERBLOCK + c]);
            if (bits > top[c / 4 % 4]) top[c / 4 % 4] = bits;
        }
        float inv[GROUPS];
        for (int l = 0; l < GROUPS; l++) {
            if (top[l] >= 0x7f800000u) return false;
            float amax;
            memcpy(&amax, &top[l], 4);
            const bool zero = amax < 1e-30f;
            d[l] = zero ? 0.0f : amax / 127.0f;
            inv[l] = zero ? 0.0f : 127.0f / amax;
        }
        memset(sums, 0, 8 * sizeof *sums);
        for (size_t c = 0; c < SUPERBLOCK; c++) {
            const float value = b * SUPERBLOCK + c < cols ? x[b * SUPERBLOCK + c] : 0.0f;
            q[c] = (int8_t)rintf(value * inv[c / 4 % 4]);
            sums[c / 2 % 8] = (int16_t)(sums[c / 2 % 8] + q[c]);
        }
    }
    return true;
}

/* Rule 5 for one row of integers k (stride of a whole row of superblocks) and activation row t. */
static float row_times(const int8_t *k, float scale, const activations *x, size_t t)
{
    float acc[GROUPS] = {0};
    for (size_t b = 0; b < x->superblocks; b++) {
        const int8_t *q = x->q + (b * x->rows + t) * SUPERBLOCK;
        const float *d = x->d + (b * x->rows + t) * GROUPS;
        int32_t dot[GROUPS] = {0};
        for (size_t c = 0; c < SUPERBLOCK; c++) dot[c / 4 % 4] += (int32_t)k[b * SUPERBLOCK + c] * q[c];
        for (int l = 0; l < GROUPS; l++) acc[l] = fmaf((float)dot[l], d[l], acc[l]);
    }
    return scale * ((acc[0] + acc[2]) + (acc[1] + acc[3]));
}

static void ref_int8_multiply(const int8_matrix *m, size_t begin, size_t end, const activations *x, float *y,
                              size_t y_stride)
{
    for (size_t r = begin; r < end; r++)
        for (size_t t = 0; t < x->rows; t++)
            y[t * y_stride + r] = row_times(m->k + r * m->superblocks * SUPERBLOCK, m->scale[r], x, t);
}

/* The definition's packed form of a five-value matrix is one int8 level a weight: a tile is one row. */
static void ref_five_pack_row(uint8_t *tile, size_t row_in_tile, const five_row *row, int k_lo, int k_hi)
{
    (void)row_in_tile;
    int8_t *k = (int8_t *)tile;
    for (size_t c = 0; c < row->cols; c++) {
        const int p = row->bp[c / 8] >> (c % 8) & 1, n = row->bn[c / 8] >> (c % 8) & 1,
                  r = row->br[c / 8] >> (c % 8) & 1;
        k[c] = (int8_t)((p - n) * (r ? k_hi : k_lo));
    }
}

void ref_five_multiply(const five_matrix *m, size_t begin, size_t end, const activations *x, float *y, size_t y_stride)
{
    for (size_t r = begin; r < end && r < m->rows; r++)
        for (size_t t = 0; t < x->rows; t++)
            y[t * y_stride + r] =
                row_times((const int8_t *)m->codes + r * m->superblocks * SUPERBLOCK, m->scale[r], x, t);
}

/* Rule 7. */
void ref_rope(float *head, size_t rot, const float *c, const float *s)
{
    const size_t h = rot / 2;
    for (size_t i = 0; i < h; i++) {
        const float a = head[i], b = head[i + h];
        head[i] = fmaf(a, c[i], -(b * s[i]));
        head[i + h] = fmaf(b, c[i], a * s[i]);
    }
}

/* Rule 9 for one head. */
static void attend_head(const attention *a, const float *q, float *out)
{
    const size_t dim = a->head_dim, chunks = (a->positions + ATTEND_CHUNK - 1) / ATTEND_CHUNK;
    float scaled[ATTEND_MAX_DIM], key[ATTEND_MAX_DIM], s[ATTEND_CHUNK], part[ATTEND_MAX_DIM];
    float top = -INFINITY, total, all[ATTEND_MAX_DIM];
    for (size_t i = 0; i < dim; i++) scaled[i] = q[i] * a->q_scale;
    /* Twice over the chunks: the first pass finds M, the second repeats each chunk and adds it with its final
     * weight. */
    for (int pass = 0; pass < 2; pass++) {
        total = 0.0f;
        memset(all, 0, sizeof all);
        for (size_t c = 0; c < chunks; c++) {
            const size_t n = c + 1 < chunks ? ATTEND_CHUNK : a->positions - c * ATTEND_CHUNK;
            float m = -INFINITY, lanes[16] = {0};
            for (size_t j = 0; j < n; j++) {
                for (size_t i = 0; i < dim; i++) key[i] = ref_from_half(a->k[c][j * dim + i]);
                s[j] = ref_chain16(scaled, key, dim);
                if (s[j] > m) m = s[j];
            }
            if (pass == 0) {
                if (m > top) top = m;
                continue;
            }
            memset(part, 0, sizeof part);
            for (size_t j = 0; j < n; j++) {
                const float e = ref_exp32(s[j] - m);
                lanes[j % 16] += e;
                for (size_t i = 0; i < dim; i++) part[i] = fmaf(e, ref_from_half(a->v[c][j * dim + i]), part[i]);
            }
            const float w = ref_exp32(m - top);
            total = fmaf(ref_tree16(lanes), w, total);
            for (size_t i = 0; i < dim; i++) all[i] = fmaf(part[i], w, all[i]);
        }
    }
    for (size_t i = 0; i < dim; i++) out[i] = all[i] / total;
}

void ref_attend(const attention *a)
{
    for (size_t h = 0; h < a->heads; h++) attend_head(a, a->q + h * a->head_dim, a->out + h * a->head_dim);
}

void ref_swiglu(float *out, const float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float g = gate[i];
        out[i] = (g * (1.0f / (1.0f + ref_exp32(-g)))) * up[i];
    }
}

static void ref_add(float *x, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] += y[i];
}

bool ref_argmax(const float *logits, size_t n, uint32_t *id, float *second)
{
    size_t best = 0;
    float next = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        if (magnitude_bits(logits[i]) >= 0x7f800000u) return false;
        if (i == 0) continue;
        if (logits[i] > logits[best]) {
            next = logits[best];
            best = i;
        } else if (logits[i] > next) {
            next = logits[i];
        }
    }
    *id = (uint32_t)best;
    if (second) *second = next;
    return true;
}

void kernels_ref(kernel_table *table)
{
    *table = (kernel_table){
        .isa = CPU_REF,
        .tile_rows = 1,
        .tile_bytes = SUPERBLOCK,
        .five_pack_row = ref_five_pack_row,
        .five_multiply = ref_five_multiply,
        .int8_multiply = ref_int8_multiply,
        .quantise = ref_quantise,
        .rmsnorm = ref_rmsnorm,
        .rope = ref_rope,
        .to_half = ref_to_half,
        .attend = ref_attend,
        .swiglu = ref_swiglu,
        .add = ref_add,
        .argmax = ref_argmax,
    };
}
