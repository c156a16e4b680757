/* A layer is eight loops over independent parts; pool_run stands between them, so every loop sees all that the one before it wrote:
 *
 *   enter      rows             x += y of the layer before; norm; quantise
 *   qkv        tiles            matrix product
 *   heads      rows x heads     norm, RoPE; keys and values to the cache
 *   attend     rows x KV heads  rule 9
 *   squeeze    rows x blocks    quantise the attention's output
 *   o          tiles            matrix product
 *   middle     rows             x += y; norm; quantise
 *   gate, up   tiles            matrix product
 *   activate   rows x blocks    SwiGLU; quantise
 *   down       tiles            matrix product
 *
 * After the last layer: x += y, norm and quantise for the rows that want logits, then the head. */
#include "forward/forward.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "forward/rope.h"

struct forward {
    const weights *w;
    const kernel_table *k;
    pool *threads;
    size_t max_rows, max_logits, max_chunks, y_stride;

    /* Scratch, all in one block. */
    void *memory;
    size_t memory_bytes;
    float *x;                    /* [max_rows][hidden], the residual stream */
    float *y;                    /* [max_rows][y_stride], output of the last matrix product */
    float *attended;             /* [max_rows][n_heads * head_dim] */
    float *cosine, *sine;        /* [max_rows][rotary_dims / 2] */
    float *frequency;            /* [rotary_dims / 2] */
    float *normed;               /* [threads][hidden] */
    attention_partial *partials; /* [threads][4 * max_chunks] */
    const uint16_t **chunks;     /* [threads][2 * max_chunks] */
    uint8_t *activation_memory[3];
    size_t *logits_row; /* [max_logits]: row of the batch */

    /* The pass at hand. */
    const forward_row *rows;
    size_t n_rows, n_logits, layer, head_begin;
    float *logits; /* [n_logits][vocab], the caller's */
    activations hidden, heads, inter, head;
    const projection *product;
    const activations *product_input;
    _Atomic int bad_layer; /* lowest layer with a value that is not finite, or INT_MAX */
};

enum { NO_BAD_LAYER = 0x7fffffff };

size_t forward_widest(const weights *w)
{
    size_t wide = 0;
    for (int i = 0; i < w->config.n_layers; i++) {
        const projection *all[] = {&w->layers[i].qkv, &w->layers[i].o, &w->layers[i].gate_up, &w->layers[i].down};
        for (size_t j = 0; j < 4; j++) wide = all[j]->matrix.rows > wide ? all[j]->matrix.rows : wide;
    }
    return wide;
}

/* Lays the scratch out from `at` on and returns the end: called once with a null base to learn the size. */
static uint8_t *place(forward *f, const model_config *c, size_t threads, uint8_t *at)
{
    const size_t rows = f->max_rows, hidden = (size_t)c->hidden;
    const size_t q_width = (size_t)c->n_heads * (size_t)c->head_dim, half = (size_t)c->rotary_dims / 2;
#define TAKE(field, count)                                                                    \
    do {                                                                                      \
        (field) = (void *)at;                                                                 \
        at = (uint8_t *)(((uintptr_t)at + (size_t)(count) * sizeof *(field) + 63) / 64 * 64); \
    } while (0)
    TAKE(f->x, rows * hidden);
    TAKE(f->y, rows * f->y_stride);
    TAKE(f->attended, rows * q_width);
    TAKE(f->cosine, rows * half);
    TAKE(f->sine, rows * half);
    TAKE(f->frequency, half);
    TAKE(f->normed, threads * hidden);
    TAKE(f->partials, threads * 4 * f->max_chunks);
    TAKE(f->chunks, threads * 2 * f->max_chunks);
    TAKE(f->activation_memory[0], activations_bytes(rows, hidden));
    TAKE(f->activation_memory[1], activations_bytes(rows, q_width));
    TAKE(f->activation_memory[2], activations_bytes(rows, (size_t)c->intermediate));
    TAKE(f->logits_row, f->max_logits);
#undef TAKE
    return at;
}

static size_t chunks_for(size_t positions) { return (positions + ATTEND_CHUNK - 1) / ATTEND_CHUNK; }

/* The sizes that place() needs. Rows of y are padded to whole cache lines. */
static void set_sizes(forward *f, size_t widest, size_t max_rows, size_t max_logits, size_t max_positions)
{
    f->max_rows = max_rows;
    f->max_logits = max_logits;
    f->max_chunks = chunks_for(max_positions);
    f->y_stride = (widest + 15) / 16 * 16;
}

uint64_t forward_scratch_bytes(const model_config *config, size_t widest, int threads, size_t max_rows, size_t max_logits,
                               size_t max_positions)
{
    forward f = {0};
    set_sizes(&f, widest, max_rows, max_logits, max_positions);
    return (uint64_t)(uintptr_t)place(&f, config, (size_t)threads, NULL);
}

outrider_status forward_open(forward **out, const weights *w, const kernel_table *table, pool *threads, size_t max_rows,
                             size_t max_logits, size_t max_positions, outrider_error *err)
{
    ensure(max_logits <= max_rows && w->config.head_dim <= ATTEND_MAX_DIM);
    forward *f = calloc(1, sizeof *f);
    if (!f) return error_memory(err, "a forward pass", sizeof *f);
    f->w = w;
    f->k = table;
    f->threads = threads;
    set_sizes(f, forward_widest(w), max_rows, max_logits, max_positions);
    const size_t n_threads = (size_t)pool_threads(threads);
    f->memory_bytes = (size_t)(uintptr_t)place(f, &w->config, n_threads, NULL);
    f->memory = memory_map(f->memory_bytes);
    if (!f->memory) {
        const size_t bytes = f->memory_bytes;
        free(f);
        return error_memory(err, "scratch of a forward pass", bytes);
    }
    place(f, &w->config, n_threads, f->memory);
    rope_frequencies(f->frequency, w->config.theta, (size_t)w->config.rotary_dims);
    *out = f;
    return OUTRIDER_OK;
}

void forward_close(forward *f)
{
    if (!f) return;
    memory_unmap(f->memory, f->memory_bytes);
    free(f);
}

static void mark_bad(forward *f, size_t layer)
{
    int seen = atomic_load(&f->bad_layer);
    while ((int)layer < seen && !atomic_compare_exchange_weak(&f->bad_layer, &seen, (int)layer)) {
    }
}

/* All values finite: an exponent of all ones is infinity or NaN. */
static bool all_finite(const float *x, size_t n)
{
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, 4);
        bits &= 0x7fffffffu;
        top = bits > top ? bits : top;
    }
    return top < 0x7f800000u;
}

/* How many parts of `bytes` bytes of weights each make one piece of work that is worth a hand-over between threads: about ten
 * microseconds of it. Each row adds arithmetic to the same bytes. */
static size_t grain_of(size_t bytes, size_t rows)
{
    const size_t grain = ((size_t)256 << 10) / (bytes * (1 + rows));
    return grain ? grain : 1;
}

static void multiply_part(void *arg, size_t begin, size_t end, int worker)
{
    const forward *f = arg;
    (void)worker;
    f->k->five_multiply(&f->product->matrix, begin, end, f->product_input, f->y, f->y_stride);
}

/* y = product * input for all rows, with what belongs to split rows and biases (rules 4 and 5). */
static void multiply(forward *f, const projection *product, const activations *input)
{
    f->product = product;
    f->product_input = input;
    pool_run(f->threads, product->matrix.tiles, grain_of(product->matrix.superblocks * f->k->tile_bytes, f->n_rows),
             multiply_part, f);
    for (size_t t = 0; t < f->n_rows; t++) {
        float *y = f->y + t * f->y_stride;
        for (size_t i = 0; i < product->n_splits; i++) y[product->splits[i].row] += y[product->splits[i].extra];
        if (product->bias) f->k->add(y, product->bias, product->outs);
    }
}

static void embed(forward *f)
{
    const weights *w = f->w;
    const size_t hidden = (size_t)w->config.hidden, half = (size_t)w->config.rotary_dims / 2;
    for (size_t t = 0; t < f->n_rows; t++) {
        const size_t token = f->rows[t].token;
        const int8_t *k = w->embedding + token * w->embedding_stride;
        float *x = f->x + t * hidden;
        for (size_t i = 0; i < hidden; i++) x[i] = (float)k[i] * w->embedding_scale[token];
        rope_angles(f->cosine + t * half, f->sine + t * half, f->frequency, half, f->rows[t].position);
    }
}

/* Adds the last product's output to the residual stream unless it is the first layer's entry, then norm and quantise. */
static void enter_row(forward *f, size_t t, const float *norm, bool add, int worker)
{
    const size_t hidden = (size_t)f->w->config.hidden;
    float *x = f->x + t * hidden, *normed = f->normed + (size_t)worker * hidden;
    if (add) f->k->add(x, f->y + t * f->y_stride, hidden);
    f->k->rmsnorm(normed, x, norm, hidden, f->w->config.eps);
    if (!f->k->quantise(&f->hidden, t, normed, hidden, 0, f->hidden.superblocks)) mark_bad(f, f->layer);
}

static void enter_part(void *arg, size_t begin, size_t end, int worker)
{
    forward *f = arg;
    for (size_t t = begin; t < end; t++) enter_row(f, t, f->w->layers[f->layer].attn_norm, f->layer > 0, worker);
}

static void middle_part(void *arg, size_t begin, size_t end, int worker)
{
    forward *f = arg;
    for (size_t t = begin; t < end; t++) enter_row(f, t, f->w->layers[f->layer].ffn_norm, true, worker);
}

/* Head `h` of row t as it comes out of the qkv product: query heads first, then key heads, then value heads. */
static void head_part(forward *f, size_t t, size_t h)
{
    const model_config *c = &f->w->config;
    const layer_weights *layer = &f->w->layers[f->layer];
    const size_t dim = (size_t)c->head_dim, nq = (size_t)c->n_heads, nkv = (size_t)c->n_kv_heads,
                 half = (size_t)c->rotary_dims / 2;
    const forward_row *row = &f->rows[t];
    float *head = f->y + t * f->y_stride + h * dim;
    const bool is_query = h < nq, is_value = h >= nq + nkv;
    if (!is_value) {
        if (c->has_qk_norm) f->k->rmsnorm(head, head, is_query ? layer->q_norm : layer->k_norm, dim, c->eps);
        f->k->rope(head, (size_t)c->rotary_dims, f->cosine + t * half, f->sine + t * half);
    }
    if (is_query) return;
    if (!all_finite(head, dim)) mark_bad(f, f->layer);
    uint16_t *to = kv_at(row->kv, row->position / ATTEND_CHUNK, f->layer, is_value, (h - nq) % nkv);
    f->k->to_half(to + row->position % ATTEND_CHUNK * dim, head, dim);
}

static void heads_part(void *arg, size_t begin, size_t end, int worker)
{
    forward *f = arg;
    const size_t all = (size_t)f->w->config.n_heads + 2 * (size_t)f->w->config.n_kv_heads;
    (void)worker;
    for (size_t i = begin; i < end; i++) head_part(f, i / all, i % all);
}

static void attend_part(void *arg, size_t begin, size_t end, int worker)
{
    forward *f = arg;
    const model_config *c = &f->w->config;
    const size_t dim = (size_t)c->head_dim, nkv = (size_t)c->n_kv_heads, group = (size_t)c->n_heads / nkv;
    const uint16_t **keys = f->chunks + (size_t)worker * 2 * f->max_chunks, **values = keys + f->max_chunks;
    for (size_t i = begin; i < end; i++) {
        const size_t t = i / nkv, head = i % nkv;
        const forward_row *row = &f->rows[t];
        const size_t positions = row->position + 1;
        for (size_t p = 0; p < chunks_for(positions); p++) {
            keys[p] = kv_at(row->kv, p, f->layer, 0, head);
            values[p] = kv_at(row->kv, p, f->layer, 1, head);
        }
        const attention a = {.q = f->y + t * f->y_stride + head * group * dim,
                             .heads = group,
                             .head_dim = dim,
                             .q_scale = 1.0f / sqrtf((float)c->head_dim),
                             .positions = positions,
                             .k = keys,
                             .v = values,
                             .out = f->attended + (t * nkv + head) * group * dim,
                             .scratch = f->partials + (size_t)worker * 4 * f->max_chunks};
        f->k->attend(&a);
    }
}

static void squeeze_part(void *arg, size_t begin, size_t end, int worker)
{
    forward *f = arg;
    const size_t width = (size_t)f->w->config.n_heads * (size_t)f->w->config.head_dim, blocks = f->heads.superblocks;
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        const size_t t = i / blocks, b = i % blocks;
        if (!f->k->quantise(&f->heads, t, f->attended + t * width, width, b, b + 1)) mark_bad(f, f->layer);
    }
}

/* One superblock of one row: SwiGLU over the gate's and the up's columns (in place over the gate's), then quantise. */
static void activate_part(void *arg, size_t begin, size_t end, int worker)
{
    forward *f = arg;
    const size_t width = (size_t)f->w->config.intermediate, blocks = f->inter.superblocks;
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        const size_t t = i / blocks, b = i % blocks, first = b * SUPERBLOCK;
        const size_t n = width - first < SUPERBLOCK ? width - first : SUPERBLOCK;
        float *gate = f->y + t * f->y_stride, *up = gate + width;
        f->k->swiglu(gate + first, gate + first, up + first, n);
        if (!f->k->quantise(&f->inter, t, gate, width, b, b + 1)) mark_bad(f, f->layer);
    }
}

static void run_layer(forward *f)
{
    const layer_weights *layer = &f->w->layers[f->layer];
    const model_config *c = &f->w->config;
    const size_t rows = f->n_rows, nkv = (size_t)c->n_kv_heads, all_heads = (size_t)c->n_heads + 2 * nkv;
    size_t seen = 0;
    for (size_t t = 0; t < rows; t++) seen += f->rows[t].position + 1;
    /* Grains: a norm of a row, eight heads, sixteen superblocks and 64 positions of one KV head's attention are each a few microseconds. */
    const size_t row_grain = 1 + 2048 / (size_t)c->hidden;
    const size_t attend_grain = 1 + 512 * rows / seen;
    pool_run(f->threads, rows, row_grain, enter_part, f);
    multiply(f, &layer->qkv, &f->hidden);
    pool_run(f->threads, rows * all_heads, 24, heads_part, f);
    pool_run(f->threads, rows * nkv, attend_grain, attend_part, f);
    pool_run(f->threads, rows * f->heads.superblocks, 16, squeeze_part, f);
    multiply(f, &layer->o, &f->heads);
    pool_run(f->threads, rows, row_grain, middle_part, f);
    multiply(f, &layer->gate_up, &f->hidden);
    pool_run(f->threads, rows * f->inter.superblocks, 12, activate_part, f);
    multiply(f, &layer->down, &f->inter);
}

static void leave_part(void *arg, size_t begin, size_t end, int worker)
{
    forward *f = arg;
    const size_t hidden = (size_t)f->w->config.hidden;
    float *normed = f->normed + (size_t)worker * hidden;
    for (size_t i = begin; i < end; i++) {
        const size_t t = f->logits_row[i];
        float *x = f->x + t * hidden;
        f->k->add(x, f->y + t * f->y_stride, hidden);
        f->k->rmsnorm(normed, x, f->w->final_norm, hidden, f->w->config.eps);
        if (!f->k->quantise(&f->head, i, normed, hidden, 0, f->head.superblocks)) mark_bad(f, f->layer);
    }
}

static void head_rows_part(void *arg, size_t begin, size_t end, int worker)
{
    const forward *f = arg;
    (void)worker;
    f->k->int8_multiply(&f->w->head, f->head_begin + begin, f->head_begin + end, &f->head, f->logits,
                        (size_t)f->w->config.vocab);
}

/* Rows [begin, end) of the head for all rows that want logits. */
static void multiply_head(forward *f, size_t begin, size_t end)
{
    if (begin >= end) return;
    f->head_begin = begin;
    pool_run(f->threads, end - begin, grain_of(f->w->head.superblocks * SUPERBLOCK, f->n_logits), head_rows_part, f);
}

/* Rows of the head into y, whose own rows are as wide as the slice at least: the values are not wanted. */
static void head_sample_part(void *arg, size_t begin, size_t end, int worker)
{
    forward *f = arg;
    (void)worker;
    int8_matrix part = f->w->head;
    for (size_t row = begin; row < end; row++) {
        part.k = f->w->head.k + row * part.superblocks * SUPERBLOCK;
        f->k->int8_multiply(&part, 0, 1, &f->head, f->y + row, f->y_stride);
    }
}

/* The batch as the layers need it: counts, the places of activations, which rows want logits. */
static void begin(forward *f, const forward_row *rows, size_t n)
{
    const model_config *c = &f->w->config;
    ensure(n >= 1 && n <= f->max_rows);
    f->rows = rows;
    f->n_rows = n;
    f->n_logits = 0;
    for (size_t t = 0; t < n; t++) {
        ensure(rows[t].token < (uint32_t)c->vocab && rows[t].position < rows[t].kv->capacity);
        const bool follows = t > 0 && rows[t - 1].kv == rows[t].kv;
        ensure(rows[t].position == (follows ? rows[t - 1].position + 1 : rows[t].kv->positions));
        if (!rows[t].logits) continue;
        ensure(f->n_logits < f->max_logits);
        f->logits_row[f->n_logits++] = t;
    }
    atomic_store(&f->bad_layer, NO_BAD_LAYER);
    activations_place(&f->hidden, n, (size_t)c->hidden, f->activation_memory[0]);
    activations_place(&f->heads, n, (size_t)c->n_heads * (size_t)c->head_dim, f->activation_memory[1]);
    activations_place(&f->inter, n, (size_t)c->intermediate, f->activation_memory[2]);
}

outrider_status forward_run(forward *f, const forward_row *rows, size_t n, const forward_head *head, float *logits,
                            outrider_error *err)
{
    begin(f, rows, n);
    f->logits = logits;
    embed(f);
    for (f->layer = 0; f->layer < (size_t)f->w->config.n_layers; f->layer++) run_layer(f);
    if (f->n_logits) {
        activations_place(&f->head, f->n_logits, (size_t)f->w->config.hidden, f->activation_memory[0]);
        pool_run(f->threads, f->n_logits, 1 + 2048 / (size_t)f->w->config.hidden, leave_part, f);
        const size_t all = f->w->head.rows;
        multiply_head(f, 0, head && head->low_end < all ? head->low_end : all);
        if (head && head->low_end < all) multiply_head(f, head->high_begin, all);
    }
    const int bad = atomic_load(&f->bad_layer);
    if (bad != NO_BAD_LAYER) {
        if (bad == f->w->config.n_layers)
            return error_set(err, OUTRIDER_FAILURE, "a value before the head is not finite (NaN or infinite)");
        return error_set(err, OUTRIDER_FAILURE, "a value in layer %d is not finite (NaN or infinite)", bad);
    }
    for (size_t t = 0; t < n; t++) rows[t].kv->positions = rows[t].position + 1;
    return OUTRIDER_OK;
}

/* One run of forward_sample_seconds. The activations are zeros: no product's time depends on them. */
static double sample_once(forward *f, size_t logits, size_t head_rows)
{
    const layer_weights *layer = &f->w->layers[f->w->config.n_layers / 2];
    const size_t most = f->y_stride < 8192 ? f->y_stride : 8192;
    const size_t slice = head_rows < most ? head_rows : most;
    const double start = clock_seconds();
    multiply(f, &layer->qkv, &f->hidden);
    multiply(f, &layer->o, &f->heads);
    multiply(f, &layer->gate_up, &f->hidden);
    multiply(f, &layer->down, &f->inter);
    const double products = clock_seconds() - start;
    activations_place(&f->head, logits, (size_t)f->w->config.hidden, f->activation_memory[0]);
    pool_run(f->threads, slice, grain_of(f->w->head.superblocks * SUPERBLOCK, logits), head_sample_part, f);
    const double head = clock_seconds() - start - products;
    return products * f->w->config.n_layers + head * (double)head_rows / (double)slice;
}

double forward_sample_seconds(forward *f, size_t rows, size_t logits, const forward_head *head)
{
    const model_config *c = &f->w->config;
    const size_t columns[] = {(size_t)c->hidden, (size_t)c->n_heads * (size_t)c->head_dim, (size_t)c->intermediate};
    activations *const inputs[] = {&f->hidden, &f->heads, &f->inter};
    ensure(rows >= 1 && rows <= f->max_rows && logits >= 1 && logits <= rows);
    f->n_rows = rows;
    f->n_logits = logits;
    for (size_t i = 0; i < 3; i++) {
        memset(f->activation_memory[i], 0, activations_bytes(rows, columns[i]));
        activations_place(inputs[i], rows, columns[i], f->activation_memory[i]);
    }
    const size_t all = f->w->head.rows;
    const size_t head_rows = head && head->low_end < all ? head->low_end + all - head->high_begin : all;
    double best = sample_once(f, logits, head_rows);
    const double again = sample_once(f, logits, head_rows);
    if (again < best) best = again;
    return best;
}
