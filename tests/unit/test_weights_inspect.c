/* weights/inspect.h: counts against those of the writer, memory against sums done by hand, the manifest's states, both
 * written forms. */
#include "weights/inspect.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/digest.h"
#include "support_trtc.h"
#include "weights/levels.h"

static char folder[] = BINARY_DIR "/inspect_XXXXXX";
static char path[sizeof folder + 16], manifest[sizeof folder + 16];

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/toy.trtc", folder);
    snprintf(manifest, sizeof manifest, "%s/MANIFEST.json", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    unlink(manifest);
    return rmdir(folder);
}

/* Remembers the calls of a progress callback. */
typedef struct steps {
    uint64_t last, total;
    int calls;
} steps;

static void on_progress(void *user, uint64_t done, uint64_t total)
{
    steps *s = user;
    assert_true(done >= s->last && done <= total);
    *s = (steps){done, total, s->calls + 1};
}

static inspect_report inspect_toy(const toy *t)
{
    toy_save(path, t->file.data, t->file.size);
    outrider_error err = {0};
    inspect_report r;
    steps s = {0};
    outrider_status status = inspect_file(path, &r, on_progress, &s, &err);
    if (status) fail_msg("%s", err.message);
    assert_int_equal(s.last, t->file.size);
    assert_int_equal(s.total, t->file.size);
    return r;
}

static void expect_counts(const toy_options *o)
{
    toy t;
    toy_write(&t, o);
    inspect_report r = inspect_toy(&t);
    assert_string_equal(r.path, path);
    assert_int_equal(r.file_bytes, t.file.size);
    assert_int_equal(r.parameters[INSPECT_FIVE], t.five_weights);
    assert_int_equal(r.five_rows, t.five_rows);
    assert_int_equal(r.zeros, t.zeros);
    assert_int_equal(r.high, t.high);
    assert_int_equal(r.one_level_rows, t.one_level_rows);
    uint64_t table = (uint64_t)o->vocab * (uint64_t)o->hidden;
    assert_int_equal(r.parameters[INSPECT_EMBEDDING], table);
    assert_int_equal(r.parameters[INSPECT_HEAD], o->tied ? 0 : table);
    uint64_t norms = (uint64_t)(o->hidden * (2 * o->n_layers + 1) + (o->arch == 3 ? 2 * o->n_layers * o->head_dim : 0));
    uint64_t biases = (uint64_t)(o->bias ? o->n_layers * (o->n_heads + 2 * o->n_kv_heads) * o->head_dim : 0);
    assert_int_equal(r.parameters[INSPECT_NORMS], norms);
    assert_int_equal(r.parameters[INSPECT_BIASES], biases);
    assert_int_equal(r.f32_bytes, 4 * (norms + biases));
    uint64_t sum = 0;
    for (int i = 0; i < INSPECT_PARTS; i++) sum += r.part_bytes[i];
    assert_int_equal(sum, r.file_bytes);
    assert_int_equal(r.part_bytes[INSPECT_LEVELS], 8 * t.five_rows);
    assert_true(r.level_error_max <= LEVELS_SPLIT_ERROR && r.level_error_mean <= r.level_error_max);
    assert_true(r.split_rows <= r.exceptional_rows &&
                (r.exceptional_rows > r.split_rows) == (r.level_error_max > LEVELS_MAX_ERROR));
    assert_int_equal(r.manifest, INSPECT_NO_MANIFEST);
    assert_string_equal(r.sha256, "");
    inspect_free(&r);
    inspect_free(&r);
    toy_free(&t);
}

static void test_inspect_counts(void **state)
{
    (void)state;
    toy_options o = toy_default;
    expect_counts(&o);
    o.tied = true;
    expect_counts(&o);
    o.arch = 1;
    o.bias = true;
    expect_counts(&o);
}

static void test_inspect_leaves_bits_after_the_last_column_out(void **state)
{
    (void)state;
    toy_options o = toy_default;
    o.junk = true;
    o.stride_extra = 3;
    for (o.hidden = 2; o.hidden <= 140; o.hidden++) expect_counts(&o);
}

/* Two layers of 300 columns: what each matrix takes in tiles of 6 rows and superblocks of 256 columns, done by hand. */
static void test_inspect_memory(void **state)
{
    (void)state;
    toy_options o = toy_default;
    o.hidden = 300;
    o.head_dim = 8;
    o.intermediate = 20;
    toy t;
    toy_write(&t, &o);
    inspect_report r = inspect_toy(&t);
    uint64_t tile2 = 2 * 512 + 6 * 8, tile1 = 512 + 6 * 8;
    /* q k v: 16 + 8 + 8 rows of 300; o: 300 of 16; gate and up: 20 + 20 of 300; down: 300 of 20. */
    uint64_t layer = 6 * tile2 + 50 * tile1 + 7 * tile2 + 50 * tile1;
    assert_int_equal(r.split_rows, 0);
    assert_int_equal(r.packed_bytes, 2 * layer);
    assert_int_equal(r.int8_bytes, 19 * (512 + 4) + 19 * 4);
    assert_int_equal(r.mapped_bytes, 19 * 300);
    assert_int_equal(r.kv_bytes_per_token, 2 * 2 * 1 * 8 * 2);
    assert_int_equal(r.scratch_bytes, 0);
    assert_int_equal(inspect_weight_bytes(&r), r.packed_bytes + r.int8_bytes + r.f32_bytes);
    inspect_free(&r);
    toy_free(&t);
    o.tied = true;
    toy_write(&t, &o);
    r = inspect_toy(&t);
    assert_int_equal(r.int8_bytes, 19 * (512 + 4));
    assert_int_equal(r.mapped_bytes, 0);
    inspect_free(&r);
    toy_free(&t);
}

static void test_inspect_exceptional_rows(void **state)
{
    (void)state;
    toy_options o = toy_default;
    toy t;
    toy_write(&t, &o);
    inspect_report plain = inspect_toy(&t);
    toy_free(&t);
    o.exceptional = true;
    toy_write(&t, &o);
    inspect_report r = inspect_toy(&t);
    toy_free(&t);
    /* Row 0 of each of the 14 matrices. */
    assert_int_equal(plain.split_rows, 0);
    assert_int_equal(r.split_rows, 14);
    assert_true(r.exceptional_rows >= 14 && r.exceptional_rows <= plain.exceptional_rows + 14);
    assert_true(r.level_error_max <= LEVELS_SPLIT_ERROR);
    /* q k v: 12 + 6 + 6 rows and 3 more go from 4 tiles to 5; gate and up: 11 + 11 and 2 stay 4; o and down: 13 and 1
     * stay 3. */
    assert_int_equal(r.packed_bytes, plain.packed_bytes + 2 * (512 + 6 * 8));
    inspect_free(&plain);
    inspect_free(&r);
}

static void test_inspect_refuses_bad_files(void **state)
{
    (void)state;
    outrider_error err = {0};
    inspect_report r;
    assert_int_equal(inspect_file(folder, &r, NULL, NULL, &err), OUTRIDER_FAILURE);
    assert_null(r.path);
    toy t;
    toy_write(&t, &toy_default);
    size_t bp = toy_at(&t, "blk.1.ffn_up.bp"), bn = toy_at(&t, "blk.1.ffn_up.bn");
    t.file.data[bp] |= 1;
    t.file.data[bn] |= 1;
    toy_save(path, t.file.data, t.file.size);
    assert_int_equal(inspect_file(path, &r, NULL, NULL, &err), OUTRIDER_BAD_FILE);
    assert_non_null(strstr(err.message, "blk.1.ffn_up planes bp, bn, row 0 column 0"));
    assert_null(r.path);
    toy_free(&t);
}

/* -- The manifest
 * ------------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static inspect_report with_manifest(const toy *t, inspect_manifest expected,
                                                                          const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    toy_save(manifest, text, (size_t)n);
    inspect_report r = inspect_toy(t);
    if (r.manifest != expected)
        fail_msg("%s: expected \"%s\", found \"%s\" (%s)", text, inspect_manifest_name(expected),
                 inspect_manifest_name(r.manifest), r.manifest_note);
    unlink(manifest);
    return r;
}

static void test_inspect_manifest(void **state)
{
    (void)state;
    toy t;
    toy_write(&t, &toy_default);
    char sha[65], upper[65], wrong[65];
    digest_of(t.file.data, t.file.size, sha);
    for (int i = 0; i < 65; i++) upper[i] = (char)(sha[i] >= 'a' ? sha[i] - 32 : sha[i]);
    memcpy(wrong, sha, sizeof wrong);
    wrong[63] = wrong[63] == '0' ? '1' : '0';
    size_t size = t.file.size;
    const char *entry = "{\"weights_container\": {\"file\": \"%s\", \"bytes\": %zu, \"sha256\": \"%s\"}}";
    inspect_report r = with_manifest(&t, INSPECT_MANIFEST_AGREES, entry, "toy.trtc", size, sha);
    assert_string_equal(r.sha256, sha);
    inspect_free(&r);
    r = with_manifest(&t, INSPECT_MANIFEST_AGREES, entry, "models/toy.trtc", size, upper);
    assert_string_equal(r.manifest_sha256, sha);
    inspect_free(&r);
    r = with_manifest(&t, INSPECT_MANIFEST_AGREES, "{\"weights_container\": {\"file\": \"toy.trtc\", \"sha256\": \"%s\"}}",
                      sha);
    inspect_free(&r);
    r = with_manifest(&t, INSPECT_MANIFEST_SIZE, entry, "toy.trtc", size + 1, sha);
    assert_int_equal(r.manifest_bytes, size + 1);
    assert_string_equal(r.sha256, "");
    inspect_free(&r);
    r = with_manifest(&t, INSPECT_MANIFEST_DIGEST, entry, "toy.trtc", size, wrong);
    assert_string_equal(r.sha256, sha);
    assert_string_equal(r.manifest_sha256, wrong);
    inspect_free(&r);
    r = with_manifest(&t, INSPECT_MANIFEST_OTHER_FILE, entry, "big.trtc", size, sha);
    assert_string_equal(r.manifest_note, "big.trtc");
    inspect_free(&r);
    toy_free(&t);
}

static void test_inspect_manifest_that_is_of_no_use(void **state)
{
    (void)state;
    toy t;
    toy_write(&t, &toy_default);
    const char *const bad[] = {
        "",
        "{",
        "[]",
        "7",
        "{}",
        "{\"weights_container\": []}",
        "{\"weights_container\": {\"file\": \"toy.trtc\"}}",
        "{\"weights_container\": {\"file\": \"toy.trtc\", \"bytes\": 1, \"sha256\": \"12\"}}",
        "{\"weights_container\": {\"file\": 5, \"bytes\": 1, \"sha256\": \"12\"}}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        inspect_report r = with_manifest(&t, INSPECT_MANIFEST_UNUSABLE, "%s", bad[i]);
        assert_true(r.manifest_note[0] != 0);
        inspect_free(&r);
    }
    toy_free(&t);
}

/* -- Written forms
 * ------------------------------------------------------------------------------------------------------ */

static void test_inspect_text(void **state)
{
    (void)state;
    toy t;
    toy_write(&t, &toy_default);
    inspect_report r = inspect_toy(&t);
    r.scratch_bytes = 1234567;
    bytes out = {0};
    assert_true(inspect_write_text(&r, &out));
    const char *const parts[] = {"TRTC version 4, qwen3 topology, untied head",
                                 "2 layers, hidden 13, intermediate 11, heads 2/1 of 6 (rotary 4)",
                                 "five-value",
                                 "head (int8)",
                                 "planes",
                                 "exceptional rows",
                                 "1,234,567",
                                 "KV cache of 64 tokens",
                                 "MANIFEST.json\n  none"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (!strstr(out.data, parts[i])) fail_msg("\"%s\" is missing in:\n%s", parts[i], out.data);
    }
    bytes_free(&out);
    inspect_free(&r);
    toy_free(&t);
}

static void test_inspect_json(void **state)
{
    (void)state;
    toy t;
    toy_write(&t, &toy_default);
    inspect_report r = inspect_toy(&t);
    r.path[strlen(r.path) - 1] = (char)0xff; /* a path need not be UTF-8; JSON must */
    bytes out = {0};
    assert_true(inspect_write_json(&r, &out));
    json_error_t why;
    json_t *root = json_loadb(out.data, out.size, 0, &why);
    if (!root) fail_msg("%s in %s", why.text, out.data);
    json_int_t value = 0, planes = 0;
    double zero_share = 0;
    const char *family = NULL;
    assert_int_equal(json_unpack(root, "{s:I, s:{s:s}, s:{s:I}, s:{s:f}}", "file_bytes", &value, "header", "family", &family,
                                 "bytes", "planes", &planes, "five_value", "zero_share", &zero_share),
                     0);
    assert_int_equal(value, t.file.size);
    assert_string_equal(family, "qwen3");
    assert_int_equal(planes, r.part_bytes[INSPECT_PLANES]);
    assert_true(zero_share > 0.3 && zero_share < 0.8);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(root, "memory"), "packed_bytes")), r.packed_bytes);
    assert_string_equal(json_string_value(json_object_get(json_object_get(root, "manifest"), "state")), "none");
    assert_int_equal(out.data[out.size - 1], '\n');
    json_decref(root);
    bytes_free(&out);
    inspect_free(&r);
    toy_free(&t);
}

/* config.h: what a header of either family becomes. */
static void test_config_from_trtc(void **state)
{
    (void)state;
    const trtc_header h = {.version = 4,
                           .arch = 3,
                           .n_layers = 2,
                           .hidden = 13,
                           .n_heads = 4,
                           .n_kv_heads = 2,
                           .head_dim = 6,
                           .rotary_dims = 4,
                           .intermediate = 11,
                           .vocab = 19,
                           .max_positions = 64,
                           .eps = 1e-6f,
                           .theta = 1e4f,
                           .eok = 1};
    model_config c = config_from_trtc(&h);
    assert_true(c.family == MODEL_QWEN3 && c.tied && c.has_qk_norm && !c.has_qkv_bias);
    assert_true(c.n_layers == 2 && c.hidden == 13 && c.n_heads == 4 && c.n_kv_heads == 2 && c.head_dim == 6 &&
                c.rotary_dims == 4);
    assert_true(c.intermediate == 11 && c.vocab == 19 && c.max_positions == 64 && c.eps == 1e-6f && c.theta == 1e4f);
    trtc_header q = h;
    q.arch = 1;
    q.eok = 2;
    c = config_from_trtc(&q);
    assert_true(c.family == MODEL_QWEN2 && !c.tied && !c.has_qk_norm && c.has_qkv_bias);
    assert_string_equal(model_family_name(MODEL_QWEN2), "qwen2");
    assert_string_equal(model_family_name(MODEL_QWEN3), "qwen3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inspect_counts),
        cmocka_unit_test(test_inspect_leaves_bits_after_the_last_column_out),
        cmocka_unit_test(test_inspect_memory),
        cmocka_unit_test(test_inspect_exceptional_rows),
        cmocka_unit_test(test_inspect_refuses_bad_files),
        cmocka_unit_test(test_inspect_manifest),
        cmocka_unit_test(test_inspect_manifest_that_is_of_no_use),
        cmocka_unit_test(test_inspect_text),
        cmocka_unit_test(test_inspect_json),
        cmocka_unit_test(test_config_from_trtc),
    };
    return cmocka_run_group_tests_name("weights_inspect", tests, set_up, tear_down);
}
