#include "support_trtc.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const toy_options toy_default = {.arch = 3,
                                 .n_layers = 2,
                                 .hidden = 13,
                                 .n_heads = 2,
                                 .n_kv_heads = 1,
                                 .head_dim = 6,
                                 .rotary_dims = 4,
                                 .intermediate = 11,
                                 .vocab = 19,
                                 .max_positions = 64,
                                 .pad = 16};

static _Noreturn void fail_with(const char *what, const char *which)
{
    fprintf(stderr, "toy container: %s: %s\n", what, which);
    abort();
}

/* One container being written. */
typedef struct writer {
    toy *t;
    const toy_options *o;
    uint64_t random;
    size_t capacity;
} writer;

static uint32_t random_below(writer *w, uint32_t n)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((w->random >> 33) % n);
}

static void put(writer *w, const void *data, size_t size)
{
    if (!bytes_add(&w->t->file, data, size)) fail_with("no memory", "bytes");
}

static void put_i32(writer *w, int32_t value)
{
    uint32_t u = (uint32_t)value;
    uint8_t b[4] = {(uint8_t)u, (uint8_t)(u >> 8), (uint8_t)(u >> 16), (uint8_t)(u >> 24)};
    put(w, b, 4);
}

static void put_f32(writer *w, float value)
{
    int32_t i;
    memcpy(&i, &value, 4);
    put_i32(w, i);
}

__attribute__((format(printf, 2, 3))) static void mark(writer *w, const char *format, ...)
{
    toy *t = w->t;
    if (t->n_marks == w->capacity) {
        w->capacity = w->capacity ? 2 * w->capacity : 64;
        t->marks = realloc(t->marks, w->capacity * sizeof *t->marks);
        if (!t->marks) fail_with("no memory", "marks");
    }
    toy_mark *m = &t->marks[t->n_marks++];
    va_list args;
    va_start(args, format);
    vsnprintf(m->name, sizeof m->name, format, args);
    va_end(args);
    m->at = t->file.size;
}

static void put_counts(writer *w, const char *name, int32_t rows, int32_t cols, int32_t cols_pad, int32_t row_stride)
{
    const char *const names[] = {"rows", "cols", "cols_pad", "row_stride"};
    const int32_t values[] = {rows, cols, cols_pad, row_stride};
    for (int i = 0; i < 4; i++) {
        mark(w, "%s.%s", name, names[i]);
        put_i32(w, values[i]);
    }
}

static void put_floats(writer *w, const char *name, const char *part, int32_t n)
{
    mark(w, part[0] ? "%s.%s" : "%s%s", name, part);
    for (int32_t i = 0; i < n; i++) put_f32(w, 0.5f + (float)random_below(w, 1000) / 1000);
}

static int32_t padded(const writer *w, int32_t cols) { return (cols + w->o->pad - 1) / w->o->pad * w->o->pad; }

/* Draws the values of a matrix: 0 zero, 1 +lo, 2 -lo, 3 +hi, 4 -hi. Row 1 is all zero, row 2 has no high, row 3 no low
 * weights. */
static uint8_t *draw_values(writer *w, int32_t rows, int32_t cols)
{
    uint8_t *v = malloc((size_t)rows * (size_t)cols);
    if (!v) fail_with("no memory", "values");
    for (int32_t r = 0; r < rows; r++) {
        bool low = false, high = false;
        for (int32_t c = 0; c < cols; c++) {
            uint32_t x = random_below(w, 8);
            uint8_t value = x < 4 ? 0 : (uint8_t)(x - 3);
            if (r == 0 && c < 2) value = c ? 3 : 1;
            if (r == 1 || (r == 2 && value > 2) || (r == 3 && value < 3)) value = 0;
            v[(size_t)r * (size_t)cols + (size_t)c] = value;
            low = low || value == 1 || value == 2;
            high = high || value > 2;
            w->t->zeros += value == 0;
            w->t->high += value > 2;
        }
        w->t->one_level_rows += !(low && high);
    }
    w->t->five_rows += (uint64_t)rows;
    w->t->five_weights += (uint64_t)rows * (uint64_t)cols;
    return v;
}

static void put_plane(writer *w, const uint8_t *v, int32_t rows, int32_t cols, int32_t stride, unsigned members)
{
    for (int32_t r = 0; r < rows; r++) {
        for (int32_t byte = 0; byte < stride; byte++) {
            uint8_t b = 0;
            for (int32_t i = 0; i < 8; i++) {
                int32_t c = 8 * byte + i;
                bool on = c < cols ? members >> v[(size_t)r * (size_t)cols + (size_t)c] & 1u : w->o->junk;
                b |= (uint8_t)((unsigned)on << i);
            }
            put(w, &b, 1);
        }
    }
}

static void put_trit(writer *w, const char *name, int32_t rows, int32_t cols, bool bias)
{
    int32_t pad = padded(w, cols), stride = (pad + 7) / 8 + w->o->stride_extra;
    put_counts(w, name, rows, cols, pad, stride);
    uint8_t *v = draw_values(w, rows, cols);
    mark(w, "%s.bp", name);
    put_plane(w, v, rows, cols, stride, 1u << 1 | 1u << 3);
    mark(w, "%s.bn", name);
    put_plane(w, v, rows, cols, stride, 1u << 2 | 1u << 4);
    mark(w, "%s.br", name);
    put_plane(w, v, rows, cols, stride, 1u << 3 | 1u << 4);
    free(v);
    mark(w, "%s.s_lo", name);
    for (int32_t r = 0; r < rows; r++)
        put_f32(w, r == 0 && w->o->exceptional ? 0.0005f : 0.25f + (float)random_below(w, 100) / 400);
    mark(w, "%s.s_hi", name);
    for (int32_t r = 0; r < rows; r++)
        put_f32(w, r == 0 && w->o->exceptional ? 1.0f : 1.0f + (float)random_below(w, 100) / 100);
    mark(w, "%s.sidecar", name);
    for (int32_t r = 0; r < 2 * rows; r++) put_i32(w, -1);
    mark(w, "%s.has_bias", name);
    put_i32(w, bias);
    if (bias) put_floats(w, name, "bias", rows);
}

static void put_int8(writer *w, const char *name)
{
    int32_t rows = w->o->vocab, cols = w->o->hidden, stride = padded(w, cols);
    put_counts(w, name, rows, cols, stride, stride);
    mark(w, "%s.weights", name);
    for (int32_t r = 0; r < rows; r++)
        for (int32_t c = 0; c < stride; c++) {
            int8_t k = c < cols ? (int8_t)((int32_t)random_below(w, 255) - 127) : (int8_t)(w->o->junk ? 77 : 0);
            put(w, &k, 1);
        }
    put_floats(w, name, "scale", rows);
    mark(w, "%s.sums", name);
    for (int32_t r = 0; r < rows; r++) put_i32(w, -1);
}

static void put_layer(writer *w, int32_t layer)
{
    const toy_options *o = w->o;
    int32_t q = o->n_heads * o->head_dim, kv = o->n_kv_heads * o->head_dim;
    const struct {
        const char *name;
        int32_t rows, cols;
        bool bias;
    } m[] = {
        {"attn_q", q, o->hidden, o->bias},
        {"attn_k", kv, o->hidden, o->bias},
        {"attn_v", kv, o->hidden, o->bias},
        {"attn_output", o->hidden, q, false},
        {"ffn_gate", o->intermediate, o->hidden, false},
        {"ffn_up", o->intermediate, o->hidden, false},
        {"ffn_down", o->hidden, o->intermediate, false},
    };
    char name[48];
    const char *const norms[] = {"attn_norm", "ffn_norm", "attn_q_norm", "attn_k_norm"};
    for (int i = 0; i < (o->arch == 3 ? 4 : 2); i++) {
        snprintf(name, sizeof name, "blk.%d.%s", (int)layer, norms[i]);
        put_floats(w, name, "", i < 2 ? o->hidden : o->head_dim);
    }
    for (size_t i = 0; i < sizeof m / sizeof m[0]; i++) {
        snprintf(name, sizeof name, "blk.%d.%s", (int)layer, m[i].name);
        put_trit(w, name, m[i].rows, m[i].cols, m[i].bias);
    }
}

void toy_write(toy *t, const toy_options *options)
{
    *t = (toy){0};
    writer w = {.t = t, .o = options, .random = 20250101};
    const struct {
        const char *name;
        int32_t value;
    } header[] = {
        {"magic", 0x43545254},
        {"version", 4},
        {"arch", options->arch},
        {"n_layers", options->n_layers},
        {"hidden", options->hidden},
        {"n_heads", options->n_heads},
        {"n_kv_heads", options->n_kv_heads},
        {"head_dim", options->head_dim},
        {"rotary_dims", options->rotary_dims},
        {"intermediate", options->intermediate},
        {"vocab", options->vocab},
        {"max_positions", options->max_positions},
    };
    for (size_t i = 0; i < sizeof header / sizeof header[0]; i++) {
        mark(&w, "%s", header[i].name);
        put_i32(&w, header[i].value);
    }
    mark(&w, "eps");
    put_f32(&w, 1e-6f);
    mark(&w, "theta");
    put_f32(&w, 1e4f);
    mark(&w, "eok");
    put_i32(&w, options->tied ? 1 : 2);
    if (!options->tied) put_int8(&w, "token_embd");
    for (int32_t layer = 0; layer < options->n_layers; layer++) put_layer(&w, layer);
    put_floats(&w, "output_norm", "", options->hidden);
    put_int8(&w, options->tied ? "token_embd" : "output");
}

void toy_free(toy *t)
{
    bytes_free(&t->file);
    free(t->marks);
    *t = (toy){0};
}

size_t toy_at(const toy *t, const char *name)
{
    for (size_t i = 0; i < t->n_marks; i++)
        if (strcmp(t->marks[i].name, name) == 0) return t->marks[i].at;
    fail_with("no such mark", name);
}

static void set_word(toy *t, size_t at, uint32_t u)
{
    if (at + 4 > t->file.size) fail_with("a word outside", "the file");
    for (int i = 0; i < 4; i++) t->file.data[at + (size_t)i] = (char)(u >> 8 * i & 0xff);
}

void toy_set_i32(toy *t, const char *name, int32_t value) { set_word(t, toy_at(t, name), (uint32_t)value); }

void toy_set_f32(toy *t, const char *name, size_t i, float value)
{
    uint32_t u;
    memcpy(&u, &value, 4);
    set_word(t, toy_at(t, name) + 4 * i, u);
}

void toy_save(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0) fail_with("cannot be written", path);
}
