/* Faults met elsewhere, as cases: ties, values that are not finite, sessions beside each other, pairs that do not fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>
#include <pthread.h>

#include "base/bytes.h"
#include "check.h"
#include "engine/engine.h"
#include "file/trtc.h"

#define TOY_T       BINARY_DIR "/toy_t.trtc"
#define TOY_T_DRAFT BINARY_DIR "/toy_t_draft.trtc"
#define DEMO        SOURCE_DIR "/models/demo"

enum { VOCAB = 300 };

static const uint32_t PROMPT[] = {1, 2, 3, 77};

static void write_file(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

/* The toy container as bytes, and where a tensor's parts stand in them. */
static bytes toy;
static trtc_file layout;

static void open_toy(void)
{
    outrider_error err;
    assert_true(bytes_read_file(&toy, TOY_T));
    check_ok(trtc_open(&layout, TOY_T, &err), &err);
}

static void close_toy(void)
{
    trtc_close(&layout);
    bytes_free(&toy);
}

static char *at(const void *in_map) { return toy.data + ((const uint8_t *)in_map - layout.map.data); }

/* Two identical rows of the head that win: the lower id on every path, also when the rows fall to different threads. */
static void test_tie_goes_to_the_lowest_id(void **state)
{
    (void)state;
    outrider_error err;
    outrider_model *model = check_open(TOY_T, NULL, false, "ref", 1);
    outrider_session *s = check_session(model, OUTRIDER_ROLE_PLAIN, false);
    uint32_t best;
    check_ok(outrider_session_eval(s, PROMPT, 4, &err), &err);
    check_ok(outrider_session_argmax(s, 3, &best, &err), &err);
    assert_true(outrider_session_logits(s, 3)[best] > 0);
    outrider_session_close(s);
    outrider_model_close(model);

    open_toy();
    const tensor *head = trtc_find(&layout, "output");
    assert_non_null(head);
    float scale = 2 * trtc_f32(head->scale, best);
    static const size_t twins[] = {5, 9, 290};
    for (size_t i = 0; i < 3; i++) {
        memcpy(at(head->weights + twins[i] * head->row_stride), head->weights + best * head->row_stride, (size_t)head->cols);
        memcpy(at(head->scale + 4 * twins[i]), &scale, 4);
    }
    const char *path = BINARY_DIR "/twins.trtc";
    write_file(path, toy.data, toy.size);
    close_toy();

    size_t n;
    const char *const *masks = check_masks(&n);
    for (size_t m = 0; m < n; m++)
        for (int threads = 1; threads <= 5; threads++) {
            model = check_open(path, NULL, false, masks[m], threads);
            s = check_session(model, OUTRIDER_ROLE_PLAIN, false);
            check_ok(outrider_session_eval(s, PROMPT, 4, &err), &err);
            check_ok(outrider_session_argmax(s, 3, &best, &err), &err);
            assert_int_equal(best, 5);
            const float *logits = outrider_session_logits(s, 3);
            assert_memory_equal(&logits[5], &logits[9], sizeof *logits);
            assert_memory_equal(&logits[5], &logits[290], sizeof *logits);
            outrider_session_close(s);
            outrider_model_close(model);
        }
    unlink(path);
}

/* A finite scale so large that a value overflows: an error that says where, never a token. */
static void expect_not_finite(const char *tensor_name, bool int8, const char *word)
{
    open_toy();
    const tensor *t = trtc_find(&layout, tensor_name);
    assert_non_null(t);
    const float huge = 3e38f;
    for (size_t row = 0; row < (size_t)t->rows; row++) {
        if (int8)
            memcpy(at(t->scale + 4 * row), &huge, 4);
        else
            memcpy(at(t->s_lo + 4 * row), &huge, 4), memcpy(at(t->s_hi + 4 * row), &huge, 4);
    }
    const char *path = BINARY_DIR "/huge.trtc";
    write_file(path, toy.data, toy.size);
    close_toy();
    size_t n;
    const char *const *masks = check_masks(&n);
    for (size_t m = 0; m < n; m++) {
        outrider_model *model = check_open(path, NULL, false, masks[m], 2);
        outrider_session *s = check_session(model, OUTRIDER_ROLE_PLAIN, false);
        outrider_error err = {0};
        outrider_generate_options o = OUTRIDER_GENERATE_OPTIONS_INIT;
        o.max_tokens = 4;
        check_ok(outrider_session_push_tokens(s, PROMPT, 4, &err), &err);
        assert_int_equal(outrider_session_generate(s, &o, NULL, NULL, NULL, &err), OUTRIDER_FAILURE);
        assert_non_null(strstr(err.message, "not finite"));
        assert_non_null(strstr(err.message, word));
        size_t left;
        outrider_session_tokens(s, &left);
        assert_int_equal(left, 4);
        outrider_session_close(s);
        outrider_model_close(model);
    }
    unlink(path);
}

static void test_not_finite_names_the_place(void **state)
{
    (void)state;
    expect_not_finite("blk.0.ffn_up", false, "layer 0");
    expect_not_finite("blk.1.attn_v", false, "layer 1");
    expect_not_finite("output", true, "logit");
}

/* One digest whatever the number of threads of the pool and of sessions that run beside each other. */
typedef struct neighbour {
    outrider_model *model;
    char ids[65], logits[65];
    outrider_status status;
    outrider_error err;
} neighbour;

static void *run_session(void *arg)
{
    neighbour *w = arg;
    outrider_session_options so = OUTRIDER_SESSION_OPTIONS_INIT;
    so.digests = true;
    outrider_session *s;
    w->status = outrider_session_open(w->model, &so, &s, &w->err);
    if (w->status) return NULL;
    outrider_generate_options o = OUTRIDER_GENERATE_OPTIONS_INIT;
    o.max_tokens = 40;
    o.draft_length = OUTRIDER_DRAFT_RANDOM;
    w->status = outrider_session_push_tokens(s, PROMPT, 4, &w->err);
    if (!w->status) w->status = outrider_session_generate(s, &o, NULL, NULL, NULL, &w->err);
    if (!w->status) w->status = outrider_session_digests(s, w->ids, w->logits, &w->err);
    outrider_session_close(s);
    return NULL;
}

static void test_sessions_beside_each_other(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 3, 5, 8};
    char ids[65] = "", logits[65] = "";
    size_t n;
    const char *const *masks = check_masks(&n);
    for (size_t m = 0; m < n; m++)
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++)
            for (int sessions = 1; sessions <= 4; sessions += 3) {
                neighbour all[4];
                pthread_t running[4];
                outrider_model *model = check_open(TOY_T, TOY_T_DRAFT, false, masks[m], threads[t]);
                for (int i = 0; i < sessions; i++) {
                    all[i] = (neighbour){.model = model};
                    assert_int_equal(pthread_create(&running[i], NULL, run_session, &all[i]), 0);
                }
                for (int i = 0; i < sessions; i++) {
                    pthread_join(running[i], NULL);
                    check_ok(all[i].status, &all[i].err);
                    if (!ids[0]) {
                        strcpy(ids, all[i].ids);
                        strcpy(logits, all[i].logits);
                    }
                    assert_string_equal(all[i].ids, ids);
                    assert_string_equal(all[i].logits, logits);
                }
                outrider_model_close(model);
            }
}

/* A draft folder with the demo's draft and a tokenizer of our making. */
static void make_draft_folder(const char *dir, const json_t *tokenizer)
{
    bytes draft = {0}, path = {0};
    mkdir(dir, 0700);
    assert_true(bytes_read_file(&draft, DEMO "/draft.trtc"));
    assert_true(bytes_add_format(&path, "%s/draft.trtc", dir));
    write_file(path.data, draft.data, draft.size);
    path.size = 0;
    assert_true(bytes_add_format(&path, "%s/tokenizer.json", dir));
    assert_int_equal(json_dump_file(tokenizer, path.data, 0), 0);
    bytes_free(&path);
    bytes_free(&draft);
}

static void test_pairs_that_do_not_fit(void **state)
{
    (void)state;
    outrider_model_options o = OUTRIDER_MODEL_OPTIONS_INIT;
    outrider_model *model = NULL;
    outrider_error err = {0};
    json_error_t problem;
    json_t *tokenizer = json_load_file(DEMO "/tokenizer.json", 0, &problem);
    assert_non_null(tokenizer);
    const char *dir = BINARY_DIR "/other-draft";
    o.draft_path = dir;
    make_draft_folder(dir, tokenizer);
    check_ok(outrider_model_open(DEMO "/verifier.trtc", &o, &model, &err), &err);
    outrider_model_close(model);

    json_t *vocab = json_object_get(json_object_get(tokenizer, "model"), "vocab");
    const json_int_t a = json_integer_value(json_object_get(vocab, "q")), z = json_integer_value(json_object_get(vocab, "z"));
    json_object_set_new(vocab, "q", json_integer(z));
    json_object_set_new(vocab, "z", json_integer(a));
    make_draft_folder(dir, tokenizer);
    json_decref(tokenizer);
    assert_int_equal(outrider_model_open(DEMO "/verifier.trtc", &o, &model, &err), OUTRIDER_USAGE);
    char number[32];
    snprintf(number, sizeof number, "%d", (int)(a < z ? a : z));
    assert_non_null(strstr(err.message, number));

    /* Another vocabulary altogether, with and without a tokenizer to compare. */
    o.draft_path = TOY_T;
    assert_int_equal(outrider_model_open(DEMO "/verifier.trtc", &o, &model, &err), OUTRIDER_USAGE);
    assert_non_null(strstr(err.message, "vocab"));
    o.no_tokenizer = true;
    assert_int_equal(outrider_model_open(DEMO "/verifier.trtc", &o, &model, &err), OUTRIDER_USAGE);
}

/* Bytes that are not UTF-8 go in, and out again, unchanged; text that streams is valid UTF-8. */
static void test_bytes_round_trip(void **state)
{
    (void)state;
    outrider_model *model = check_open(DEMO, NULL, true, NULL, 1);
    static const char raw[] = "a\xE6\xAD\xFF b\xED\xA0\x80 \xF0\x9F\x98\x80";
    uint32_t *ids;
    size_t n, size;
    char *text;
    outrider_error err;
    check_ok(outrider_tokenize(model, raw, sizeof raw - 1, 0, &ids, &n, &err), &err);
    check_ok(outrider_detokenize(model, ids, n, 0, &text, &size, &err), &err);
    assert_int_equal(size, sizeof raw - 1);
    assert_memory_equal(text, raw, size);
    outrider_free(ids);
    outrider_free(text);
    static const uint32_t beyond[] = {5, 4096};
    assert_int_equal(outrider_detokenize(model, beyond, 2, 0, &text, &size, &err), OUTRIDER_USAGE);
    assert_non_null(strstr(err.message, "4096"));
    outrider_model_close(model);
}

/* A draft's head that leaves ids out: it chooses what the whole head would choose among the rest, and the pair's stream does not
 * change. The part is set by hand here, for a toy's vocabulary is too small to be cut. */
static void test_part_of_the_draft_head(void **state)
{
    (void)state;
    static const forward_head parts[] = {{100, 290}, {1, 299}, {250, VOCAB}, {VOCAB, VOCAB}};
    outrider_error err = {0};
    outrider_model *model = check_open(TOY_T, TOY_T_DRAFT, false, NULL, 2);
    outrider_session_options so = OUTRIDER_SESSION_OPTIONS_INIT;
    outrider_session *plain = check_session(model, OUTRIDER_ROLE_PLAIN, false),
                     *whole = check_session(model, OUTRIDER_ROLE_DRAFT, false);
    outrider_generate_options o = OUTRIDER_GENERATE_OPTIONS_INIT;
    o.max_tokens = 60;
    check_ok(outrider_session_push_tokens(plain, PROMPT, 4, &err), &err);
    check_ok(outrider_session_generate(plain, &o, NULL, NULL, NULL, &err), &err);
    size_t n, m;
    const uint32_t *expected = outrider_session_tokens(plain, &n);
    check_ok(outrider_session_eval(whole, expected, 17, &err), &err);
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
        model->draft_head = parts[p];
        outrider_session *s;
        so.role = OUTRIDER_ROLE_DRAFT;
        so.draft_head = true;
        check_ok(outrider_session_open(model, &so, &s, &err), &err);
        check_ok(outrider_session_eval(s, expected, 17, &err), &err);
        for (size_t row = 0; row < 17; row++) {
            const float *logits = outrider_session_logits(whole, row);
            uint32_t best = 0, id;
            for (uint32_t i = 1; i < VOCAB; i++)
                if ((i < parts[p].low_end || i >= parts[p].high_begin) && logits[i] > logits[best]) best = i;
            check_ok(outrider_session_argmax(s, row, &id, &err), &err);
            assert_int_equal(id, best);
        }
        outrider_session_close(s);
        s = check_session(model, OUTRIDER_ROLE_PAIR, false);
        o.draft_length = 4;
        check_ok(outrider_session_push_tokens(s, PROMPT, 4, &err), &err);
        check_ok(outrider_session_generate(s, &o, NULL, NULL, NULL, &err), &err);
        const uint32_t *got = outrider_session_tokens(s, &m);
        assert_int_equal(m, n);
        assert_memory_equal(got, expected, n * sizeof *got);
        outrider_session_close(s);
    }
    outrider_session_close(plain);
    outrider_session_close(whole);
    outrider_model_close(model);
}

/* The plan bounds what is taken, and one byte less is refused with the sum and its parts. */
static void test_memory_plan(void **state)
{
    (void)state;
    outrider_model_options o = OUTRIDER_MODEL_OPTIONS_INIT;
    outrider_memory_plan plan;
    outrider_model *model;
    outrider_error err;
    check_ok(outrider_model_plan(DEMO, &o, &plan, &err), &err);
    assert_int_equal(plan.context, 4096);
    assert_int_equal(plan.kv[0], 4096 * 3072);
    assert_int_equal(plan.total, plan.weights[0] + plan.weights[1] + plan.kv[0] + plan.kv[1] + plan.scratch[0] +
                                     plan.scratch[1] + plan.text + plan.process);
    o.memory_bytes = plan.total;
    check_ok(outrider_model_open(DEMO, &o, &model, &err), &err);
    for (int part = 0; part < 2; part++) {
        outrider_model_info info;
        check_ok(outrider_model_get_info(model, (outrider_part)part, &info, &err), &err);
        assert_int_equal(info.weight_bytes, plan.weights[part]);
    }
    outrider_model_close(model);
    o.memory_bytes = plan.total - 1;
    assert_int_equal(outrider_model_open(DEMO, &o, &model, &err), OUTRIDER_NO_MEMORY);
    char sum[32];
    snprintf(sum, sizeof sum, "%llu", (unsigned long long)plan.total);
    assert_non_null(strstr(err.message, sum));
    o.context = OUTRIDER_CONTEXT_AUTO;
    check_ok(outrider_model_plan(DEMO, &o, &plan, &err), &err);
    assert_true(plan.context < 4096 && plan.context >= 2048 && plan.total <= o.memory_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tie_goes_to_the_lowest_id),  cmocka_unit_test(test_not_finite_names_the_place),
        cmocka_unit_test(test_sessions_beside_each_other), cmocka_unit_test(test_pairs_that_do_not_fit),
        cmocka_unit_test(test_bytes_round_trip),           cmocka_unit_test(test_memory_plan),
        cmocka_unit_test(test_part_of_the_draft_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
