/* Container -> packed weights. Memory comes in one block a matrix; the store remembers the blocks. */
#include "weights/weights.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "file/trtc.h"
#include "weights/levels.h"

typedef struct block {
    void *p;
    size_t bytes;
} block;

struct weights_store {
    trtc_file file;
    block *blocks;
    size_t n_blocks, room;
    uint64_t bytes;
};

/* What loading carries along. */
typedef struct loader {
    weights *w;
    struct weights_store *store;
    const kernel_table *table;
    pool *threads;
    weights_progress progress;
    void *user;
    uint64_t done;
    outrider_error *err;
} loader;

/* `bytes` of zeroed memory aligned to 64 bytes that live as long as the weights. NULL with the error set. */
static void *store_take(loader *l, size_t bytes, const char *what)
{
    struct weights_store *s = l->store;
    if (s->n_blocks == s->room) {
        const size_t room = s->room ? 2 * s->room : 256;
        block *blocks = realloc(s->blocks, room * sizeof *blocks);
        if (!blocks) {
            error_memory(l->err, what, room * sizeof *blocks);
            return NULL;
        }
        s->blocks = blocks;
        s->room = room;
    }
    bytes = (bytes + 4095) / 4096 * 4096;
    if (!bytes) bytes = 4096;
    void *p = memory_map(bytes);
    if (!p) {
        error_memory(l->err, what, bytes);
        return NULL;
    }
    s->blocks[s->n_blocks++] = (block){p, bytes};
    s->bytes += bytes;
    return p;
}

static void report(loader *l, const tensor *t)
{
    l->done += t->file_bytes;
    if (l->progress) l->progress(l->user, l->done, l->store->file.map.size);
}

static const tensor *get_tensor(loader *l, const char *format, int layer)
{
    char name[40];
    snprintf(name, sizeof name, format, layer);
    const tensor *t = trtc_find(&l->store->file, name);
    if (!t) error_set(l->err, OUTRIDER_BAD_FILE, "%s: tensor %s is missing", l->store->file.map.path, name);
    return t;
}

/* Copies a norm; NULL with the error set on failure. */
static float *load_norm(loader *l, const char *format, int layer)
{
    const tensor *t = get_tensor(l, format, layer);
    if (!t) return NULL;
    float *v = store_take(l, (size_t)t->cols * sizeof *v, t->name);
    if (!v) return NULL;
    for (size_t i = 0; i < (size_t)t->cols; i++) v[i] = trtc_f32(t->f32, i);
    report(l, t);
    return v;
}

enum { MAX_PARTS = 3 };

/* One projection while it is packed. */
typedef struct packing {
    loader *l;
    projection *out;
    const tensor *parts[MAX_PARTS];
    int n_parts;
    row_levels *levels; /* [outs], as if both levels occurred */
    uint32_t *extra_of; /* [outs]: number of the candidate for a split, or UINT32_MAX */
    uint32_t *candidates;
    size_t n_candidates;
    uint8_t *used;         /* [n_candidates]: really split */
    _Atomic int failed;    /* first status other than OK */
    outrider_error *first; /* [threads] */
} packing;

/* The tensor and row in it that stand at row r of the projection. */
static const tensor *part_of(const packing *p, size_t r, size_t *row)
{
    for (int i = 0;; i++) {
        ensure(i < p->n_parts);
        if (r < (size_t)p->parts[i]->rows) {
            *row = r;
            return p->parts[i];
        }
        r -= (size_t)p->parts[i]->rows;
    }
}

static five_row planes_of(const tensor *t, size_t row)
{
    return (five_row){t->bp + row * t->row_stride, t->bn + row * t->row_stride, t->br + row * t->row_stride, (size_t)t->cols};
}

/* Whether a row has weights of its low and of its high level. */
static void levels_present(const five_row *row, bool *lo, bool *hi)
{
    uint8_t any_lo = 0, any_hi = 0;
    const size_t whole = row->cols / 8;
    for (size_t i = 0; i < whole; i++) {
        any_hi |= row->br[i];
        any_lo |= (uint8_t)((row->bp[i] | row->bn[i]) & ~row->br[i]);
    }
    if (row->cols % 8) {
        const uint8_t mask = (uint8_t)((1u << row->cols % 8) - 1);
        any_hi |= row->br[whole] & mask;
        any_lo |= (uint8_t)((row->bp[whole] | row->bn[whole]) & ~row->br[whole] & mask);
    }
    *lo = any_lo != 0;
    *hi = any_hi != 0;
}

static void set_row(five_matrix *m, size_t row, row_levels v)
{
    m->levels[2 * row] = (int16_t)v.k_lo;
    m->levels[2 * row + 1] = (int16_t)v.k_hi;
    m->scale[row] = v.scale;
}

/* Packs row `at` of the matrix: an ordinary row, the low half of a split one, or (at >= outs) a candidate's high half. A candidate
 * that turns out not to need it leaves its extra row empty. */
static void pack_row(packing *p, size_t at)
{
    five_matrix *m = &p->out->matrix;
    const kernel_table *table = p->l->table;
    const bool extra = at >= p->out->outs;
    const size_t source = extra ? p->candidates[at - p->out->outs] : at;
    size_t row;
    const tensor *t = part_of(p, source, &row);
    const five_row planes = planes_of(t, row);
    bool lo, hi;
    levels_present(&planes, &lo, &hi);
    row_levels v = p->levels[source];
    if (!lo || !hi) v = levels_choose(trtc_f32(t->s_lo, row), trtc_f32(t->s_hi, row), lo, hi);
    if (extra && !v.split) return;
    if (v.split) v = levels_choose(trtc_f32(t->s_lo, row), trtc_f32(t->s_hi, row), !extra, extra);
    if (extra) p->used[at - p->out->outs] = 1;
    set_row(m, at, v);
    table->five_pack_row(m->codes + at / table->tile_rows * m->superblocks * table->tile_bytes, at % table->tile_rows, &planes,
                         v.k_lo, v.k_hi);
}

static void pack_tiles(void *arg, size_t begin, size_t end, int worker)
{
    packing *p = arg;
    const five_matrix *m = &p->out->matrix;
    const size_t tile_rows = p->l->table->tile_rows;
    for (size_t r = begin * tile_rows; r < end * tile_rows && r < m->rows; r++) {
        if (atomic_load(&p->failed)) return;
        if (r < p->out->outs) {
            size_t row;
            const tensor *t = part_of(p, r, &row);
            const outrider_status status =
                trtc_check_rows(&p->l->store->file, t, (int32_t)row, (int32_t)row + 1, &p->first[worker]);
            if (status) {
                atomic_store(&p->failed, status);
                return;
            }
        }
        pack_row(p, r);
    }
}

static void choose_levels(void *arg, size_t begin, size_t end, int worker)
{
    packing *p = arg;
    (void)worker;
    for (size_t r = begin; r < end; r++) {
        size_t row;
        const tensor *t = part_of(p, r, &row);
        p->levels[r] = levels_choose(trtc_f32(t->s_lo, row), trtc_f32(t->s_hi, row), true, true);
    }
}

/* Memory of the packed matrix for `rows` rows of `cols` columns. */
static outrider_status take_matrix(loader *l, five_matrix *m, size_t rows, size_t cols, const char *what)
{
    m->rows = rows;
    m->cols = cols;
    m->superblocks = (cols + SUPERBLOCK - 1) / SUPERBLOCK;
    m->tiles = (rows + l->table->tile_rows - 1) / l->table->tile_rows;
    const size_t padded = m->tiles * l->table->tile_rows;
    m->codes = store_take(l, m->tiles * m->superblocks * l->table->tile_bytes, what);
    m->levels = store_take(l, padded * 2 * sizeof *m->levels, what);
    m->scale = store_take(l, padded * sizeof *m->scale, what);
    return m->codes && m->levels && m->scale ? OUTRIDER_OK : OUTRIDER_NO_MEMORY;
}

/* Lists the rows that may have to be split. Which of them really are shows only when their planes are read. */
static outrider_status list_candidates(packing *p)
{
    size_t n = 0;
    for (size_t r = 0; r < p->out->outs; r++) n += p->levels[r].split;
    p->candidates = malloc((n + 1) * sizeof *p->candidates);
    p->used = calloc(n + 1, 1);
    if (!p->candidates || !p->used) return error_memory(p->l->err, "split rows", n * sizeof *p->candidates);
    for (size_t r = 0; r < p->out->outs; r++)
        if (p->levels[r].split) p->candidates[p->n_candidates++] = (uint32_t)r;
    return OUTRIDER_OK;
}

static outrider_status note_splits(packing *p)
{
    if (!p->n_candidates) return OUTRIDER_OK;
    p->out->splits = store_take(p->l, p->n_candidates * sizeof *p->out->splits, "split rows");
    if (!p->out->splits) return OUTRIDER_NO_MEMORY;
    for (size_t i = 0; i < p->n_candidates; i++)
        if (p->used[i]) p->out->splits[p->out->n_splits++] = (split_row){p->candidates[i], (uint32_t)(p->out->outs + i)};
    p->l->w->split_rows += p->out->n_splits;
    return OUTRIDER_OK;
}

static outrider_status load_bias(packing *p)
{
    bool any = false;
    for (int i = 0; i < p->n_parts; i++) any |= p->parts[i]->bias != NULL;
    if (!any) return OUTRIDER_OK;
    float *bias = store_take(p->l, p->out->outs * sizeof *bias, "biases");
    if (!bias) return OUTRIDER_NO_MEMORY;
    size_t at = 0;
    for (int i = 0; i < p->n_parts; i++)
        for (size_t r = 0; r < (size_t)p->parts[i]->rows; r++, at++)
            bias[at] = p->parts[i]->bias ? trtc_f32(p->parts[i]->bias, r) : 0.0f;
    p->out->bias = bias;
    return OUTRIDER_OK;
}

static outrider_status pack_all(packing *p)
{
    loader *l = p->l;
    pool_run(l->threads, p->out->outs, 256, choose_levels, p);
    outrider_status status = list_candidates(p);
    if (!status)
        status = take_matrix(l, &p->out->matrix, p->out->outs + p->n_candidates, (size_t)p->parts[0]->cols, p->parts[0]->name);
    if (status) return status;
    pool_run(l->threads, p->out->matrix.tiles, 8, pack_tiles, p);
    for (int i = 0; i < pool_threads(l->threads); i++)
        if (p->first[i].status) return error_set(l->err, p->first[i].status, "%s", p->first[i].message);
    status = note_splits(p);
    return status ? status : load_bias(p);
}

static outrider_status load_projection(loader *l, projection *out, int layer, const char *const *formats)
{
    packing p = {.l = l, .out = out};
    for (int i = 0; i < MAX_PARTS && formats[i]; i++, p.n_parts++) {
        p.parts[i] = get_tensor(l, formats[i], layer);
        if (!p.parts[i]) return OUTRIDER_BAD_FILE;
        out->outs += (size_t)p.parts[i]->rows;
    }
    p.levels = malloc(out->outs * sizeof *p.levels);
    p.first = calloc((size_t)pool_threads(l->threads), sizeof *p.first);
    outrider_status status =
        !p.levels || !p.first ? error_memory(l->err, "levels", out->outs * sizeof *p.levels) : pack_all(&p);
    free(p.levels);
    free(p.first);
    free(p.candidates);
    free(p.used);
    for (int i = 0; i < p.n_parts && !status; i++) {
        file_map_release(&l->store->file.map, l->store->file.map.data + p.parts[i]->file_offset, p.parts[i]->file_bytes);
        report(l, p.parts[i]);
    }
    return status;
}

/* The tensors of each product of a layer, in the order of layer_weights. */
enum { PRODUCTS = 4 };
static const char *const PRODUCT_TENSORS[PRODUCTS][MAX_PARTS] = {
    {"blk.%d.attn_q", "blk.%d.attn_k", "blk.%d.attn_v"},
    {"blk.%d.attn_output", NULL, NULL},
    {"blk.%d.ffn_gate", "blk.%d.ffn_up", NULL},
    {"blk.%d.ffn_down", NULL, NULL},
};

static outrider_status load_layer(loader *l, int i)
{
    layer_weights *layer = &l->w->layers[i];
    layer->attn_norm = load_norm(l, "blk.%d.attn_norm", i);
    if (layer->attn_norm) layer->ffn_norm = load_norm(l, "blk.%d.ffn_norm", i);
    if (!layer->ffn_norm) return l->err->status;
    if (l->w->config.has_qk_norm) {
        layer->q_norm = load_norm(l, "blk.%d.attn_q_norm", i);
        if (layer->q_norm) layer->k_norm = load_norm(l, "blk.%d.attn_k_norm", i);
        if (!layer->k_norm) return l->err->status;
    }
    projection *const products[PRODUCTS] = {&layer->qkv, &layer->o, &layer->gate_up, &layer->down};
    outrider_status status = OUTRIDER_OK;
    for (int p = 0; p < PRODUCTS && !status; p++) status = load_projection(l, products[p], i, PRODUCT_TENSORS[p]);
    return status;
}

enum { HEAD_SLICE = 8192 };

typedef struct copying {
    const tensor *from;
    int8_t *to;
    size_t stride, first; /* bytes; first row of the slice */
} copying;

static void copy_rows(void *arg, size_t begin, size_t end, int worker)
{
    const copying *c = arg;
    (void)worker;
    for (size_t r = c->first + begin; r < c->first + end; r++)
        memcpy(c->to + r * c->stride, c->from->weights + r * c->from->row_stride, (size_t)c->from->cols);
}

static float *load_scale(loader *l, const tensor *t)
{
    float *scale = store_take(l, (size_t)t->rows * sizeof *scale, t->name);
    for (size_t i = 0; scale && i < (size_t)t->rows; i++) scale[i] = trtc_f32(t->scale, i);
    return scale;
}

/* The head is copied: rows of whole superblocks, aligned. A tied embedding is the head's rows; an untied one stays in the file, of
 * which a run touches only the rows of the tokens that it meets. */
static outrider_status load_tables(loader *l)
{
    weights *w = l->w;
    const tensor *embedding = get_tensor(l, "token_embd", 0);
    const tensor *head = !embedding || w->config.tied ? embedding : get_tensor(l, "output", 0);
    if (!head) return OUTRIDER_BAD_FILE;
    w->head.rows = (size_t)head->rows;
    w->head.cols = (size_t)head->cols;
    w->head.superblocks = (w->head.cols + SUPERBLOCK - 1) / SUPERBLOCK;
    copying c = {head, NULL, w->head.superblocks * SUPERBLOCK, 0};
    c.to = store_take(l, w->head.rows * c.stride, head->name);
    float *scale = c.to ? load_scale(l, head) : NULL;
    if (!scale) return OUTRIDER_NO_MEMORY;
    /* A slice at a time, so that file and copy are never both resident as a whole. */
    for (size_t first = 0; first < w->head.rows; first += HEAD_SLICE) {
        const size_t rows = w->head.rows - first < HEAD_SLICE ? w->head.rows - first : HEAD_SLICE;
        c.first = first;
        pool_run(l->threads, rows, 64, copy_rows, &c);
        file_map_release(&l->store->file.map, head->weights + first * head->row_stride, rows * head->row_stride);
    }
    w->head.k = c.to;
    w->head.scale = scale;
    file_map_release(&l->store->file.map, l->store->file.map.data + head->file_offset, head->file_bytes);
    report(l, head);
    w->embedding = c.to;
    w->embedding_stride = c.stride;
    w->embedding_scale = scale;
    if (w->config.tied) return OUTRIDER_OK;
    w->embedding = embedding->weights;
    w->embedding_stride = embedding->row_stride;
    w->embedding_scale = load_scale(l, embedding);
    report(l, embedding);
    return w->embedding_scale ? OUTRIDER_OK : OUTRIDER_NO_MEMORY;
}

outrider_status weights_open(weights *w, const char *path, const kernel_table *table, pool *threads, weights_progress progress,
                             void *user, outrider_error *err)
{
    outrider_error local;
    *w = (weights){0};
    loader l = {w, calloc(1, sizeof *l.store), table, threads, progress, user, 0, err ? err : &local};
    if (!l.store) return error_memory(err, "weights", sizeof *l.store);
    w->store = l.store;
    outrider_status status = trtc_open(&l.store->file, path, l.err);
    if (status) {
        free(l.store);
        *w = (weights){0};
        return status;
    }
    w->config = config_from_trtc(&l.store->file.header);
    w->file_bytes = l.store->file.map.size;
    w->layers = calloc((size_t)w->config.n_layers, sizeof *w->layers);
    if (!w->layers) status = error_memory(err, "layers", (size_t)w->config.n_layers * sizeof *w->layers);
    for (int i = 0; i < w->config.n_layers && !status; i++) status = load_layer(&l, i);
    if (!status) {
        w->final_norm = load_norm(&l, "output_norm", 0);
        status = w->final_norm ? load_tables(&l) : l.err->status;
    }
    w->resident_bytes = l.store->bytes;
    w->step_bytes = l.store->bytes - (w->config.tied ? 0 : (uint64_t)w->config.vocab * sizeof(float));
    if (status) weights_close(w);
    return status;
}

static uint64_t whole_pages(uint64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

/* Counting the rows that may be split, on all threads. */
typedef struct counting {
    const tensor *t;
    _Atomic size_t found;
} counting;

static void count_splits(void *arg, size_t begin, size_t end, int worker)
{
    counting *c = arg;
    size_t found = 0;
    (void)worker;
    for (size_t r = begin; r < end; r++)
        found += levels_choose(trtc_f32(c->t->s_lo, r), trtc_f32(c->t->s_hi, r), true, true).split;
    atomic_fetch_add(&c->found, found);
}

/* What load_projection will take for one product. */
static void plan_product(weights_need *need, const trtc_file *file, const kernel_table *table, pool *threads, int layer,
                         const char *const *formats)
{
    size_t outs = 0, candidates = 0, cols = 0;
    uint64_t read = 0;
    bool bias = false;
    for (int i = 0; i < MAX_PARTS && formats[i]; i++) {
        char name[40];
        snprintf(name, sizeof name, formats[i], layer);
        counting c = {trtc_find(file, name), 0};
        if (!c.t) return; /* weights_open says so */
        pool_run(threads, (size_t)c.t->rows, 1024, count_splits, &c);
        outs += (size_t)c.t->rows;
        cols = (size_t)c.t->cols;
        candidates += atomic_load(&c.found);
        read += whole_pages(c.t->file_bytes) + 8192;
        bias |= c.t->bias != NULL;
    }
    const size_t rows = outs + candidates, tiles = (rows + table->tile_rows - 1) / table->tile_rows;
    const size_t padded = tiles * table->tile_rows, superblocks = (cols + SUPERBLOCK - 1) / SUPERBLOCK;
    need->resident_bytes += whole_pages(tiles * superblocks * table->tile_bytes) + whole_pages(padded * 2 * sizeof(int16_t)) +
                            whole_pages(padded * sizeof(float)) +
                            (candidates ? whole_pages(candidates * sizeof(split_row)) : 0) +
                            (bias ? whole_pages(outs * sizeof(float)) : 0);
    read += outs * sizeof(row_levels);
    if (read > need->loading_bytes) need->loading_bytes = read;
    if (rows > need->widest) need->widest = rows;
}

weights_need weights_plan(const trtc_file *file, const kernel_table *table, pool *threads)
{
    const model_config c = config_from_trtc(&file->header);
    const size_t hidden = (size_t)c.hidden, vocab = (size_t)c.vocab;
    weights_need need = {0};
    for (int i = 0; i < c.n_layers; i++) {
        for (int p = 0; p < PRODUCTS; p++) plan_product(&need, file, table, threads, i, PRODUCT_TENSORS[p]);
        need.resident_bytes += 2 * whole_pages(hidden * sizeof(float));
        if (c.has_qk_norm) need.resident_bytes += 2 * whole_pages((size_t)c.head_dim * sizeof(float));
    }
    const size_t stride = (hidden + SUPERBLOCK - 1) / SUPERBLOCK * SUPERBLOCK;
    need.resident_bytes += whole_pages(hidden * sizeof(float)) + whole_pages(vocab * stride) +
                           (c.tied ? 1 : 2) * whole_pages(vocab * sizeof(float));
    const uint64_t head = whole_pages((vocab < HEAD_SLICE ? vocab : HEAD_SLICE) * hidden + 8 * vocab) + 8192;
    if (head > need.loading_bytes) need.loading_bytes = head;
    return need;
}

void weights_close(weights *w)
{
    if (w->store) {
        for (size_t i = 0; i < w->store->n_blocks; i++) memory_unmap(w->store->blocks[i].p, w->store->blocks[i].bytes);
        free(w->store->blocks);
        trtc_close(&w->store->file);
        free(w->store);
    }
    free(w->layers);
    *w = (weights){0};
}
