/* Tokenizer: known ids, hostile texts, refused files, end ids. The comparison with the reference is
 * tests/text/test_reference.py. */
#include "text/tokenizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "text/ends.h"

static tokenizer *qwen;
static char folder[] = "/tmp/outrider-tokenizer-XXXXXX";

/* -- A small tokenizer ------------------------------------------------------------------------------------------- */

#define ADDED(id, content, special)                                                    \
    "{\"id\":" #id ",\"content\":\"" content                                           \
    "\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false," \
    "\"special\":" #special "}"

/* A byte's character in the byte alphabet, as an escape of JSON. */
static unsigned letter_of(int byte)
{
    unsigned next = 0x100;
    for (int b = 0; b < 256; b++) {
        int itself = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        unsigned code = itself ? (unsigned)b : next++;
        if (b == byte) return code;
    }
    return 0;
}

/* The small tokenizer.json: byte b is id b, then some merges and added tokens. Each `from` in it becomes `to`. */
static bytes small_json(const char *from, const char *to)
{
    bytes all = {0}, out = {0};
    bytes_add_text(&all, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[");
    bytes_add_text(&all, ADDED(262, "<end>", true) "," ADDED(263, "<t>", false) "," ADDED(264, "<en", true));
    bytes_add_text(&all, "," ADDED(265, "<\\u4e2d>", false) "],\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":{");
    bytes_add_text(&all, "\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":");
    bytes_add_text(&all, "\"\\\\p{L}+|\\\\s+(?!\\\\S)|\\\\s+|\\\\p{N}\"},\"behavior\":\"Isolated\",\"invert\":false},");
    bytes_add_text(&all, "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":false,\"use_regex\":false}]},");
    bytes_add_text(&all, "\"post_processor\":null,\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\",");
    bytes_add_text(&all, "\"dropout\":null,\"unk_token\":null,\"continuing_subword_prefix\":\"\",\"end_of_word_suffix\":\"\",");
    bytes_add_text(&all, "\"fuse_unk\":false,\"byte_fallback\":false,\"ignore_merges\":false,\"vocab\":{");
    for (int b = 0; b < 256; b++) bytes_add_format(&all, "\"\\u%04x\":%d,", letter_of(b), b);
    bytes_add_text(&all, "\"ab\":256,\"bc\":257,\"abc\":258,\"aa\":259,\"aaa\":260,\"xyz\":261,\"<\\u4e2d>\":265},"
                         "\"merges\":[\"b c\",\"a b\",[\"a\",\"bc\"],\"a a\",\"aa a\"]}}");
    const char *at = all.data, *hit;
    while (from && (hit = strstr(at, from))) {
        bytes_add(&out, at, (size_t)(hit - at));
        bytes_add_text(&out, to);
        at = hit + strlen(from);
    }
    bytes_add_text(&out, at);
    bytes_free(&all);
    return out;
}

static tokenizer *small_with(const char *from, const char *to)
{
    outrider_error err = {0};
    tokenizer *t = NULL;
    bytes json = small_json(from, to);
    if (tokenizer_open_memory(&t, json.data, json.size, "small", &err)) fail_msg("%s", err.message);
    bytes_free(&json);
    return t;
}

/* -- Helpers ----------------------------------------------------------------------------------------------------- */

static ids encoded(const tokenizer *t, const char *text, size_t size, bool specials)
{
    ids out = {0};
    outrider_error err = {0};
    if (tokenizer_encode(t, text, size, specials, &out, &err)) fail_msg("%s", err.message);
    return out;
}

static void check_ids(ids found, const uint32_t *expected, size_t n)
{
    if (n != found.size || (n && memcmp(found.data, expected, n * sizeof *expected))) {
        for (size_t i = 0; i < found.size; i++) print_message(" %u", found.data[i]);
        fail_msg("other ids than expected");
    }
    ids_free(&found);
}

#define CHECK(t, text, specials, ...)                                                                                     \
    do {                                                                                                                  \
        const uint32_t expected_ids[] = {__VA_ARGS__};                                                                    \
        check_ids(encoded(t, text, sizeof text - 1, specials), expected_ids, sizeof expected_ids / sizeof *expected_ids); \
    } while (0)

static void check_round_trip(const tokenizer *t, const char *text, size_t size)
{
    ids list = encoded(t, text, size, true);
    bytes back = {0};
    for (size_t i = 0; i < list.size; i++) {
        size_t n;
        const char *token = tokenizer_bytes(t, list.data[i], &n);
        assert_true(n > 0 && token[n] == 0);
        bytes_add(&back, token, n);
    }
    assert_int_equal(back.size, size);
    if (size) assert_memory_equal(back.data, text, size);
    bytes_free(&back);
    ids_free(&list);
}

/* -- Known values ------------------------------------------------------------------------------------------------ */

static void test_known_ids(void **state)
{
    (void)state;
    CHECK(qwen, "->", true, 405);
    CHECK(qwen, "2026", true, 17, 15, 17, 21);
    CHECK(qwen, "<|im_end|>", true, 151645);
    CHECK(qwen, "<|im_end|>", false, 27, 91, 318, 6213, 91, 29);
    CHECK(qwen, "<think>", false, 151667);
    assert_int_equal(encoded(qwen, "", 0, true).size, 0);
    CHECK(qwen, "e\xcc\x81", true, 963);
    CHECK(qwen, "\xc3\xa9", true, 963);
}

static void test_tokens(void **state)
{
    (void)state;
    uint32_t id = 0;
    size_t n;
    assert_int_equal(tokenizer_size(qwen), 151669);
    assert_true(tokenizer_find(qwen, "<|im_end|>", 10, &id) && id == 151645 && tokenizer_is_special(qwen, id));
    assert_true(tokenizer_find(qwen, "<think>", 7, &id) && id == 151667 && !tokenizer_is_special(qwen, id));
    assert_true(tokenizer_find(qwen, "->", 2, &id) && id == 405 && !tokenizer_is_special(qwen, id));
    assert_true(tokenizer_find(qwen, " world", 6, &id) && id == 1879);
    assert_false(tokenizer_find(qwen, "<|im_en", 7, &id));
    assert_string_equal(tokenizer_bytes(qwen, 151645, &n), "<|im_end|>");
    assert_int_equal(n, 10);
    assert_string_equal(tokenizer_bytes(qwen, 151900, &n), "");
    assert_int_equal(n, 0);
    assert_string_equal(tokenizer_bytes(qwen, UINT32_MAX, &n), "");
    assert_false(tokenizer_is_special(qwen, UINT32_MAX));
}

static void test_bytes_round_trip(void **state)
{
    (void)state;
    static const char *const texts[] = {"\xe6\xad",         "\xff",         "\xed\xa0\x80", "a\xff z", "\xc0\x80",
                                        "\xf4\x90\x80\x80", "\xf0\x9f\x98", "caf\xc3",      "\x80",    "ok \xe6\xad\xa3 \xe6"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) check_round_trip(qwen, texts[i], strlen(texts[i]));
    check_round_trip(qwen, "\0a\0\0", 4);
    char all[256];
    for (int i = 0; i < 256; i++) all[i] = (char)i;
    check_round_trip(qwen, all, sizeof all);
    /* What is valid is tokenised as if the text ended at the byte that is not. */
    ids whole = encoded(qwen, "a  \xff", 4, true), part = encoded(qwen, "a  ", 3, true);
    assert_int_equal(whole.size, part.size + 1);
    assert_memory_equal(whole.data, part.data, part.size * sizeof *part.data);
    ids_free(&whole);
    ids_free(&part);
}

static void test_a_million_bytes(void **state)
{
    (void)state;
    static const char *const parts[] = {"a", " ",       "7",    "\n", " \n",         "\r\n", "ab", "\xcc\x81\xcc\x96",
                                        "<", "<|im_en", "\xff", "=",  "\xe4\xb8\xad"};
    const size_t size = 1 << 20;
    char *text = malloc(size);
    assert_non_null(text);
    alarm(120);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t n = strlen(parts[i]), used = size / n * n;
        for (size_t k = 0; k < used; k += n) memcpy(text + k, parts[i], n);
        if (strcmp(parts[i], "\xcc\x81\xcc\x96"))
            check_round_trip(qwen, text, used);
        else
            ids_free(&(ids[]){encoded(qwen, text, used, true)}[0]);
    }
    alarm(0);
    free(text);
}

/* -- The small tokenizer ----------------------------------------------------------------------------------------- */

static void test_merges_by_rank(void **state)
{
    (void)state;
    tokenizer *t = small_with(NULL, NULL);
    CHECK(t, "abc", true, 258); /* b c comes first, then a bc */
    CHECK(t, "ab", true, 256);
    CHECK(t, "aaaa", true, 259, 259);
    CHECK(t, "aaaaa", true, 259, 260);
    CHECK(t, "xyz", true, 'x', 'y', 'z');
    CHECK(t, "aabcab1", true, 'a', 258, 256, '1');
    char many[401];
    uint32_t expected[200];
    memset(many, 'a', sizeof many);
    for (int i = 0; i < 199; i++) expected[i] = 259;
    expected[199] = 260;
    check_ids(encoded(t, many, sizeof many, true), expected, 200);
    tokenizer_close(t);
    t = small_with("\"ignore_merges\":false", "\"ignore_merges\":true");
    CHECK(t, "xyz", true, 261);
    CHECK(t, "xyzx", true, 'x', 'y', 'z', 'x');
    tokenizer_close(t);
    t = small_with("\"b c\"", "[\"b\", \"c\"]");
    CHECK(t, "abc", true, 258);
    tokenizer_close(t);
}

static void test_added_tokens(void **state)
{
    (void)state;
    tokenizer *t = small_with(NULL, NULL);
    CHECK(t, "<end>", true, 262);
    CHECK(t, "<en<end><t>", true, 264, 262, 263); /* the longest counts */
    CHECK(t, "<end>", false, '<', 'e', 'n', 'd', '>');
    CHECK(t, "x<t>", false, 'x', 263);
    CHECK(t, "<<t", true, '<', '<', 't');
    tokenizer_close(t);
}

static void check_guarded(const tokenizer *t, const text_range *guarded, size_t n, const uint32_t *expected, size_t n_expected)
{
    ids out = {0};
    outrider_error err = {0};
    assert_int_equal(tokenizer_encode_guarded(t, "<end><t><end>", 13, guarded, n, &out, &err), OUTRIDER_OK);
    check_ids(out, expected, n_expected);
}

static void test_guarded_ranges(void **state)
{
    (void)state;
    tokenizer *t = small_with(NULL, NULL);
    check_guarded(t, NULL, 0, (uint32_t[]){262, 263, 262}, 3);
    check_guarded(t, (text_range[]){{5, 8}}, 1, (uint32_t[]){262, 263, 262}, 3);
    check_guarded(t, (text_range[]){{0, 5}}, 1, (uint32_t[]){'<', 'e', 'n', 'd', '>', 263, 262}, 7);
    check_guarded(t, (text_range[]){{0, 1}, {12, 13}}, 2, (uint32_t[]){'<', 'e', 'n', 'd', '>', 263, 264, 'd', '>'}, 9);
    check_guarded(t, (text_range[]){{4, 9}}, 1, (uint32_t[]){264, 'd', '>', 263, '<', 'e', 'n', 'd', '>'}, 9);
    check_guarded(t, (text_range[]){{0, 0}, {2, 2}, {13, 13}}, 3, (uint32_t[]){262, 263, 262}, 3);
    tokenizer_close(t);
}

/* -- Two tokenizers ---------------------------------------------------------------------------------------------- */

static outrider_status same_with(const char *from, const char *to, outrider_error *err)
{
    tokenizer *a = small_with(NULL, NULL), *b = small_with(from, to);
    outrider_status s = tokenizer_same(a, b, err);
    assert_int_equal(tokenizer_same(b, a, NULL), s);
    tokenizer_close(a);
    tokenizer_close(b);
    return s;
}

static void test_same(void **state)
{
    (void)state;
    outrider_error err = {0};
    assert_int_equal(same_with(NULL, NULL, &err), OUTRIDER_OK);
    assert_int_equal(same_with("\"aa\":259,\"aaa\":260", "\"aaa\":259,\"aa\":260", &err), OUTRIDER_USAGE);
    assert_non_null(strstr(err.message, "259"));
    assert_non_null(strstr(err.message, "\"aa\""));
    assert_non_null(strstr(err.message, "\"aaa\""));
    assert_int_equal(same_with(ADDED(263, "<t>", false), ADDED(263, "<t>", true), &err), OUTRIDER_USAGE);
    assert_non_null(strstr(err.message, "id 263 is added token \"<t>\" in the verifier, special token \"<t>\" in the draft"));
    assert_int_equal(same_with("\"xyz\":261", "\"xy\\u0143\":261", &err), OUTRIDER_USAGE);
    assert_non_null(strstr(err.message, "\"xy\\xad\""));
    assert_int_equal(same_with("," ADDED(264, "<en", true), "", &err), OUTRIDER_USAGE);
    assert_non_null(strstr(err.message, "id 264 is special token \"<en\" in the verifier, no token in the draft"));
}

/* -- Refused files ----------------------------------------------------------------------------------------------- */

typedef struct refusal {
    const char *from, *to, *expected; /* expected: a part of the message */
} refusal;

static const refusal refusals[] = {
    {"\"normalizer\":{\"type\":\"NFC\"}", "\"normalizer\":{\"type\":\"NFKC\"}",
     "normalizer.type: expected \"NFC\", found \"NFKC\""},
    {"\"normalizer\":{\"type\":\"NFC\"}", "\"normalizer\":[]", "normalizer: expected an object of type NFC, found []"},
    {"\"type\":\"Sequence\"", "\"type\":\"Metaspace\"", "pre_tokenizer.type: expected \"Sequence\", found \"Metaspace\""},
    {"\"type\":\"Split\"", "\"type\":\"Digits\"", "pre_tokenizer.pretokenizers[0].type: expected \"Split\", found \"Digits\""},
    {"\"Regex\":", "\"String\":", "pre_tokenizer.pretokenizers[0].pattern: expected"},
    {"\"Isolated\"", "\"Removed\"", "pre_tokenizer.pretokenizers[0].behavior: expected \"Isolated\", found \"Removed\""},
    {"\"invert\":false", "\"invert\":true", "pre_tokenizer.pretokenizers[0].invert: expected false, found true"},
    {"\"\\\\p{L}+|", "\"(|", "pre_tokenizer.pretokenizers[0].pattern.Regex: expected a regular expression"},
    {"\"\\\\p{L}+|", "\"\\\\w+|", "found \"\\w+|\\s+(\" at byte 0"},
    {"\"\\\\p{L}+|", "\"[a&&b]|", "expected no && in a class"},
    {"\"\\\\p{L}+|", "\"[a[b]]|", "expected no class inside a class"},
    {"\"\\\\p{L}+|", "\"a{1,3}+|", "expected no {,m} and no {n,m}+"},
    {"\"\\\\p{L}+|", "\"[\\\\S]|", "expected only the escapes"},
    {"\"add_prefix_space\":false", "\"add_prefix_space\":true",
     "pre_tokenizer.pretokenizers[1].add_prefix_space: expected false, found true"},
    {",\"use_regex\":false", "", "pre_tokenizer.pretokenizers[1].use_regex: expected false, found nothing"},
    {"\"post_processor\":null", "\"post_processor\":{\"type\":\"TemplateProcessing\"}",
     "post_processor.type: expected \"ByteLevel\""},
    {"\"decoder\":{\"type\":\"ByteLevel\"}", "\"decoder\":null", "decoder: expected an object of type ByteLevel, found null"},
    {"\"type\":\"BPE\"", "\"type\":\"Unigram\"", "model.type: expected \"BPE\", found \"Unigram\""},
    {"\"dropout\":null", "\"dropout\":0.1", "model.dropout: expected null, found 0.1"},
    {"\"unk_token\":null", "\"unk_token\":\"<unk>\"", "model.unk_token: expected null, found \"<unk>\""},
    {"\"continuing_subword_prefix\":\"\"", "\"continuing_subword_prefix\":\"##\"",
     "model.continuing_subword_prefix: expected null"},
    {"\"end_of_word_suffix\":\"\"", "\"end_of_word_suffix\":\"</w>\"",
     "model.end_of_word_suffix: expected null, found \"</w>\""},
    {"\"fuse_unk\":false", "\"fuse_unk\":true", "model.fuse_unk: expected false, found true"},
    {"\"byte_fallback\":false", "\"byte_fallback\":true", "model.byte_fallback: expected false, found true"},
    {"\"ignore_merges\":false", "\"ignore_merges\":1", "model.ignore_merges: expected true or false, found 1"},
    {"\"single_word\":false", "\"single_word\":true", "added_tokens[0].single_word: expected false, found true"},
    {"\"lstrip\":false", "\"lstrip\":true", "added_tokens[0].lstrip: expected false, found true"},
    {"\"rstrip\":false", "\"rstrip\":true", "added_tokens[0].rstrip: expected false, found true"},
    {"\"normalized\":false", "\"normalized\":true", "added_tokens[0].normalized: expected false, found true"},
    {"\"special\":true", "\"special\":\"yes\"", "added_tokens[0].special: expected true or false, found \"yes\""},
    {"\"id\":263", "\"id\":-1", "added_tokens[1].id: expected an id from 0 to 4194303, found -1"},
    {"\"id\":263", "\"id\":4194304", "added_tokens[1].id: expected an id from 0 to 4194303, found 4194304"},
    {"\"id\":263", "\"id\":\"263\"", "added_tokens[1].id: expected an id"},
    {"\"id\":263", "\"id\":262", "added_tokens[1].id: expected an id that no other token has, found 262"},
    {"\"id\":263", "\"id\":256", "added_tokens[1].id: expected an id that no other token has, found 256"},
    {"\"<\\u4e2d>\":265", "\"<\\u4e2e>\":265", "added_tokens[3].id: expected an id that no other token has, found 265"},
    {"\"content\":\"<t>\"", "\"content\":\"\"", "added_tokens[1].content: expected text"},
    {"\"content\":\"<t>\"", "\"content\":\"<end>\"", "added_tokens: expected each content once"},
    {"\"content\":\"<t>\"", "\"content\":\"xyz\"",
     "added_tokens[1].id: expected the id that the vocabulary has for this content, found 263"},
    {"\"added_tokens\":[", "\"added_tokens\":[7,", "added_tokens[0].id: expected an id from 0 to 4194303, found nothing"},
    {"\"vocab\":{", "\"vocab\":[", "model.vocab: expected"},
    {"\"vocab\":{", "\"words\":{", "model.vocab: expected an object of ids, found nothing"},
    {"\"merges\":", "\"merge\":", "model.merges: expected an array, found nothing"},
    {"\"xyz\":261", "\"xyz\":4194304", "model.vocab: expected an id from 0 to 4194303, found 4194304"},
    {"\"xyz\":261", "\"xyz\":-1", "model.vocab: expected an id"},
    {"\"xyz\":261", "\"xyz\":0261", "model.vocab: expected an id"},
    {"\"xyz\":261", "\"xyz\":260", "model.vocab: expected another id for each token"},
    {"\"xyz\":261", "\"abc\":261", "model.vocab: expected each token once"},
    {"\"xyz\":261", "\"\":261", "model.vocab: expected a token that is not empty"},
    {"\"xyz\":261", "\"x z\":261",
     "model.vocab: expected tokens in the byte alphabet, found another, which is not in added_tokens, as id 261"},
    {"\"xyz\":261", "\"x\\ud800z\":261", "model.vocab: expected an escape of JSON"},
    {"\"xyz\":261", "\"xyz\" 261", "model.vocab: expected a colon"},
    {"\"xyz\":261", "\"xyz\":261,", "model.vocab: expected a string"},
    {"\"\\u0061\":97,", "", "model.merges: expected merges of tokens of the vocabulary"},
    {"\"\\u0100\":0,", "", "model.vocab: expected a token for each byte, found none for 0x00"},
    {"\"b c\"", "\"b  c\"", "model.merges: expected merges in the byte alphabet"},
    {"\"b c\"", "\"bc\"", "model.merges: expected a space in each merge"},
    {"\"b c\"", "\"b \"", "model.merges: expected two tokens in each merge"},
    {"\"b c\"", "7", "model.merges: expected a string, found 7"},
    {"\"b c\"", "\"c b\"", "model.merges: expected merges of tokens of the vocabulary"},
    {"[\"a\",\"bc\"]", "[\"a\",\"b\",\"c\"]", "model.merges: expected two tokens in each merge"},
    {"[\"a\",\"bc\"]", "[\"a\"]", "model.merges: expected two tokens in each merge"},
    {"\"model\":{", "\"mode\":{", "model: expected an object of type BPE, found nothing"},
    {"\"model\":{", "\"model\":{\"vocab\":{},", "expected JSON, found: duplicate object key"},
    {"\"version\":", "\"version\"", "expected JSON, found: ':' expected"},
};

static void test_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        outrider_error err = {0};
        tokenizer *t = NULL;
        bytes json = small_json(refusals[i].from, refusals[i].to);
        outrider_status s = tokenizer_open_memory(&t, json.data, json.size, "small", &err);
        if (s != OUTRIDER_BAD_FILE || err.status != s || t || strncmp(err.message, "small: ", 7) ||
            !strstr(err.message, refusals[i].expected))
            fail_msg("%s: expected \"%s\", found %d \"%s\"", refusals[i].to, refusals[i].expected, s, err.message);
        bytes_free(&json);
    }
}

/* The vocabulary may list an added token in plain letters, not in its byte alphabet, if added_tokens has the same. */
static void test_foreign_tokens(void **state)
{
    (void)state;
    tokenizer *t = small_with(NULL, NULL);
    CHECK(t, "<\xe4\xb8\xad>", false, 265);
    tokenizer_close(t);
}

static void test_every_prefix_is_refused(void **state)
{
    (void)state;
    bytes json = small_json(NULL, NULL);
    for (size_t n = 0; n < json.size; n++) {
        tokenizer *t = NULL;
        char *copy = malloc(n ? n : 1); /* of its own, so that a sanitizer sees each read behind the end */
        memcpy(copy, json.data, n);
        assert_int_equal(tokenizer_open_memory(&t, copy, n, "small", NULL), OUTRIDER_BAD_FILE);
        free(copy);
    }
    bytes_free(&json);
}

static void test_a_missing_file(void **state)
{
    (void)state;
    outrider_error err = {0};
    tokenizer *t = NULL;
    assert_int_equal(tokenizer_open(&t, "/does/not/exist/tokenizer.json", &err), OUTRIDER_FAILURE);
    assert_non_null(strstr(err.message, "/does/not/exist/tokenizer.json"));
}

/* -- End ids ----------------------------------------------------------------------------------------------------- */

static void write_file(const char *name, const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
    if (!text) return;
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void check_ends(const char *generation, const char *config, const uint32_t *expected, size_t n, const char *message)
{
    ids out = {0};
    outrider_error err = {0};
    write_file("generation_config.json", generation);
    write_file("tokenizer_config.json", config);
    outrider_status s = ends_read(folder, qwen, &out, &err);
    if (message) {
        assert_int_equal(s, OUTRIDER_BAD_FILE);
        if (!strstr(err.message, message)) fail_msg("expected \"%s\", found \"%s\"", message, err.message);
        assert_int_equal(out.size, 0);
    } else if (s) {
        fail_msg("%s", err.message);
    }
    check_ids(out, expected, n);
}

static void test_ends(void **state)
{
    (void)state;
    static const uint32_t both[] = {151645, 151643};
    check_ends("{\"eos_token_id\":[151645,151643,151645]}", NULL, both, 2, NULL);
    check_ends("{\"eos_token_id\":151645}", "{", both, 1, NULL);
    check_ends(NULL, NULL, both, 2, NULL);
    check_ends("{}", "{\"eos_token\":\"<|im_end|>\"}", both, 2, NULL);
    check_ends("{\"eos_token_id\":null}", "{\"eos_token\":null}", both, 2, NULL);
    check_ends(NULL, "{\"eos_token\":{\"content\":\"<think>\"}}", (uint32_t[]){151667, 151645, 151643}, 3, NULL);
    check_ends(NULL, "{\"eos_token\":\"nothing like that\"}", both, 2, NULL);
    check_ends("{\"eos_token_id\":\"x\"}", NULL, NULL, 0,
               "generation_config.json: eos_token_id: expected ids from 0 to 151668, found \"x\"");
    check_ends("{\"eos_token_id\":[151643,151669]}", NULL, NULL, 0,
               "eos_token_id: expected ids from 0 to 151668, found 151669");
    check_ends("{\"eos_token_id\":[]}", NULL, NULL, 0, "eos_token_id: expected at least one id, found []");
    check_ends("{\"eos_token_id\":-1}", NULL, NULL, 0, "found -1");
    check_ends("[]", NULL, NULL, 0, "generation_config.json: expected an object");
    check_ends("{", NULL, NULL, 0, "generation_config.json: expected JSON");
    check_ends(NULL, "{\"eos_token\":7}", NULL, 0, "tokenizer_config.json: eos_token: expected a token's text, found 7");
    write_file("generation_config.json", NULL);
    write_file("tokenizer_config.json", NULL);
}

/* -- Set up ------------------------------------------------------------------------------------------------------ */

static int open_qwen(void **state)
{
    (void)state;
    outrider_error err = {0};
    char path[200] = BINARY_DIR "/qwen3-tokenizer/tokenizer.json", command[400];
    if (!mkdtemp(folder)) return -1;
    if (access(path, R_OK)) {
        snprintf(path, sizeof path, "%s/tokenizer.json", folder);
        snprintf(command, sizeof command, "xz -dc '%s/tests/data/qwen3-tokenizer/tokenizer.json.xz' > %s", SOURCE_DIR, path);
        if (system(command)) return -1;
    }
    if (!tokenizer_open(&qwen, path, &err)) return 0;
    print_message("%s\n", err.message);
    return -1;
}

static int close_qwen(void **state)
{
    (void)state;
    tokenizer_close(qwen);
    write_file("tokenizer.json", NULL);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_ids),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_bytes_round_trip),
        cmocka_unit_test(test_a_million_bytes),
        cmocka_unit_test(test_merges_by_rank),
        cmocka_unit_test(test_added_tokens),
        cmocka_unit_test(test_guarded_ranges),
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_refused_by_name),
        cmocka_unit_test(test_foreign_tokens),
        cmocka_unit_test(test_every_prefix_is_refused),
        cmocka_unit_test(test_a_missing_file),
        cmocka_unit_test(test_ends),
    };
    return cmocka_run_group_tests(tests, open_qwen, close_qwen);
}
