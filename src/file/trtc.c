#include "file/trtc.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"

/* Upper ends of the header's ranges, far above any model there is. They keep the arithmetic on sizes from wrapping: a
 * record's minimum is below 2^42 bytes and the least size of a whole file below 2^58. */
enum {
    MAGIC = 0x43545254, /* "TRTC" */
    VERSION = 4,
    MAX_LAYERS = 4096,
    MAX_HEADS = 1 << 16,
    MAX_HEAD_DIM = 1 << 16,
    MAX_WIDTH = 1 << 20, /* hidden, intermediate, heads * head_dim */
    MAX_VOCAB = 1 << 24,
    LAYER_NORMS = 4, /* input, post-attention, and for arch 3 those of q and k */
    LAYER_MATRICES = 7,
};

/* One opening: where it stands in the file, and where complaints go. */
typedef struct reader {
    trtc_file *file;
    cursor at;
    size_t capacity; /* of file->tensors */
    outrider_error *err;
} reader;

#define REFUSE(r, ...) refuse((r)->file, (r)->err, __VA_ARGS__)

__attribute__((format(printf, 3, 4))) static outrider_status refuse(const trtc_file *file, outrider_error *err,
                                                                    const char *format, ...)
{
    char line[400];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    /* A path of any length leaves room for what is wrong. */
    const char *path = file->map.path;
    size_t length = strlen(path), shown = 200;
    const char *tail = length > shown ? path + (length - shown) : path;
    return error_set(err, OUTRIDER_BAD_FILE, "%s%s: %s", tail == path ? "" : "...", tail, line);
}

float trtc_f32(const uint8_t *values, size_t i)
{
    const uint8_t *p = values + 4 * i;
    uint32_t u = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

/* -- The header -------------------------------------------------------------------------------------------------------- */

static outrider_status check_range(reader *r, const char *field, int32_t value, int32_t low, int32_t high)
{
    if (value >= low && value <= high) return OUTRIDER_OK;
    return REFUSE(r, "header field %s: expected %" PRId32 "..%" PRId32 ", found %" PRId32, field, low, high, value);
}

static outrider_status check_positive(reader *r, const char *field, float value)
{
    if (isfinite(value) && value > 0) return OUTRIDER_OK;
    return REFUSE(r, "header field %s: expected a finite number above 0, found %g", field, (double)value);
}

static outrider_status check_arch(reader *r, int32_t arch)
{
    if (arch == TRTC_ARCH_QWEN2 || arch == TRTC_ARCH_QWEN3) return OUTRIDER_OK;
    if (arch == TRTC_ARCH_BITNET)
        return REFUSE(r, "header field arch: 2 is BitNet, which this program does not run; expected 1 (Qwen2) or 3 (Qwen3)");
    return REFUSE(r, "header field arch: expected 1 (Qwen2) or 3 (Qwen3), found %" PRId32, arch);
}

/* The ranges of all fields after magic, version and arch, and what they must be to each other. */
static outrider_status check_header(reader *r, const trtc_header *h)
{
    const struct {
        const char *name;
        int32_t value, high;
    } counts[] = {
        {"n_layers", h->n_layers, MAX_LAYERS},
        {"hidden", h->hidden, MAX_WIDTH},
        {"n_heads", h->n_heads, MAX_HEADS},
        {"n_kv_heads", h->n_kv_heads, h->n_heads},
        {"head_dim", h->head_dim, MAX_HEAD_DIM},
        {"rotary_dims", h->rotary_dims, h->head_dim},
        {"intermediate", h->intermediate, MAX_WIDTH},
        {"vocab", h->vocab, MAX_VOCAB},
        {"max_positions", h->max_positions, INT32_MAX},
        {"eok", h->eok, 2}, /* 1 tied, 2 untied */
    };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        outrider_status s = check_range(r, counts[i].name, counts[i].value, 1, counts[i].high);
        if (s) return s;
    }
    if (h->n_heads % h->n_kv_heads)
        return REFUSE(r, "header field n_kv_heads: expected a divisor of n_heads %" PRId32 ", found %" PRId32, h->n_heads,
                      h->n_kv_heads);
    if ((int64_t)h->n_heads * h->head_dim > MAX_WIDTH)
        return REFUSE(r, "header field head_dim: expected n_heads * head_dim <= %d, found %" PRId32 " * %" PRId32, MAX_WIDTH,
                      h->n_heads, h->head_dim);
    if (h->rotary_dims % 2)
        return REFUSE(r, "header field rotary_dims: expected an even number, found %" PRId32, h->rotary_dims);
    outrider_status s = check_positive(r, "eps", h->eps);
    return s ? s : check_positive(r, "theta", h->theta);
}

/* Reads field by field, so that a file cut inside the header is refused with the first field that is missing, and magic,
 * version and arch are judged before anything whose meaning depends on them. */
static outrider_status read_header(reader *r)
{
    trtc_header *h = &r->file->header;
    uint32_t magic;
    if (!cursor_u32(&r->at, &magic)) return REFUSE(r, "header field magic: the file ends inside it");
    if (magic != MAGIC) return REFUSE(r, "header field magic: expected %#x (\"TRTC\"), found %#" PRIx32, MAGIC, magic);
    const struct {
        const char *name;
        int32_t *i;
        float *f;
    } fields[] = {
        {"version", &h->version, NULL},
        {"arch", &h->arch, NULL},
        {"n_layers", &h->n_layers, NULL},
        {"hidden", &h->hidden, NULL},
        {"n_heads", &h->n_heads, NULL},
        {"n_kv_heads", &h->n_kv_heads, NULL},
        {"head_dim", &h->head_dim, NULL},
        {"rotary_dims", &h->rotary_dims, NULL},
        {"intermediate", &h->intermediate, NULL},
        {"vocab", &h->vocab, NULL},
        {"max_positions", &h->max_positions, NULL},
        {"eps", NULL, &h->eps},
        {"theta", NULL, &h->theta},
        {"eok", &h->eok, NULL},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        bool got = fields[i].i ? cursor_i32(&r->at, fields[i].i) : cursor_f32(&r->at, fields[i].f);
        if (!got) return REFUSE(r, "header field %s: the file ends inside it", fields[i].name);
        if (fields[i].i == &h->version && h->version != VERSION)
            return REFUSE(r, "header field version: expected %d, found %" PRId32, VERSION, h->version);
        if (fields[i].i == &h->arch) {
            outrider_status s = check_arch(r, h->arch);
            if (s) return s;
        }
    }
    return check_header(r, h);
}

/* -- What the header implies ------------------------------------------------------------------------------------------- */

typedef struct shape {
    const char *name; /* after "blk.N." */
    int32_t rows, cols;
    bool may_have_bias;
} shape;

static void layer_matrices(const trtc_header *h, shape out[LAYER_MATRICES])
{
    int32_t q = h->n_heads * h->head_dim, kv = h->n_kv_heads * h->head_dim;
    bool bias = h->arch == TRTC_ARCH_QWEN2;
    const shape all[LAYER_MATRICES] = {
        {"attn_q", q, h->hidden, bias},
        {"attn_k", kv, h->hidden, bias},
        {"attn_v", kv, h->hidden, bias},
        {"attn_output", h->hidden, q, false},
        {"ffn_gate", h->intermediate, h->hidden, false},
        {"ffn_up", h->intermediate, h->hidden, false},
        {"ffn_down", h->hidden, h->intermediate, false},
    };
    memcpy(out, all, sizeof all);
}

static int layer_norms(const trtc_header *h, shape out[LAYER_NORMS])
{
    const shape all[LAYER_NORMS] = {
        {"attn_norm", 1, h->hidden, false},
        {"ffn_norm", 1, h->hidden, false},
        {"attn_q_norm", 1, h->head_dim, false},
        {"attn_k_norm", 1, h->head_dim, false},
    };
    memcpy(out, all, sizeof all);
    return h->arch == TRTC_ARCH_QWEN3 ? 4 : 2;
}

/* The fewest bytes a file with this header can have: every row as short as its columns allow, no biases. */
static uint64_t least_bytes(const trtc_header *h)
{
    shape matrices[LAYER_MATRICES], norms[LAYER_NORMS];
    layer_matrices(h, matrices);
    uint64_t layer = 0;
    for (int i = 0, n = layer_norms(h, norms); i < n; i++) layer += 4 * (uint64_t)norms[i].cols;
    for (int i = 0; i < LAYER_MATRICES; i++) {
        uint64_t rows = (uint64_t)matrices[i].rows, stride = ((uint64_t)matrices[i].cols + 7) / 8;
        layer += 16 + rows * (3 * stride + 4 + 4 + 8) + 4;
    }
    uint64_t table = 16 + (uint64_t)h->vocab * ((uint64_t)h->hidden + 8);
    return 60 + (uint64_t)h->n_layers * layer + 4 * (uint64_t)h->hidden + (uint64_t)h->eok * table;
}

/* Makes the directory. It is allocated only after the file proved long enough for the header's claims, so that a few
 * bytes of nonsense cannot ask for much: it takes at most 5 bytes a byte of the file (when all widths are 1), less than
 * the file from widths of 16 on. */
static outrider_status make_directory(reader *r)
{
    const trtc_header *h = &r->file->header;
    uint64_t least = least_bytes(h);
    if (r->at.size < least)
        return REFUSE(r,
                      "file size: expected at least %" PRIu64 " bytes for %" PRId32 " layers of hidden size %" PRId32
                      " and vocabulary %" PRId32 ", found %zu (cut short?)",
                      least, h->n_layers, h->hidden, h->vocab, r->at.size);
    shape norms[LAYER_NORMS];
    size_t a_layer = (size_t)layer_norms(h, norms) + LAYER_MATRICES;
    r->capacity = (size_t)h->n_layers * a_layer + 1 + (size_t)h->eok;
    r->file->tensors = calloc(r->capacity, sizeof *r->file->tensors);
    if (!r->file->tensors) return error_memory(r->err, "the tensor directory", r->capacity * sizeof *r->file->tensors);
    return OUTRIDER_OK;
}

/* -- Records ----------------------------------------------------------------------------------------------------------- */

/* The next entry of the directory; layer < 0 for tensors outside the layers. */
static tensor *start_tensor(reader *r, tensor_kind kind, int32_t layer, const char *name)
{
    ensure(r->file->n_tensors < r->capacity);
    tensor *t = &r->file->tensors[r->file->n_tensors++];
    t->kind = kind;
    int n = layer < 0 ? snprintf(t->name, sizeof t->name, "%s", name)
                      : snprintf(t->name, sizeof t->name, "blk.%" PRId32 ".%s", layer, name);
    ensure(n > 0 && (size_t)n < sizeof t->name);
    t->file_offset = r->at.at;
    return t;
}

static void end_tensor(reader *r, tensor *t) { t->file_bytes = r->at.at - t->file_offset; }

/* Takes rows * bytes_each bytes of the tensor's part `part`. */
static outrider_status take(reader *r, const tensor *t, const char *part, size_t rows, size_t bytes_each, const uint8_t **out)
{
    size_t bytes;
    if (!size_multiply(rows, bytes_each, &bytes) || bytes > cursor_left(&r->at))
        return REFUSE(r, "%s %s: expected %zu * %zu bytes, found %zu left in the file", t->name, part, rows, bytes_each,
                      cursor_left(&r->at));
    *out = cursor_take(&r->at, bytes);
    return OUTRIDER_OK;
}

/* Takes n floats and checks that they are finite. */
static outrider_status take_floats(reader *r, const tensor *t, const char *part, size_t n, const uint8_t **out)
{
    outrider_status s = take(r, t, part, n, 4, out);
    if (s) return s;
    for (size_t i = 0; i < n; i++) {
        float f = trtc_f32(*out, i);
        if (!isfinite(f)) return REFUSE(r, "%s %s[%zu]: expected a finite number, found %g", t->name, part, i, (double)f);
    }
    return OUTRIDER_OK;
}

/* The four counts at the head of a matrix record: rows and cols are what the header implies, and a row of `per_byte`
 * columns a byte holds the padded columns, those the real ones. */
static outrider_status read_shape(reader *r, tensor *t, int32_t rows, int32_t cols, int64_t per_byte)
{
    static const char *const names[4] = {"rows", "cols", "cols_pad", "row_stride"};
    int32_t v[4];
    for (int i = 0; i < 4; i++)
        if (!cursor_i32(&r->at, &v[i])) return REFUSE(r, "%s %s: the file ends inside it", t->name, names[i]);
    if (v[0] != rows) return REFUSE(r, "%s rows: expected %" PRId32 ", found %" PRId32, t->name, rows, v[0]);
    if (v[1] != cols) return REFUSE(r, "%s cols: expected %" PRId32 ", found %" PRId32, t->name, cols, v[1]);
    if (v[2] < cols) return REFUSE(r, "%s cols_pad: expected at least cols %" PRId32 ", found %" PRId32, t->name, cols, v[2]);
    if (v[3] < 1 || per_byte * v[3] < v[2])
        return REFUSE(r, "%s row_stride: expected at least %" PRId64 " bytes for cols_pad %" PRId32 ", found %" PRId32, t->name,
                      (v[2] + per_byte - 1) / per_byte, v[2], v[3]);
    t->rows = rows;
    t->cols = cols;
    t->row_stride = (size_t)v[3];
    return OUTRIDER_OK;
}

static outrider_status read_norm(reader *r, int32_t layer, const char *name, int32_t cols)
{
    tensor *t = start_tensor(r, TENSOR_F32, layer, name);
    t->rows = 1;
    t->cols = cols;
    outrider_status s = take_floats(r, t, "values", (size_t)cols, &t->f32);
    end_tensor(r, t);
    return s;
}

static outrider_status read_bias(reader *r, tensor *t, bool may_have_bias)
{
    int32_t has_bias;
    if (!cursor_i32(&r->at, &has_bias)) return REFUSE(r, "%s has_bias: the file ends inside it", t->name);
    if (has_bias != 0 && (has_bias != 1 || !may_have_bias))
        return REFUSE(r, "%s has_bias: expected %s, found %" PRId32, t->name,
                      may_have_bias ? "0 or 1" : "0 (this architecture has no bias here)", has_bias);
    return has_bias ? take_floats(r, t, "bias", (size_t)t->rows, &t->bias) : OUTRIDER_OK;
}

static outrider_status read_trit(reader *r, int32_t layer, const shape *want)
{
    tensor *t = start_tensor(r, TENSOR_TRIT, layer, want->name);
    outrider_status s = read_shape(r, t, want->rows, want->cols, 8);
    size_t rows = (size_t)t->rows;
    const uint8_t *sidecar;
    if (!s) s = take(r, t, "bp", rows, t->row_stride, &t->bp);
    if (!s) s = take(r, t, "bn", rows, t->row_stride, &t->bn);
    if (!s) s = take(r, t, "br", rows, t->row_stride, &t->br);
    if (!s) s = take_floats(r, t, "s_lo", rows, &t->s_lo);
    if (!s) s = take_floats(r, t, "s_hi", rows, &t->s_hi);
    if (!s) s = take(r, t, "sidecar", rows, 8, &sidecar);
    if (!s) s = read_bias(r, t, want->may_have_bias);
    end_tensor(r, t);
    return s;
}

static outrider_status read_int8(reader *r, const char *name)
{
    tensor *t = start_tensor(r, TENSOR_INT8, -1, name);
    outrider_status s = read_shape(r, t, r->file->header.vocab, r->file->header.hidden, 1);
    const uint8_t *weights = NULL, *sums;
    if (!s) s = take(r, t, "weights", (size_t)t->rows, t->row_stride, &weights);
    if (!s) s = take_floats(r, t, "scale", (size_t)t->rows, &t->scale);
    if (!s) s = take(r, t, "row sums", (size_t)t->rows, 4, &sums);
    t->weights = (const int8_t *)weights;
    end_tensor(r, t);
    return s;
}

static outrider_status read_body(reader *r)
{
    const trtc_header *h = &r->file->header;
    shape matrices[LAYER_MATRICES], norms[LAYER_NORMS];
    layer_matrices(h, matrices);
    int n_norms = layer_norms(h, norms);
    bool tied = h->eok == 1;
    outrider_status s = tied ? OUTRIDER_OK : read_int8(r, "token_embd");
    for (int32_t layer = 0; !s && layer < h->n_layers; layer++) {
        for (int i = 0; !s && i < n_norms; i++) s = read_norm(r, layer, norms[i].name, norms[i].cols);
        for (int i = 0; !s && i < LAYER_MATRICES; i++) s = read_trit(r, layer, &matrices[i]);
    }
    if (!s) s = read_norm(r, -1, "output_norm", h->hidden);
    if (!s) s = read_int8(r, tied ? "token_embd" : "output");
    if (!s && cursor_left(&r->at))
        s = REFUSE(r, "file size: expected the end of the file after byte %zu, found %zu bytes more", r->at.at,
                   cursor_left(&r->at));
    return s;
}

/* -- Opening and closing ----------------------------------------------------------------------------------------------- */

static outrider_status open_mapped(trtc_file *file, outrider_error *err)
{
    reader r = {.file = file, .at = {file->map.data, file->map.size, 0}, .err = err};
    outrider_status s = read_header(&r);
    if (!s) s = make_directory(&r);
    if (!s) s = read_body(&r);
    if (s) trtc_close(file);
    return s;
}

outrider_status trtc_open(trtc_file *file, const char *path, outrider_error *err)
{
    *file = (trtc_file){0};
    outrider_status s = file_map_open(&file->map, path, err);
    if (s) return s;
    file->mapped = true;
    return open_mapped(file, err);
}

outrider_status trtc_open_memory(trtc_file *file, const void *data, size_t size, const char *name, outrider_error *err)
{
    *file = (trtc_file){0};
    char *path = strdup(name);
    if (!path) return error_memory(err, "a name", strlen(name) + 1);
    file->map = (file_map){.path = path, .data = data, .size = size};
    return open_mapped(file, err);
}

void trtc_close(trtc_file *file)
{
    free(file->tensors);
    if (file->mapped)
        file_map_close(&file->map);
    else
        free(file->map.path);
    *file = (trtc_file){0};
}

const tensor *trtc_find(const trtc_file *file, const char *name)
{
    for (size_t i = 0; i < file->n_tensors; i++)
        if (strcmp(file->tensors[i].name, name) == 0) return &file->tensors[i];
    return NULL;
}

/* -- Planes ------------------------------------------------------------------------------------------------------------ */

/* Up to 8 bytes as a word; which bit is which does not matter to the checks. */
static uint64_t word_at(const uint8_t *p, size_t bytes)
{
    uint64_t w = 0;
    memcpy(&w, p, bytes);
    return w;
}

/* The bits of one row that break an invariant, or'd over its words: 0 for a good row. Whole bytes first, eight at a time
 * at the speed of memory, then the bits of the last byte that are columns. */
static uint64_t row_faults(const uint8_t *bp, const uint8_t *bn, const uint8_t *br, size_t cols)
{
    size_t whole = cols / 8, i = 0;
    uint64_t bad = 0;
    for (; i + 8 <= whole; i += 8) {
        uint64_t p = word_at(bp + i, 8), n = word_at(bn + i, 8), h = word_at(br + i, 8);
        bad |= (p & n) | (h & ~(p | n));
    }
    if (i < whole) {
        uint64_t p = word_at(bp + i, whole - i), n = word_at(bn + i, whole - i), h = word_at(br + i, whole - i);
        bad |= (p & n) | (h & ~(p | n));
    }
    if (cols % 8) {
        unsigned p = bp[whole], n = bn[whole], h = br[whole], mask = (1u << cols % 8) - 1;
        bad |= ((p & n) | (h & ~(p | n))) & mask;
    }
    return bad;
}

/* Names the first column of a row that is known to break an invariant. */
static outrider_status refuse_row(const trtc_file *file, const tensor *t, int32_t row, outrider_error *err)
{
    size_t offset = (size_t)row * t->row_stride;
    for (int32_t c = 0; c < t->cols; c++) {
        size_t byte = offset + (size_t)c / 8;
        unsigned bit = (unsigned)c % 8, p = t->bp[byte] >> bit & 1u, n = t->bn[byte] >> bit & 1u, h = t->br[byte] >> bit & 1u;
        if (p & n)
            return refuse(file, err,
                          "%s planes bp, bn, row %" PRId32 " column %" PRId32
                          ": expected at most one of the two bits, found both",
                          t->name, row, c);
        if (h & ~(p | n))
            return refuse(file, err,
                          "%s plane br, row %" PRId32 " column %" PRId32 ": expected 0 where bp and bn are 0, found 1", t->name,
                          row, c);
    }
    return refuse(file, err, "%s row %" PRId32 ": the file changed while it was read", t->name, row);
}

outrider_status trtc_check_rows(const trtc_file *file, const tensor *t, int32_t row_begin, int32_t row_end, outrider_error *err)
{
    ensure(0 <= row_begin && row_begin <= row_end && row_end <= t->rows);
    if (t->kind != TENSOR_TRIT) return OUTRIDER_OK;
    for (int32_t row = row_begin; row < row_end; row++) {
        size_t offset = (size_t)row * t->row_stride;
        if (row_faults(t->bp + offset, t->bn + offset, t->br + offset, (size_t)t->cols)) return refuse_row(file, t, row, err);
    }
    return OUTRIDER_OK;
}

outrider_status trtc_check_all(const trtc_file *file, outrider_error *err)
{
    for (size_t i = 0; i < file->n_tensors; i++) {
        outrider_status s = trtc_check_rows(file, &file->tensors[i], 0, file->tensors[i].rows, err);
        if (s) return s;
    }
    return OUTRIDER_OK;
}
