/* A table with one wrong bit now and then: proof that the checks can fail. */
#include "kernel_checks.h"

#include <string.h>

enum { EVERY = 5 }; /* calls a wrong bit */

static kernel_table inner;
static unsigned calls;

static bool now(void) { return ++calls % EVERY == 0; }

static void flip(void *value, int bit)
{
    uint8_t *byte = (uint8_t *)value + bit / 8;
    *byte ^= (uint8_t)(1 << bit % 8);
}

/* Zero to plus one and back, in plain bytes as in nibbles. */
static void planted_pack(uint8_t *tile, size_t row_in_tile, const five_row *row, int k_lo, int k_hi)
{
    inner.five_pack_row(tile, row_in_tile, row, k_lo, k_hi);
    if (now()) flip(tile, 0);
}

static void planted_five(const five_matrix *m, size_t begin, size_t end, const activations *x, float *y, size_t y_stride)
{
    inner.five_multiply(m, begin, end, x, y, y_stride);
    if (begin < end && now()) flip(&y[(x->rows - 1) * y_stride + begin * inner.tile_rows], 0);
}

static void planted_int8(const int8_matrix *m, size_t begin, size_t end, const activations *x, float *y, size_t y_stride)
{
    inner.int8_multiply(m, begin, end, x, y, y_stride);
    if (begin < end && now()) flip(&y[(x->rows - 1) * y_stride + end - 1], 0);
}

static bool planted_quantise(const activations *a, size_t t, const float *x, size_t cols, size_t begin, size_t end)
{
    if (!inner.quantise(a, t, x, cols, begin, end)) return false;
    if (begin < end && now()) flip(a->q + ((end - 1) * a->rows + t) * SUPERBLOCK, 0);
    return true;
}

static void planted_rmsnorm(float *y, const float *x, const float *weight, size_t n, float eps)
{
    inner.rmsnorm(y, x, weight, n, eps);
    if (now()) flip(&y[n - 1], 0);
}

static void planted_rope(float *head, size_t rot, const float *c, const float *s)
{
    inner.rope(head, rot, c, s);
    if (now()) flip(&head[rot - 1], 0);
}

static void planted_to_half(uint16_t *out, const float *x, size_t n)
{
    inner.to_half(out, x, n);
    if (now()) flip(&out[n - 1], 0);
}

static void planted_attend(const attention *a)
{
    inner.attend(a);
    if (now()) flip(&a->out[a->heads * a->head_dim - 1], 0);
}

static void planted_swiglu(float *out, const float *gate, const float *up, size_t n)
{
    inner.swiglu(out, gate, up, n);
    if (now()) flip(&out[n - 1], 0);
}

static void planted_add(float *x, const float *y, size_t n)
{
    inner.add(x, y, n);
    if (now()) flip(&x[n - 1], 0);
}

static bool planted_argmax(const float *logits, size_t n, uint32_t *id, float *second)
{
    if (!inner.argmax(logits, n, id, second)) return false;
    if (now()) flip(id, 0);
    return true;
}

void kernel_plant(kernel_table *planted, const kernel_table *table, const char *name)
{
    inner = *planted = *table;
    calls = 0;
    if (!strcmp(name, "five_pack_row")) planted->five_pack_row = planted_pack;
    if (!strcmp(name, "five_multiply")) planted->five_multiply = planted_five;
    if (!strcmp(name, "int8_multiply")) planted->int8_multiply = planted_int8;
    if (!strcmp(name, "quantise")) planted->quantise = planted_quantise;
    if (!strcmp(name, "rmsnorm")) planted->rmsnorm = planted_rmsnorm;
    if (!strcmp(name, "rope")) planted->rope = planted_rope;
    if (!strcmp(name, "to_half")) planted->to_half = planted_to_half;
    if (!strcmp(name, "attend")) planted->attend = planted_attend;
    if (!strcmp(name, "swiglu")) planted->swiglu = planted_swiglu;
    if (!strcmp(name, "add")) planted->add = planted_add;
    if (!strcmp(name, "argmax")) planted->argmax = planted_argmax;
}
