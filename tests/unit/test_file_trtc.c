/* file/trtc.h: good containers give the right directory, and every field that can lie is refused by its name. */
#include "file/trtc.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#include "support_trtc.h"

/* -- Bytes that end where readable memory ends
 * -------------------------------------------------------------------------- */

typedef struct guarded {
    uint8_t *base, *data;
    size_t mapped;
} guarded;

/* A copy whose last byte is the last one before a page that must not be touched. */
static guarded guard(const void *data, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (size + page - 1) / page * page;
    guarded g = {.mapped = whole + page};
    g.base = mmap(NULL, g.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(g.base != MAP_FAILED);
    assert_int_equal(mprotect(g.base + whole, page, PROT_NONE), 0);
    g.data = g.base + whole - size;
    memcpy(g.data, data, size);
    assert_int_equal(mprotect(g.base, whole ? whole : page, PROT_READ), 0);
    return g;
}

static void unguard(guarded *g) { munmap(g->base, g->mapped); }

/* Opens and checks in full; the name that stands for the path is "toy". */
static outrider_status try_open(const void *data, size_t size, outrider_error *err)
{
    guarded g = guard(data, size);
    trtc_file f;
    outrider_status s = trtc_open_memory(&f, g.data, size, "toy", err);
    if (s) {
        assert_null(f.tensors);
        assert_null(f.map.path);
    } else {
        s = trtc_check_all(&f, err);
        trtc_close(&f);
    }
    unguard(&g);
    return s;
}

/* The bytes are refused as a bad file, in one line that holds each of the texts (up to a NULL). */
static void expect_refused(const toy *t, const char *const *texts)
{
    outrider_error err = {0};
    assert_int_equal(try_open(t->file.data, t->file.size, &err), OUTRIDER_BAD_FILE);
    assert_int_equal(err.status, OUTRIDER_BAD_FILE);
    assert_non_null(strstr(err.message, "toy: "));
    for (; *texts; texts++) {
        if (!strstr(err.message, *texts)) fail_msg("\"%s\" is missing in: %s", *texts, err.message);
    }
    assert_int_equal(try_open(t->file.data, t->file.size, NULL), OUTRIDER_BAD_FILE);
}

#define REFUSED(t, ...) expect_refused((t), (const char *const[]){__VA_ARGS__, NULL})

/* One field of an otherwise good container set to a value: refused, naming the field and the value. */
static void refuse_i32(const char *field, int32_t value)
{
    toy t;
    toy_write(&t, &toy_default);
    toy_set_i32(&t, field, value);
    char name[80], found[32];
    const char *dot = strrchr(field, '.');
    if (dot)
        snprintf(name, sizeof name, "%.*s %s", (int)(dot - field), field, dot + 1);
    else
        snprintf(name, sizeof name, "header field %s", field);
    snprintf(found, sizeof found, "found %d", (int)value);
    REFUSED(&t, name, "expected", found);
    toy_free(&t);
}

/* The same for floats: NaN and both infinities at index i, and what else is listed. */
static void refuse_f32(const char *field, size_t i, const char *named)
{
    const float values[] = {NAN, INFINITY, -INFINITY};
    for (int k = 0; k < 3; k++) {
        toy t;
        toy_write(&t, &toy_default);
        toy_set_f32(&t, field, i, values[k]);
        REFUSED(&t, named, "expected", "finite", "found");
        toy_free(&t);
    }
}

/* -- Good containers
 * ---------------------------------------------------------------------------------------------------- */

/* Every pointer of the directory is where the writer put that part. */
static void expect_tensor(const trtc_file *f, const toy *t, const char *name, tensor_kind kind, int32_t rows, int32_t cols)
{
    const tensor *found = trtc_find(f, name);
    assert_non_null(found);
    assert_int_equal(found->kind, kind);
    assert_int_equal(found->rows, rows);
    assert_int_equal(found->cols, cols);
    const struct {
        const char *part;
        const void *p;
    } all[] = {{"", found->f32},       {".bp", found->bp},           {".bn", found->bn},
               {".br", found->br},     {".s_lo", found->s_lo},       {".s_hi", found->s_hi},
               {".bias", found->bias}, {".weights", found->weights}, {".scale", found->scale}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (!all[i].p) continue;
        char mark[64];
        snprintf(mark, sizeof mark, "%s%s", name, all[i].part);
        assert_int_equal((size_t)((const uint8_t *)all[i].p - f->map.data), toy_at(t, mark));
    }
    assert_true((found->f32 != NULL) == (kind == TENSOR_F32));
    assert_true((found->bp && found->bn && found->br && found->s_lo && found->s_hi) == (kind == TENSOR_TRIT));
    assert_true((found->weights && found->scale) == (kind == TENSOR_INT8));
}

static void expect_good(const toy_options *o)
{
    toy t;
    outrider_error err = {0};
    toy_write(&t, o);
    trtc_file f;
    outrider_status s = trtc_open_memory(&f, t.file.data, t.file.size, "toy", &err);
    if (s) fail_msg("%s", err.message);
    assert_int_equal(trtc_check_all(&f, &err), OUTRIDER_OK);
    assert_int_equal(f.header.arch, o->arch);
    assert_int_equal(f.header.eok, o->tied ? 1 : 2);
    assert_int_equal(f.header.rotary_dims, o->rotary_dims);
    assert_true(f.header.eps == 1e-6f && f.header.theta == 1e4f);
    size_t layer_tensors = o->arch == 3 ? 11 : 9;
    assert_int_equal(f.n_tensors, layer_tensors * (size_t)o->n_layers + (o->tied ? 2 : 3));
    size_t at = f.tensors[0].file_offset;
    assert_int_equal(at, 60);
    for (size_t i = 0; i < f.n_tensors; at += f.tensors[i++].file_bytes) assert_int_equal(f.tensors[i].file_offset, at);
    assert_int_equal(at, t.file.size);
    int32_t q = o->n_heads * o->head_dim, kv = o->n_kv_heads * o->head_dim;
    expect_tensor(&f, &t, "blk.0.attn_norm", TENSOR_F32, 1, o->hidden);
    expect_tensor(&f, &t, "blk.1.ffn_norm", TENSOR_F32, 1, o->hidden);
    expect_tensor(&f, &t, "blk.0.attn_q", TENSOR_TRIT, q, o->hidden);
    expect_tensor(&f, &t, "blk.1.attn_k", TENSOR_TRIT, kv, o->hidden);
    expect_tensor(&f, &t, "blk.1.attn_v", TENSOR_TRIT, kv, o->hidden);
    expect_tensor(&f, &t, "blk.0.attn_output", TENSOR_TRIT, o->hidden, q);
    expect_tensor(&f, &t, "blk.0.ffn_gate", TENSOR_TRIT, o->intermediate, o->hidden);
    expect_tensor(&f, &t, "blk.1.ffn_up", TENSOR_TRIT, o->intermediate, o->hidden);
    expect_tensor(&f, &t, "blk.1.ffn_down", TENSOR_TRIT, o->hidden, o->intermediate);
    expect_tensor(&f, &t, "output_norm", TENSOR_F32, 1, o->hidden);
    expect_tensor(&f, &t, "token_embd", TENSOR_INT8, o->vocab, o->hidden);
    if (o->arch == 3) expect_tensor(&f, &t, "blk.1.attn_k_norm", TENSOR_F32, 1, o->head_dim);
    assert_true((trtc_find(&f, "blk.0.attn_q_norm") != NULL) == (o->arch == 3));
    assert_true((trtc_find(&f, "output") != NULL) == !o->tied);
    assert_true((trtc_find(&f, "blk.1.attn_v")->bias != NULL) == o->bias);
    assert_null(trtc_find(&f, "blk.1.ffn_down")->bias);
    assert_null(trtc_find(&f, "blk.2.ffn_down"));
    trtc_close(&f);
    trtc_close(&f);
    toy_free(&t);
}

static void test_trtc_arch_3_untied(void **state)
{
    (void)state;
    expect_good(&toy_default);
}

static void test_trtc_arch_3_tied(void **state)
{
    (void)state;
    toy_options o = toy_default;
    o.tied = true;
    expect_good(&o);
}

static void test_trtc_arch_1_with_and_without_biases(void **state)
{
    (void)state;
    toy_options o = toy_default;
    o.arch = 1;
    for (int i = 0; i < 4; i++) {
        o.tied = i & 1;
        o.bias = i & 2;
        expect_good(&o);
    }
}

static void test_trtc_rows_may_be_longer_than_needed(void **state)
{
    (void)state;
    toy_options o = toy_default;
    for (int32_t extra = 0; extra < 9; extra++) {
        o.stride_extra = extra;
        o.pad = 1 + 7 * extra;
        expect_good(&o);
    }
}

static void test_trtc_bits_after_the_last_column_mean_nothing(void **state)
{
    (void)state;
    toy_options o = toy_default;
    o.junk = true;
    o.stride_extra = 9;
    for (o.hidden = 1; o.hidden <= 140; o.hidden += o.hidden < 18 ? 1 : 61) expect_good(&o);
}

static void test_trtc_demo_pair(void **state)
{
    (void)state;
    const char *const names[] = {"verifier", "draft"};
    for (int i = 0; i < 2; i++) {
        char path[512];
        outrider_error err = {0};
        trtc_file f;
        snprintf(path, sizeof path, "%s/models/demo/%s.trtc", SOURCE_DIR, names[i]);
        outrider_status s = trtc_open(&f, path, &err);
        if (s) fail_msg("%s", err.message);
        assert_int_equal(f.header.n_layers, i ? 2 : 6);
        assert_int_equal(f.header.hidden, i ? 128 : 256);
        assert_int_equal(f.header.vocab, 4096);
        assert_true((trtc_find(&f, "output") != NULL) == !i);
        assert_int_equal(trtc_check_all(&f, &err), OUTRIDER_OK);
        trtc_close(&f);
    }
}

static void test_trtc_f32_is_little_endian_and_unaligned(void **state)
{
    (void)state;
    const uint8_t data[] = {9, 0x00, 0x00, 0xc0, 0x3f, 0x00, 0x00, 0x20, 0xc1};
    assert_true(trtc_f32(data + 1, 0) == 1.5f);
    assert_true(trtc_f32(data + 1, 1) == -10.0f);
}

/* -- The header
 * --------------------------------------------------------------------------------------------------------- */

static void test_trtc_malformed_magic(void **state)
{
    (void)state;
    toy t;
    toy_write(&t, &toy_default);
    toy_set_i32(&t, "magic", 0x46554747); /* "GGUF" */
    REFUSED(&t, "header field magic", "expected 0x43545254", "found 0x46554747");
    toy_free(&t);
}

static void test_trtc_malformed_version(void **state)
{
    (void)state;
    refuse_i32("version", 3);
    refuse_i32("version", 5);
}

static void test_trtc_malformed_arch(void **state)
{
    (void)state;
    refuse_i32("arch", 0);
    refuse_i32("arch", 4);
    refuse_i32("arch", -3);
}

static void test_trtc_malformed_arch_bitnet_is_refused_by_name(void **state)
{
    (void)state;
    toy t;
    toy_write(&t, &toy_default);
    toy_set_i32(&t, "arch", 2);
    REFUSED(&t, "header field arch", "BitNet");
    toy_free(&t);
}

static void test_trtc_malformed_n_layers(void **state)
{
    (void)state;
    const int32_t bad[] = {0, -1, 4097, 1 << 30, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) refuse_i32("n_layers", bad[i]);
}

static void test_trtc_malformed_hidden(void **state)
{
    (void)state;
    const int32_t bad[] = {0, -13, (1 << 20) + 1, INT32_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) refuse_i32("hidden", bad[i]);
}

static void test_trtc_malformed_n_heads(void **state)
{
    (void)state;
    refuse_i32("n_heads", 0);
    refuse_i32("n_heads", -2);
    refuse_i32("n_heads", (1 << 16) + 1);
}

static void test_trtc_malformed_n_kv_heads(void **state)
{
    (void)state;
    refuse_i32("n_kv_heads", 0);
    refuse_i32("n_kv_heads", -1);
    refuse_i32("n_kv_heads", 3); /* more than n_heads */
    toy t;
    toy_write(&t, &toy_default);
    toy_set_i32(&t, "n_heads", 5);
    toy_set_i32(&t, "n_kv_heads", 2);
    REFUSED(&t, "header field n_kv_heads", "divisor of n_heads 5", "found 2");
    toy_free(&t);
}

static void test_trtc_malformed_head_dim(void **state)
{
    (void)state;
    refuse_i32("head_dim", 0);
    refuse_i32("head_dim", -6);
    refuse_i32("head_dim", INT32_MAX);
    toy t;
    toy_write(&t, &toy_default);
    toy_set_i32(&t, "n_heads", 1 << 16); /* 2^16 * 2^16 wraps to 0 in 32 bits */
    toy_set_i32(&t, "head_dim", 1 << 16);
    REFUSED(&t, "header field head_dim", "n_heads * head_dim", "65536 * 65536");
    toy_free(&t);
}

static void test_trtc_malformed_rotary_dims(void **state)
{
    (void)state;
    refuse_i32("rotary_dims", 0);
    refuse_i32("rotary_dims", 3);
    refuse_i32("rotary_dims", 8); /* more than head_dim 6 */
    refuse_i32("rotary_dims", -2);
}

static void test_trtc_malformed_intermediate(void **state)
{
    (void)state;
    refuse_i32("intermediate", 0);
    refuse_i32("intermediate", -1);
    refuse_i32("intermediate", 1 << 30);
}

static void test_trtc_malformed_vocab(void **state)
{
    (void)state;
    refuse_i32("vocab", 0);
    refuse_i32("vocab", -1);
    refuse_i32("vocab", INT32_MAX);
}

static void test_trtc_malformed_max_positions(void **state)
{
    (void)state;
    refuse_i32("max_positions", 0);
    refuse_i32("max_positions", -1);
}

static void refuse_positive(const char *field)
{
    const float bad[] = {0.0f, -0.0f, -1e-6f, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        toy t;
        toy_write(&t, &toy_default);
        toy_set_f32(&t, field, 0, bad[i]);
        REFUSED(&t, "header field", field, "finite number above 0");
        toy_free(&t);
    }
}

static void test_trtc_malformed_eps(void **state)
{
    (void)state;
    refuse_positive("eps");
}

static void test_trtc_malformed_theta(void **state)
{
    (void)state;
    refuse_positive("theta");
}

static void test_trtc_malformed_eok(void **state)
{
    (void)state;
    refuse_i32("eok", 0);
    refuse_i32("eok", 3);
    refuse_i32("eok", -1);
}

/* Header values that are each in range but describe a larger file: refused by size, before anything is allocated for
 * them. */
static void test_trtc_malformed_header_larger_than_the_file(void **state)
{
    (void)state;
    const struct {
        const char *field;
        int32_t value;
    } large[] = {{"n_layers", 4096}, {"hidden", 1 << 20}, {"intermediate", 1 << 20}, {"vocab", 1 << 24}, {"head_dim", 1 << 16}};
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
        toy t;
        toy_write(&t, &toy_default);
        toy_set_i32(&t, large[i].field, large[i].value);
        REFUSED(&t, "file size: expected at least");
        toy_free(&t);
    }
    toy t;
    toy_write(&t, &toy_default);
    for (size_t i = 0; i < 4; i++) toy_set_i32(&t, large[i].field, large[i].value);
    REFUSED(&t, "file size: expected at least");
    toy_free(&t);
}

/* -- Records
 * ------------------------------------------------------------------------------------------------------------ */

static const char *const matrices[] = {"blk.0.attn_q",      "blk.1.attn_k",   "blk.0.attn_v",
                                       "blk.1.attn_output", "blk.0.ffn_gate", "blk.1.ffn_up",
                                       "blk.1.ffn_down",    "token_embd",     "output"};
enum { MATRICES = sizeof matrices / sizeof matrices[0] };

static void refuse_in_all(const char *field, const int32_t *bad, size_t n)
{
    for (int m = 0; m < MATRICES; m++) {
        for (size_t i = 0; i < n; i++) {
            char name[64];
            snprintf(name, sizeof name, "%s.%s", matrices[m], field);
            refuse_i32(name, bad[i]);
        }
    }
}

static void test_trtc_malformed_rows(void **state)
{
    (void)state;
    const int32_t bad[] = {0, -1, INT32_MAX, INT32_MIN, 1, 20};
    refuse_in_all("rows", bad, sizeof bad / sizeof bad[0]);
}

/* q has n_heads * head_dim rows; a writer that took `hidden` is refused. */
static void test_trtc_malformed_rows_hidden_for_q(void **state)
{
    (void)state;
    toy t;
    toy_write(&t, &toy_default);
    toy_set_i32(&t, "blk.0.attn_q.rows", toy_default.hidden);
    REFUSED(&t, "blk.0.attn_q rows: expected 12, found 13");
    toy_free(&t);
}

static void test_trtc_malformed_cols(void **state)
{
    (void)state;
    const int32_t bad[] = {0, -1, INT32_MAX, 16};
    refuse_in_all("cols", bad, sizeof bad / sizeof bad[0]);
}

static void test_trtc_malformed_cols_pad(void **state)
{
    (void)state;
    const int32_t bad[] = {0, -16, 10};
    refuse_in_all("cols_pad", bad, sizeof bad / sizeof bad[0]);
}

static void test_trtc_malformed_cols_pad_beyond_the_stride(void **state)
{
    (void)state;
    for (int m = 0; m < MATRICES; m++) {
        toy t;
        char name[64], named[64];
        toy_write(&t, &toy_default);
        snprintf(name, sizeof name, "%s.cols_pad", matrices[m]);
        snprintf(named, sizeof named, "%s row_stride", matrices[m]);
        toy_set_i32(&t, name, INT32_MAX);
        REFUSED(&t, named, "cols_pad 2147483647");
        toy_free(&t);
    }
}

static void test_trtc_malformed_row_stride(void **state)
{
    (void)state;
    const int32_t bad[] = {0, -1, 1, INT32_MIN};
    refuse_in_all("row_stride", bad, sizeof bad / sizeof bad[0]);
}

/* Strides with which rows * row_stride leaves the file, or 32 bits. */
static void test_trtc_malformed_row_stride_beyond_the_file(void **state)
{
    (void)state;
    const int32_t bad[] = {INT32_MAX, 1 << 28, 1 << 20, 4000};
    for (int m = 0; m < MATRICES; m++) {
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
            toy t;
            char name[64];
            toy_write(&t, &toy_default);
            snprintf(name, sizeof name, "%s.row_stride", matrices[m]);
            toy_set_i32(&t, name, bad[i]);
            REFUSED(&t, matrices[m], "left in the file", "expected");
            toy_free(&t);
        }
    }
}

static void test_trtc_malformed_norms(void **state)
{
    (void)state;
    refuse_f32("blk.0.attn_norm", 12, "blk.0.attn_norm values[12]");
    refuse_f32("blk.1.ffn_norm", 0, "blk.1.ffn_norm values[0]");
    refuse_f32("blk.0.attn_q_norm", 5, "blk.0.attn_q_norm values[5]");
    refuse_f32("blk.1.attn_k_norm", 3, "blk.1.attn_k_norm values[3]");
    refuse_f32("output_norm", 1, "output_norm values[1]");
}

static void test_trtc_malformed_s_lo(void **state)
{
    (void)state;
    refuse_f32("blk.0.attn_q.s_lo", 11, "blk.0.attn_q s_lo[11]");
    refuse_f32("blk.1.ffn_down.s_lo", 0, "blk.1.ffn_down s_lo[0]");
}

static void test_trtc_malformed_s_hi(void **state)
{
    (void)state;
    refuse_f32("blk.0.attn_v.s_hi", 5, "blk.0.attn_v s_hi[5]");
    refuse_f32("blk.1.ffn_up.s_hi", 10, "blk.1.ffn_up s_hi[10]");
}

static void test_trtc_malformed_int8_scale(void **state)
{
    (void)state;
    refuse_f32("token_embd.scale", 18, "token_embd scale[18]");
    refuse_f32("output.scale", 0, "output scale[0]");
}

static void test_trtc_malformed_has_bias(void **state)
{
    (void)state;
    refuse_i32("blk.0.attn_q.has_bias", 2);
    refuse_i32("blk.0.attn_q.has_bias", -1);
    refuse_i32("blk.1.attn_output.has_bias", 1);
    toy t;
    toy_options o = toy_default;
    o.bias = true; /* arch 3 has none */
    toy_write(&t, &o);
    REFUSED(&t, "blk.0.attn_q has_bias", "no bias here", "found 1");
    toy_free(&t);
}

static void test_trtc_malformed_bias(void **state)
{
    (void)state;
    toy t;
    toy_options o = toy_default;
    o.arch = 1;
    o.bias = true;
    toy_write(&t, &o);
    toy_set_f32(&t, "blk.1.attn_k.bias", 5, NAN);
    REFUSED(&t, "blk.1.attn_k bias[5]", "finite");
    toy_set_f32(&t, "blk.1.attn_k.bias", 5, 0);
    toy_set_i32(&t, "blk.1.attn_k.has_bias", 3);
    REFUSED(&t, "blk.1.attn_k has_bias: expected 0 or 1, found 3");
    toy_free(&t);
}

/* -- Planes
 * ------------------------------------------------------------------------------------------------------------- */

typedef enum fault { BOTH_SIGNS, HIGH_OF_ZERO } fault;

/* Breaks one invariant at (row, column) of blk.1.ffn_down by setting bits. */
static void plant(toy *t, const toy_options *o, fault what, int32_t row, int32_t column)
{
    size_t stride = (size_t)((o->intermediate + o->pad - 1) / o->pad * o->pad + 7) / 8 + (size_t)o->stride_extra;
    size_t byte = (size_t)row * stride + (size_t)column / 8;
    unsigned bit = 1u << column % 8;
    char *p = t->file.data + toy_at(t, "blk.1.ffn_down.bp") + byte, *n = t->file.data + toy_at(t, "blk.1.ffn_down.bn") + byte,
         *h = t->file.data + toy_at(t, "blk.1.ffn_down.br") + byte;
    *p = (char)(what == BOTH_SIGNS ? *p | (int)bit : *p & ~(int)bit);
    *n = (char)(what == BOTH_SIGNS ? *n | (int)bit : *n & ~(int)bit);
    *h = (char)(*h | (int)bit);
}

/* Every column of rows of many widths: one planted bit is found and named, and only by ranges that hold its row. */
static void refuse_plane(fault what, const char *named)
{
    toy_options o = toy_default;
    for (o.intermediate = 1; o.intermediate <= 150; o.intermediate += o.intermediate < 20 ? 1 : 13) {
        for (int32_t column = 0; column < o.intermediate; column++) {
            int32_t row = (column * 7 + 3) % o.hidden;
            char where[64];
            toy t;
            outrider_error err = {0};
            trtc_file f;
            toy_write(&t, &o);
            plant(&t, &o, what, row, column);
            assert_int_equal(trtc_open_memory(&f, t.file.data, t.file.size, "toy", &err), OUTRIDER_OK);
            const tensor *down = trtc_find(&f, "blk.1.ffn_down");
            assert_int_equal(trtc_check_rows(&f, down, 0, row, &err), OUTRIDER_OK);
            assert_int_equal(trtc_check_rows(&f, down, row + 1, down->rows, &err), OUTRIDER_OK);
            assert_int_equal(trtc_check_rows(&f, down, row, row + 1, &err), OUTRIDER_BAD_FILE);
            assert_int_equal(trtc_check_rows(&f, down, 0, down->rows, NULL), OUTRIDER_BAD_FILE);
            trtc_close(&f);
            snprintf(where, sizeof where, "row %d column %d:", (int)row, (int)column);
            REFUSED(&t, "blk.1.ffn_down", named, where);
            toy_free(&t);
        }
    }
}

static void test_trtc_malformed_bp_and_bn_overlap(void **state)
{
    (void)state;
    refuse_plane(BOTH_SIGNS, "planes bp, bn");
}

static void test_trtc_malformed_br_outside_bp_and_bn(void **state)
{
    (void)state;
    refuse_plane(HIGH_OF_ZERO, "plane br");
}

/* -- Length of the file
 * ------------------------------------------------------------------------------------------------- */

static void test_trtc_every_prefix_is_refused(void **state)
{
    (void)state;
    for (int tied = 0; tied < 2; tied++) {
        toy t;
        toy_options o = toy_default;
        o.tied = tied;
        toy_write(&t, &o);
        for (size_t size = 0; size < t.file.size; size++) {
            outrider_error err = {0};
            assert_int_equal(try_open(t.file.data, size, &err), OUTRIDER_BAD_FILE);
            bool by_record = strstr(err.message, "left in the file") || strstr(err.message, "ends inside it");
            assert_true(strstr(err.message, size < 60 ? "header field" : "file size") || (size >= 60 && by_record));
        }
        toy_free(&t);
    }
}

/* Rows longer than needed make the file longer than the header's least, so that the cut is met inside the records. */
static void test_trtc_every_prefix_is_refused_inside_records(void **state)
{
    (void)state;
    toy t;
    toy_options o = toy_default;
    o.arch = 1;
    o.bias = true;
    o.stride_extra = 10;
    toy_write(&t, &o);
    int by_tensor = 0;
    for (size_t size = 0; size < t.file.size; size++) {
        outrider_error err = {0};
        assert_int_equal(try_open(t.file.data, size, &err), OUTRIDER_BAD_FILE);
        by_tensor += strstr(err.message, "left in the file") || strstr(err.message, "ends inside it");
    }
    assert_true(by_tensor > 1000);
    toy_free(&t);
}

static void test_trtc_one_byte_more_is_refused(void **state)
{
    (void)state;
    toy t;
    toy_write(&t, &toy_default);
    for (int more = 1; more < 100; more++) {
        char found[48];
        assert_true(bytes_add(&t.file, "", 1));
        snprintf(found, sizeof found, "found %d bytes more", more);
        REFUSED(&t, "file size: expected the end of the file", found);
    }
    toy_free(&t);
}

/* The demo's draft on disk, cut at 1,000 random places, longest first: refused each time, and no page beyond the end is
 * touched. */
static void test_trtc_cut_at_1000_random_places(void **state)
{
    (void)state;
    bytes whole = {0};
    assert_true(bytes_read_file(&whole, SOURCE_DIR "/models/demo/draft.trtc"));
    char path[] = BINARY_DIR "/trtc_cut_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    toy_save(path, whole.data, whole.size);
    outrider_error err = {0};
    trtc_file f;
    assert_int_equal(trtc_open(&f, path, &err), OUTRIDER_OK);
    trtc_close(&f);
    uint64_t random = 7;
    for (int i = 0; i < 1000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t size = 1 + (size_t)((random >> 20) % (whole.size - 1));
        assert_int_equal(ftruncate(fd, (off_t)size), 0);
        assert_int_equal(trtc_open(&f, path, &err), OUTRIDER_BAD_FILE);
        assert_non_null(strstr(err.message, size < 60 ? "header field" : "file size"));
        assert_int_equal(ftruncate(fd, (off_t)whole.size), 0); /* zeros from the cut on: long enough, and still wrong */
        outrider_status s = trtc_open(&f, path, &err);
        if (!s) s = trtc_check_all(&f, &err);
        if (!s) trtc_close(&f);
        assert_true(s == OUTRIDER_OK || s == OUTRIDER_BAD_FILE);
        if (i % 50 == 0) toy_save(path, whole.data, whole.size);
    }
    close(fd);
    unlink(path);
    bytes_free(&whole);
}

/* Random bytes changed anywhere: refused or accepted, never more. */
static void test_trtc_random_damage(void **state)
{
    (void)state;
    toy t;
    toy_write(&t, &toy_default);
    uint64_t random = 3;
    for (int i = 0; i < 20000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t at = (size_t)((random >> 16) % (i % 2 ? t.file.size : 200));
        char before = t.file.data[at];
        t.file.data[at] = (char)(random >> 56);
        outrider_error err = {0};
        trtc_file f;
        outrider_status s = trtc_open_memory(&f, t.file.data, t.file.size, "toy", &err);
        if (s == OUTRIDER_OK) {
            s = trtc_check_all(&f, &err);
            trtc_close(&f);
        }
        assert_true(s == OUTRIDER_OK || s == OUTRIDER_BAD_FILE);
        t.file.data[at] = before;
    }
    toy_free(&t);
}

/* -- Memory
 * ------------------------------------------------------------------------------------------------------------- */

/* KiB of writable private memory this process has, 0 where the system does not say. */
static size_t data_kib(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    size_t kib = 0;
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmData: %zu kB", &kib) == 1) break;
    if (f) fclose(f);
    return kib;
}

/* With 64 KiB left to allocate, files of 3 KB that claim 4096 layers or 2^24 vocabulary rows are still refused for what
 * they are, and not for lack of memory: nothing was asked for on their word. */
static void test_trtc_allocates_nothing_for_false_claims(void **state)
{
    (void)state;
    toy t[4];
    const char *const fields[] = {"n_layers", "vocab", "blk.0.attn_q.row_stride", "blk.1.ffn_up.rows"};
    const int32_t values[] = {4096, 1 << 24, INT32_MAX, INT32_MAX};
    for (int i = 0; i < 4; i++) {
        toy_write(&t[i], &toy_default);
        toy_set_i32(&t[i], fields[i], values[i]);
    }
    struct rlimit before, tight;
    assert_int_equal(getrlimit(RLIMIT_DATA, &before), 0);
    tight = before;
    tight.rlim_cur = (data_kib() + 64) << 10;
    assert_int_equal(setrlimit(RLIMIT_DATA, &tight), 0);
    outrider_status s[4];
    for (int i = 0; i < 4; i++) {
        trtc_file f;
        s[i] = trtc_open_memory(&f, t[i].file.data, t[i].file.size, "toy", NULL);
    }
    assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(s[i], OUTRIDER_BAD_FILE);
        toy_free(&t[i]);
    }
}

/* A long path is cut from the left, so that what is wrong with the file is still said. */
static void test_trtc_message_keeps_the_field_with_a_long_path(void **state)
{
    (void)state;
    toy t;
    toy_write(&t, &toy_default);
    toy_set_i32(&t, "blk.0.attn_q.rows", -1);
    char name[2000];
    memset(name, 'x', sizeof name);
    memcpy(name + sizeof name - 6, "/last", 6);
    outrider_error err = {0};
    trtc_file f;
    assert_int_equal(trtc_open_memory(&f, t.file.data, t.file.size, name, &err), OUTRIDER_BAD_FILE);
    assert_non_null(strstr(err.message, "xxx/last: blk.0.attn_q rows: expected 12, found -1"));
    toy_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trtc_arch_3_untied),
        cmocka_unit_test(test_trtc_arch_3_tied),
        cmocka_unit_test(test_trtc_arch_1_with_and_without_biases),
        cmocka_unit_test(test_trtc_rows_may_be_longer_than_needed),
        cmocka_unit_test(test_trtc_bits_after_the_last_column_mean_nothing),
        cmocka_unit_test(test_trtc_demo_pair),
        cmocka_unit_test(test_trtc_f32_is_little_endian_and_unaligned),
        cmocka_unit_test(test_trtc_malformed_magic),
        cmocka_unit_test(test_trtc_malformed_version),
        cmocka_unit_test(test_trtc_malformed_arch),
        cmocka_unit_test(test_trtc_malformed_arch_bitnet_is_refused_by_name),
        cmocka_unit_test(test_trtc_malformed_n_layers),
        cmocka_unit_test(test_trtc_malformed_hidden),
        cmocka_unit_test(test_trtc_malformed_n_heads),
        cmocka_unit_test(test_trtc_malformed_n_kv_heads),
        cmocka_unit_test(test_trtc_malformed_head_dim),
        cmocka_unit_test(test_trtc_malformed_rotary_dims),
        cmocka_unit_test(test_trtc_malformed_intermediate),
        cmocka_unit_test(test_trtc_malformed_vocab),
        cmocka_unit_test(test_trtc_malformed_max_positions),
        cmocka_unit_test(test_trtc_malformed_eps),
        cmocka_unit_test(test_trtc_malformed_theta),
        cmocka_unit_test(test_trtc_malformed_eok),
        cmocka_unit_test(test_trtc_malformed_header_larger_than_the_file),
        cmocka_unit_test(test_trtc_malformed_rows),
        cmocka_unit_test(test_trtc_malformed_rows_hidden_for_q),
        cmocka_unit_test(test_trtc_malformed_cols),
        cmocka_unit_test(test_trtc_malformed_cols_pad),
        cmocka_unit_test(test_trtc_malformed_cols_pad_beyond_the_stride),
        cmocka_unit_test(test_trtc_malformed_row_stride),
        cmocka_unit_test(test_trtc_malformed_row_stride_beyond_the_file),
        cmocka_unit_test(test_trtc_malformed_norms),
        cmocka_unit_test(test_trtc_malformed_s_lo),
        cmocka_unit_test(test_trtc_malformed_s_hi),
        cmocka_unit_test(test_trtc_malformed_int8_scale),
        cmocka_unit_test(test_trtc_malformed_has_bias),
        cmocka_unit_test(test_trtc_malformed_bias),
        cmocka_unit_test(test_trtc_malformed_bp_and_bn_overlap),
        cmocka_unit_test(test_trtc_malformed_br_outside_bp_and_bn),
        cmocka_unit_test(test_trtc_every_prefix_is_refused),
        cmocka_unit_test(test_trtc_every_prefix_is_refused_inside_records),
        cmocka_unit_test(test_trtc_one_byte_more_is_refused),
        cmocka_unit_test(test_trtc_cut_at_1000_random_places),
        cmocka_unit_test(test_trtc_random_damage),
        cmocka_unit_test(test_trtc_allocates_nothing_for_false_claims),
        cmocka_unit_test(test_trtc_message_keeps_the_field_with_a_long_path),
    };
    return cmocka_run_group_tests_name("file_trtc", tests, NULL, NULL);
}
