/* outrider run: one answer, streamed. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/interrupt.h"
#include "cli/load.h"
#include "cli/prompt.h"
#include "cli/report.h"

typedef struct run_settings {
    model_settings model;
    prompt_settings prompt;
    const char *system;
    option_list stop;
    bool raw, no_think, json;
    int64_t tokens, draft_max;
    int draft_length;
} run_settings;

static const option options[] = {
    {"prompt", 'p', "TEXT", "the prompt", OPTION_TEXT, offsetof(run_settings, prompt.text), 0, 0},
    {"file", 'f', "FILE",
     "read the prompt from a file; -: from standard input, which is also read when there is neither -p nor -f", OPTION_TEXT,
     offsetof(run_settings, prompt.file), 0, 0},
    {"system", 0, "TEXT", "the system message (default: the chat template's own)", OPTION_TEXT, offsetof(run_settings, system),
     0, 0},
    {"raw", 0, NULL, "the prompt is text to go on with, not a user's message; special tokens written in it count", OPTION_FLAG,
     offsetof(run_settings, raw), 0, 0},
    {"no-think", 0, NULL, "tell the chat template that no thinking is wanted", OPTION_FLAG, offsetof(run_settings, no_think), 0,
     0},
    {"tokens", 'n', "N", "answer at most N tokens (default: until the model ends the answer or the context is full)",
     OPTION_NUMBER, offsetof(run_settings, tokens), 1, UINT32_MAX},
    {"stop", 0, "STR", "end the answer before this text; up to 16 of them", OPTION_LIST, offsetof(run_settings, stop), 0, 0},
    {"draft-length", 0, "N", "tokens to draft a step: auto (default), random, or a number 0 to 16", OPTION_DRAFT_LENGTH,
     offsetof(run_settings, draft_length), 0, 0},
    {"draft-max", 0, "N", "most tokens to draft a step when the length is auto or random (default 16)", OPTION_NUMBER,
     offsetof(run_settings, draft_max), 0, OUTRIDER_MAX_DRAFT},
    {"json", 0, NULL, "print one JSON object at the end instead of the text as it comes", OPTION_FLAG,
     offsetof(run_settings, json), 0, 0},
    {NULL, 0, NULL, NULL, OPTION_FLAG, 0, 0, 0},
};

/* Where the answer's text goes. */
typedef struct sink {
    bool keep;      /* collect instead of print */
    bytes text;     /* what was collected */
    char last;      /* last byte printed */
    bool no_memory; /* collecting failed */
} sink;

static bool take_text(void *user, const char *text, size_t size, const uint32_t *ids, size_t n_ids)
{
    sink *s = user;
    (void)ids;
    (void)n_ids;
    if (s->keep) {
        s->no_memory = !bytes_add(&s->text, text, size);
        return !s->no_memory && !interrupt_seen();
    }
    if (size) {
        fwrite(text, 1, size, stdout);
        s->last = text[size - 1];
        if (!console_flush()) return false;
    }
    return !interrupt_seen();
}

/* What a chat prompt cannot carry is refused rather than cut. */
static int check_prompt(const run_settings *s, bytes *prompt)
{
    if (!s->raw) prompt_trim(prompt);
    if (!prompt->size) return console_fail(OUTRIDER_USAGE, "the prompt is empty");
    if (!s->raw && memchr(prompt->data, 0, prompt->size))
        return console_fail(OUTRIDER_USAGE, "the prompt holds a zero byte, which a chat message cannot; --raw takes it");
    if (s->raw && s->system) return console_fail(OUTRIDER_USAGE, "--system has no place in a raw prompt");
    for (size_t i = 0; i < s->stop.n; i++)
        if (!*s->stop.items[i]) return console_fail(OUTRIDER_USAGE, "--stop: the text is empty");
    return OUTRIDER_OK;
}

static outrider_status push_prompt(outrider_session *session, const run_settings *s, const bytes *prompt, outrider_error *err)
{
    outrider_message messages[2];
    size_t n = 0;
    if (s->raw) return outrider_session_push_text(session, prompt->data, prompt->size, OUTRIDER_SPECIALS, err);
    if (s->system) messages[n++] = (outrider_message){"system", s->system};
    messages[n++] = (outrider_message){"user", prompt->data};
    return outrider_session_push_chat(session, messages, n, s->no_think ? OUTRIDER_NO_THINKING : 0, err);
}

static int print_json(const run_settings *s, const outrider_model *model, const sink *out, const uint32_t *ids, size_t n,
                      const report *r)
{
    const outrider_result *result = &r->sum;
    const char *stop =
        result->finish == OUTRIDER_FINISH_STOP && result->stop_index >= 0 ? s->stop.items[result->stop_index] : NULL;
    outrider_runtime_info runtime;
    outrider_model_get_runtime(model, &runtime);
    json_t *timings = report_timings(r);
    json_object_set_new(timings, "load_s", report_number(runtime.load_seconds));
    return report_print(json_pack("{s:o, s:o, s:s, s:o, s:I, s:I, s:o, s:o}", "text",
                                  report_text(out->text.data, out->text.size), "ids", report_ids(ids, n), "finish",
                                  report_finish(result->finish), "stop", stop ? report_text(stop, strlen(stop)) : json_null(),
                                  "prompt_tokens", (json_int_t)result->prompt_tokens, "tokens", (json_int_t)result->tokens,
                                  "timings", timings, "draft", report_draft(r)));
}

/* Generates and prints; the session's history holds the prompt. */
static int answer(const run_settings *s, const outrider_model *model, outrider_session *session)
{
    outrider_generate_options go = OUTRIDER_GENERATE_OPTIONS_INIT;
    go.max_tokens = (uint32_t)s->tokens;
    go.stop = s->stop.items;
    go.n_stop = s->stop.n;
    go.draft_length = s->draft_length;
    go.draft_max = (uint32_t)s->draft_max;
    size_t prompt, n;
    outrider_session_tokens(session, &prompt);
    sink out = {.keep = s->json, .last = '\n'};
    report r = {.answers = 0};
    outrider_result result;
    outrider_error err;
    interrupt_watch(session);
    outrider_status status = outrider_session_generate(session, &go, take_text, &out, &result, &err);
    interrupt_watch(NULL);
    int code = OUTRIDER_OK;
    if (out.last != '\n') putchar('\n');
    if (status) {
        code = console_fail_with(&err);
    } else if (out.no_memory) {
        code = console_fail(OUTRIDER_NO_MEMORY, "not enough memory for the text");
    } else {
        report_add(&r, &result);
        const uint32_t *ids = outrider_session_tokens(session, &n);
        if (s->json)
            code = print_json(s, model, &out, ids + prompt, n - prompt, &r);
        else if (console_flush())
            report_closing(stderr, &r);
        if (!code && interrupt_seen()) code = console_exit_code(OUTRIDER_CANCELLED);
    }
    bytes_free(&out.text);
    return code;
}

static int run(const command *self, int argc, char **argv)
{
    run_settings s = {.draft_max = OUTRIDER_MAX_DRAFT, .draft_length = OUTRIDER_DRAFT_DYNAMIC};
    operands found;
    bytes prompt = {0};
    outrider_model *model = NULL;
    outrider_session *session = NULL;
    outrider_session_options so = OUTRIDER_SESSION_OPTIONS_INIT;
    outrider_error err;
    int code;
    if (!options_parse(self, argc, argv, &s, &found, &code)) return code;
    code = prompt_read(&s.prompt, &prompt);
    if (!code) code = check_prompt(&s, &prompt);
    if (!code) code = load_model(found.items[0], &s.model, false, &model);
    so.draft_kind = load_draft_kind(&s.model);
    if (!code && outrider_session_open(model, &so, &session, &err)) code = console_fail_with(&err);
    if (!code && push_prompt(session, &s, &prompt, &err)) code = console_fail_with(&err);
    if (!code) code = answer(&s, model, session);
    outrider_session_close(session);
    outrider_model_close(model);
    bytes_free(&prompt);
    return code;
}

static const option *const tables[] = {
    options, load_source_options, load_text_options, load_model_options, load_verbose_options, NULL};

const command command_run = {
    "run",
    "MODEL [options]",
    1,
    1,
    "answer a prompt",
    "Answers a prompt: the draft model proposes tokens, the model checks them, and the answer is the model's own greedy one, "
    "bit for "
    "bit. MODEL is a container, a folder that holds one, or a folder with verifier.trtc and draft.trtc. The text goes to "
    "standard output as it comes, a closing line with speeds and acceptance to standard error. Ctrl-C ends the answer.\n"
    "\n"
    "Example: outrider run models/demo -p 'What is the capital of France?'",
    tables,
    run,
};
