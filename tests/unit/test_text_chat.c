/* text/chat.h: prompts written out by hand, what is refused, and special tokens in a conversation. The comparison with Jinja2 is
 * tests/text/test_chat.py. */
#include "text/chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "text/chat_json.h"

#define QWEN   BINARY_DIR "/qwen3-tokenizer"
#define DEMO   SOURCE_DIR "/models/demo"
#define PROMPT CHAT_ADD_GENERATION_PROMPT

static chat_template *open_template(const char *from)
{
    chat_template *c = NULL;
    outrider_error err = {0};
    if (strchr(from, '/') ? chat_open(&c, from, &err) : chat_open_named(&c, from, &err)) fail_msg("%s", err.message);
    return c;
}

static json_t *parse(const char *text)
{
    json_error_t problem;
    json_t *value = text ? json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, &problem) : NULL;
    if (text && !value) fail_msg("%s: %s", text, problem.text);
    return value;
}

/* Messages (and tools) in JSON against the prompt, which is appended to what was there. */
static void expect(const char *from, const char *messages, const char *tools, unsigned flags, const char *text)
{
    chat_template *c = open_template(from);
    json_t *m = parse(messages), *t = parse(tools);
    outrider_error err = {0};
    bytes out = {0};
    assert_true(bytes_add_text(&out, "before:"));
    if (chat_render(c, m, t, flags, &out, &err)) fail_msg("%s", err.message);
    assert_memory_equal(out.data, "before:", 7);
    assert_string_equal(out.data + 7, text);
    bytes_free(&out);
    json_decref(m);
    json_decref(t);
    chat_close(c);
}

static void expect_refused(const char *from, const char *messages, const char *tools, const char *message)
{
    chat_template *c = open_template(from);
    json_t *m = parse(messages), *t = parse(tools);
    outrider_error err = {0};
    bytes out = {0};
    assert_true(bytes_add_text(&out, "before"));
    assert_int_equal(chat_render(c, m, t, PROMPT, &out, &err), OUTRIDER_USAGE);
    assert_int_equal(err.status, OUTRIDER_USAGE);
    assert_string_equal(err.message, message);
    assert_string_equal(out.data, "before");
    assert_int_equal(out.size, 6);
    assert_int_equal(chat_render(c, m, t, PROMPT, &out, NULL), OUTRIDER_USAGE);
    bytes_free(&out);
    json_decref(m);
    json_decref(t);
    chat_close(c);
}

static void test_chatml(void **state)
{
    (void)state;
    static const char one[] = "[{\"role\":\"user\",\"content\":\"hi\"}]",
                      two[] = "[{\"role\":\"system\",\"content\":\"S\"},{\"role\":\"odd\",\"content\":\"\"}]";
    expect(
        DEMO, one, NULL, PROMPT,
        "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
    expect(DEMO, two, NULL, 0, "<|im_start|>system\nS<|im_end|>\n<|im_start|>odd\n<|im_end|>\n");
    expect("chatml", one, NULL, PROMPT, "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
    expect("chatml", one, "[]", CHAT_NO_THINKING, "<|im_start|>user\nhi<|im_end|>\n");
}

static void test_qwen3(void **state)
{
    (void)state;
    static const char thoughts[] = "[{\"role\":\"user\",\"content\":\"a\"},"
                                   "{\"role\":\"assistant\",\"content\":\"<think>\\nold\\n</think>\\n\\nb\"},"
                                   "{\"role\":\"user\",\"content\":\"c\"},"
                                   "{\"role\":\"assistant\",\"content\":\"\\nd\",\"reasoning_content\":\"\\nnew\\n\"}]";
    expect(QWEN, thoughts, NULL, 0,
           "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n<|im_start|>user\nc<|im_end|>\n"
           "<|im_start|>assistant\n<think>\nnew\n</think>\n\nd<|im_end|>\n");
    expect(QWEN, "[{\"role\":\"user\",\"content\":\"a\"}]", NULL, PROMPT | CHAT_NO_THINKING,
           "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n");
    static const char tools[] =
        "[{\"type\":\"function\",\"function\":{\"name\":\"w\",\"x\":[1,2.5,1e-7,null,true,\"\\u00fc\\n\"]}}]";
    static const char calls[] = "[{\"role\":\"system\",\"content\":\"S\"},{\"role\":\"user\",\"content\":\"a\"},"
                                "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":["
                                "{\"id\":\"1\",\"function\":{\"name\":\"w\",\"arguments\":\"{\\\"q\\\":1}\"}},"
                                "{\"name\":\"v\",\"arguments\":{\"b\":{},\"a\":[]}}]},"
                                "{\"role\":\"tool\",\"content\":\"r1\"},{\"role\":\"tool\",\"content\":\"r2\"}]";
    expect(QWEN, calls, tools, PROMPT,
           "<|im_start|>system\nS\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
           "You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n"
           "{\"type\": \"function\", \"function\": {\"name\": \"w\", \"x\": [1, 2.5, 1e-07, null, true, \"\xC3\xBC\\n\"]}}\n"
           "</tools>\n\nFor each function call, return a json object with function name and arguments within "
           "<tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n"
           "</tool_call><|im_end|>\n<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n"
           "<tool_call>\n{\"name\": \"w\", \"arguments\": {\"q\":1}}\n</tool_call>\n"
           "<tool_call>\n{\"name\": \"v\", \"arguments\": {\"b\": {}, \"a\": []}}\n</tool_call><|im_end|>\n"
           "<|im_start|>user\n<tool_response>\nr1\n</tool_response>\n<tool_response>\nr2\n</tool_response><|im_end|>\n"
           "<|im_start|>assistant\n");
}

static void test_refused(void **state)
{
    (void)state;
    expect_refused(QWEN, "[]", NULL, "messages: expected an array with one at least, found an empty one");
    expect_refused(DEMO, "{}", NULL, "messages: expected an array with one at least, found an object");
    expect_refused(DEMO, "[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"user\",\"content\":[]}]", NULL,
                   "message 1: content: expected a string, found an array");
    expect_refused(QWEN, "[{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"name\":\"f\",\"arguments\":1}]}]", NULL,
                   "message 0: content: expected a string, found null; the model's chat template takes \"\" for no content");
    expect_refused(QWEN, "[{\"role\":\"developer\",\"content\":\"\"}]", NULL,
                   "message 0: role: expected system, user, assistant or tool, found \"developer\"");
    expect_refused(DEMO, "[{\"role\":5,\"content\":\"\"}]", NULL, "message 0: role: expected a string, found a number");
    expect_refused(DEMO, "[{\"role\":\"user\",\"content\":\"\"}]", "[{}]",
                   "tools: the model's chat template (chatml) has no place for them");
    expect_refused(QWEN, "[{\"role\":\"user\",\"content\":\"\"}]", "[1]", "tools: item 0: expected an object, found a number");
}

static void test_opening(void **state)
{
    (void)state;
    chat_template *c;
    outrider_error err;
    assert_int_equal(chat_open_named(&c, "llama", &err), OUTRIDER_USAGE);
    assert_string_equal(err.message, "chat template: expected chatml or qwen3, found \"llama\"");
    assert_null(c);
    assert_int_equal(chat_open(&c, "/nowhere", &err), OUTRIDER_FAILURE);
    assert_non_null(strstr(err.message, "/nowhere/tokenizer_config.json: cannot be read: "));
    assert_non_null(strstr(err.message, "--chat-template chatml"));
    chat_close(NULL);
    static const char *const names[][2] = {{QWEN, "qwen3"}, {"qwen3", "qwen3"}, {DEMO, "chatml"}, {"chatml", "chatml"}};
    for (size_t i = 0; i < 4; i++) {
        c = open_template(names[i][0]);
        assert_string_equal(chat_name(c), names[i][1]);
        chat_close(c);
    }
    static const struct {
        const char *json;
        outrider_status status;
    } files[] = {
        {"{}", OUTRIDER_USAGE},
        {"{\"chat_template\": \"{{ messages }}\"}", OUTRIDER_USAGE},
        {"{\"chat_template\": \"{% for message in messages %}{{ 'unclosed\"}", OUTRIDER_USAGE},
        {"{\"chat_template\": \"{%\"}", OUTRIDER_USAGE},
        {"{\"chat_template\": \"\"}", OUTRIDER_USAGE},
        {"{\"chat_template\": 5}", OUTRIDER_USAGE},
        {"[]", OUTRIDER_BAD_FILE},
        {"{", OUTRIDER_BAD_FILE},
    };
    char dir[] = BINARY_DIR "/chat_XXXXXX", path[sizeof dir + 32];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/tokenizer_config.json", dir);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs(files[i].json, f);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(chat_open(&c, dir, &err), files[i].status);
        assert_null(c);
        assert_non_null(strstr(err.message, "; try --chat-template chatml"));
    }
    unlink(path);
    rmdir(dir);
}

static void test_numbers(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } numbers[] = {
        {0, "0.0"},
        {-0.0, "-0.0"},
        {1, "1.0"},
        {-2.5, "-2.5"},
        {0.1, "0.1"},
        {1e15, "1000000000000000.0"},
        {1e16, "1e+16"},
        {1.5e300, "1.5e+300"},
        {1e-4, "0.0001"},
        {1e-5, "1e-05"},
        {5e-324, "5e-324"},
        {0x1p-44, "5.684341886080802e-14"},
        {123456.789, "123456.789"},
        {0.1 + 0.2, "0.30000000000000004"},
        {9007199254740993.0, "9007199254740992.0"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {100, "100.0"},
        {12e-4, "0.0012"},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        bytes out = {0};
        assert_true(chat_json_real(numbers[i].value, &out));
        assert_string_equal(out.data, numbers[i].text);
        bytes_free(&out);
    }
}

/* Bytes that are not UTF-8 come from a person's file: they go into the prompt as they are. */
static void test_other_bytes(void **state)
{
    (void)state;
    chat_template *c = open_template("chatml");
    json_t *messages = json_pack("[{s:s, s:o}]", "role", "user", "content", json_stringn_nocheck("\xE6\xAD\0\xFF", 4));
    bytes out = {0};
    assert_int_equal(chat_render(c, messages, NULL, 0, &out, NULL), OUTRIDER_OK);
    assert_int_equal(out.size, 17 + 4 + 11);
    assert_memory_equal(out.data, "<|im_start|>user\n\xE6\xAD\0\xFF<|im_end|>\n", out.size);
    bytes_free(&out);
    json_decref(messages);
    chat_close(c);
}

/* Ids that the reference tokenizer gives: what the template writes is a special token, what the conversation brings is spelled out. */
enum { START = 151644, END = 151645, USER = 872, ASSISTANT = 77091, LINE = 198, LINES = 271, THINK = 151667, THOUGHT = 151668 };
#define SPELLED 27, 91, 318, 6213, 91, 29 /* <|im_end|> */

static void expect_ids(const tokenizer *t, const char *from, const char *messages, unsigned flags, const uint32_t *list,
                       size_t n)
{
    chat_template *c = open_template(from);
    json_t *m = parse(messages);
    outrider_error err = {0};
    ids got = {0};
    if (chat_encode(c, t, m, NULL, flags, &got, &err)) fail_msg("%s", err.message);
    assert_int_equal(got.size, n);
    assert_memory_equal(got.data, list, n * sizeof *list);
    ids_free(&got);
    json_decref(m);
    chat_close(c);
}

static size_t count_special(const tokenizer *t, const ids *list)
{
    size_t n = 0;
    for (size_t i = 0; i < list->size; i++) n += tokenizer_is_special(t, list->data[i]);
    return n;
}

static void test_special_tokens(void **state)
{
    (void)state;
    tokenizer *t;
    outrider_error err = {0};
    if (tokenizer_open(&t, QWEN "/tokenizer.json", &err)) fail_msg("%s", err.message);
    static const uint32_t user[] = {START,     USER, LINE,  SPELLED, END,     LINE, START,
                                    ASSISTANT, LINE, THINK, LINES,   THOUGHT, LINES};
    expect_ids(t, QWEN, "[{\"role\":\"user\",\"content\":\"<|im_end|>\"}]", PROMPT | CHAT_NO_THINKING, user,
               sizeof user / sizeof *user);
    static const uint32_t role[] = {START, 27, 91, 318, 6213, 91, 397, USER, END, LINE}; /* 397 is ">" with a line end */
    expect_ids(t, "chatml", "[{\"role\":\"<|im_end|>\",\"content\":\"user\"}]", 0, role, sizeof role / sizeof *role);

    /* Everywhere else that a conversation reaches: as many special tokens as the template itself writes. */
    static const char list[] =
        "[{\"role\":\"system\",\"content\":\"X\"},{\"role\":\"user\",\"content\":\"X\"},"
        "{\"role\":\"assistant\",\"content\":\"X\",\"reasoning_content\":\"X\",\"tool_calls\":["
        "{\"name\":\"X\",\"arguments\":\"X\"},{\"name\":\"X\",\"arguments\":{\"X\":[\"X\"]}}]},"
        "{\"role\":\"tool\",\"content\":\"X\"},{\"role\":\"assistant\",\"content\":\"<think>X</think>X\"}]";
    static const char tools[] = "[{\"name\":\"X\",\"X\":\"X\"}]";
    static const char *const fill[] = {"x", "<|im_end|>", "<|im_start|>", "<|endoftext|>"};
    chat_template *c = open_template(QWEN);
    for (size_t i = 0; i < 4; i++) {
        bytes filled[2] = {{0}, {0}};
        for (const char *p = list; *p; p++)
            assert_true(*p == 'X' ? bytes_add_text(&filled[0], fill[i]) : bytes_add(&filled[0], p, 1));
        for (const char *p = tools; *p; p++)
            assert_true(*p == 'X' ? bytes_add_text(&filled[1], fill[i]) : bytes_add(&filled[1], p, 1));
        json_t *messages = parse(filled[0].data), *described = json_loads(filled[1].data, 0, NULL);
        ids got = {0};
        if (chat_encode(c, t, messages, described, PROMPT, &got, &err)) fail_msg("%s", err.message);
        assert_int_equal(count_special(t, &got), 11);
        ids_free(&got);
        json_decref(messages);
        json_decref(described);
        bytes_free(&filled[0]);
        bytes_free(&filled[1]);
    }
    json_t *none = json_array();
    ids got = {0};
    assert_int_equal(chat_encode(c, t, none, NULL, 0, &got, &err), OUTRIDER_USAGE);
    assert_int_equal(got.size, 0);
    ids_free(&got);
    json_decref(none);
    chat_close(c);
    tokenizer_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chatml),         cmocka_unit_test(test_qwen3),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_opening),        cmocka_unit_test(test_numbers), cmocka_unit_test(test_other_bytes),
        cmocka_unit_test(test_special_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
