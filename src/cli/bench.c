/* outrider bench: what a pair's forward passes cost on this machine, beside the memory bandwidth that limits them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli/bandwidth.h"
#include "cli/bench_classes.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/interrupt.h"
#include "cli/load.h"
#include "cli/report.h"

typedef struct bench_settings {
    model_settings model;
    int64_t prompt_tokens, tokens, rounds; /* 0: the default */
    uint32_t widths;
    bool json, by_class, no_fixed;
    bench_classes_settings classes; /* files and lengths only, until the rest is known */
} bench_settings;

static const option options[] = {
    {"prompt-tokens", 0, "N",
     "prompt tokens to compute (default 512, or what the context holds); all else is measured behind them", OPTION_NUMBER,
     offsetof(bench_settings, prompt_tokens), 1, INT32_MAX},
    {"tokens", 'n', "N", "tokens to decode plain in a round (default 32); with --classes: of an answer at most (default 64)",
     OPTION_NUMBER, offsetof(bench_settings, tokens), 2, INT32_MAX},
    {"rounds", 0, "N", "times everything is measured, in turn; medians are shown (default 5; with --classes 3)", OPTION_NUMBER,
     offsetof(bench_settings, rounds), 1, 1000},
    {"widths", 0, "LIST", "rows of the verifies to measure, such as 1-8 (default) or 1,2,17", OPTION_SET,
     offsetof(bench_settings, widths), 1, OUTRIDER_MAX_ROWS},
    {"classes", 0, NULL,
     "measure answers instead, plain and drafted, class by class of prompts: what drafting is worth here; needs a tokenizer",
     OPTION_FLAG, offsetof(bench_settings, by_class), 0, 0},
    {"prompts", 0, "FILE",
     "with --classes: prompts, as for 'outrider verify' (default: prompts.json beside the model, or a "
     "built-in set)",
     OPTION_TEXT, offsetof(bench_settings, classes.prompts), 0, 0},
    {"lengths", 0, "LIST", "with --classes: fixed draft lengths to try, such as 0-8 (default 1,2,4,6,8)", OPTION_SET,
     offsetof(bench_settings, classes.lengths), 0, OUTRIDER_MAX_DRAFT},
    {"no-fixed", 0, NULL, "with --classes: try no fixed draft lengths", OPTION_FLAG, offsetof(bench_settings, no_fixed), 0, 0},
    {"csv", 0, "FILE", "with --classes: also write the table to this file", OPTION_TEXT, offsetof(bench_settings, classes.csv),
     0, 0},
    {"svg", 0, "FILE", "with --classes: also write a chart to this file", OPTION_TEXT, offsetof(bench_settings, classes.svg), 0,
     0},
    {"json", 0, NULL, "print one JSON object", OPTION_FLAG, offsetof(bench_settings, json), 0, 0},
    {NULL, 0, NULL, NULL, OPTION_FLAG, 0, 0, 0},
};

/* A measurement is repeated in a round until it took this long, so that small models are not all noise. */
static const double ENOUGH_SECONDS = 0.02;
enum { MOST_REPEATS = 8 };

/* A prompt that takes longer than this is measured in the first two rounds only. */
static const double LONG_PROMPT_SECONDS = 2;

typedef struct samples {
    double *values;
    size_t n, capacity;
} samples;

typedef struct bench_state {
    const bench_settings *settings;
    outrider_model *model;
    outrider_session *plain, *draft; /* draft: NULL when the model has none */
    uint32_t *ids;                   /* [prompt]: what the prompt is made of, and the rows of the verifies */
    size_t prompt;                   /* tokens of the prompt */
    uint32_t tokens;                 /* decoded plain in a round */
    bandwidth *bandwidth;
    double best_bandwidth; /* GB/s */
    samples prefill_rate, plain_rate, verify_ms[OUTRIDER_MAX_ROWS + 1], draft_ms;
    uint64_t peak_rss_bytes;
    bool no_memory;
} bench_state;

static void sample(bench_state *b, samples *s, double value)
{
    if (s->n == s->capacity) {
        size_t capacity = s->capacity ? 2 * s->capacity : 16;
        double *values = realloc(s->values, capacity * sizeof *values);
        if (!values) {
            b->no_memory = true;
            return;
        }
        s->values = values;
        s->capacity = capacity;
    }
    s->values[s->n++] = value;
}

static double median(samples *s) { return report_median(s->values, s->n); }

/* Ids spread over the vocabulary, always the same ones: what is computed does not depend on their meaning. */
static void choose_ids(uint32_t *ids, size_t n, uint32_t vocab)
{
    uint32_t x = 12345;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525 + 1013904223;
        ids[i] = (uint32_t)(((uint64_t)x * vocab) >> 32);
    }
}

/* The prompt from nothing, and one token to end the pass with. */
static outrider_status measure_prefill(bench_state *b, outrider_session *session, double *seconds, outrider_error *err)
{
    outrider_generate_options go = OUTRIDER_GENERATE_OPTIONS_INIT;
    outrider_result result;
    go.max_tokens = 1;
    go.ignore_end = true;
    outrider_status status = outrider_session_truncate(session, 0, err);
    if (!status) status = outrider_session_push_tokens(session, b->ids, b->prompt, err);
    if (!status) status = outrider_session_generate(session, &go, NULL, NULL, &result, err);
    if (!status) status = outrider_session_truncate(session, b->prompt, err);
    if (!status) *seconds = result.prefill_seconds;
    return status;
}

static outrider_status measure_plain(bench_state *b, outrider_error *err)
{
    outrider_generate_options go = OUTRIDER_GENERATE_OPTIONS_INIT;
    report r = {.answers = 0};
    outrider_result result;
    go.max_tokens = b->tokens;
    go.ignore_end = true;
    outrider_status status = outrider_session_generate(b->plain, &go, NULL, NULL, &result, err);
    if (status) return status;
    report_add(&r, &result);
    if (result.finish != OUTRIDER_FINISH_CANCELLED) sample(b, &b->plain_rate, report_decode_rate(&r));
    return outrider_session_truncate(b->plain, b->prompt, err);
}

/* Forward passes of `rows` rows behind the prompt. */
static outrider_status measure_rows(bench_state *b, outrider_session *session, size_t rows, samples *ms, outrider_error *err)
{
    double spent = 0;
    for (int i = 0; i < MOST_REPEATS && spent < ENOUGH_SECONDS; i++) {
        double start = clock_seconds();
        outrider_status status = outrider_session_eval(session, b->ids, rows, err);
        double seconds = clock_seconds() - start;
        if (!status) status = outrider_session_truncate(session, b->prompt, err);
        if (status) return status;
        sample(b, ms, 1000 * seconds);
        spent += seconds;
    }
    return OUTRIDER_OK;
}

/* Everything once. *prompt_seconds is what the prompt took, and decides whether it is measured; round 0 is the warm-up. */
static outrider_status measure_round(bench_state *b, int64_t round, double *prompt_seconds, outrider_error *err)
{
    outrider_status status = OUTRIDER_OK;
    if (round < 2 || *prompt_seconds < LONG_PROMPT_SECONDS) {
        status = measure_prefill(b, b->plain, prompt_seconds, err);
        if (!status) sample(b, &b->prefill_rate, report_ratio((double)b->prompt, *prompt_seconds));
    }
    if (!status && b->draft && round == 0) {
        double unused;
        status = measure_prefill(b, b->draft, &unused, err);
    }
    if (!status && !interrupt_seen()) status = measure_plain(b, err);
    for (size_t rows = 1; rows <= OUTRIDER_MAX_ROWS && !status && !interrupt_seen(); rows++)
        if (b->settings->widths >> rows & 1) status = measure_rows(b, b->plain, rows, &b->verify_ms[rows], err);
    if (!status && b->draft && !interrupt_seen()) status = measure_rows(b, b->draft, 1, &b->draft_ms, err);
    if (!status && b->bandwidth && !interrupt_seen()) {
        double now = bandwidth_measure(b->bandwidth);
        if (now > b->best_bandwidth) b->best_bandwidth = now;
    }
    return status;
}

static void forget_samples(bench_state *b)
{
    b->prefill_rate.n = b->plain_rate.n = b->draft_ms.n = 0;
    for (int i = 0; i <= OUTRIDER_MAX_ROWS; i++) b->verify_ms[i].n = 0;
}

/* A round whose figures are thrown away, then the others. The peak of memory is read between them: the bandwidth's buffer
 * does not count. */
static outrider_status measure_all(bench_state *b, outrider_error *err)
{
    const int64_t rounds = b->settings->rounds;
    double prompt_seconds = 0;
    outrider_runtime_info runtime;
    struct rusage usage;
    outrider_model_get_runtime(b->model, &runtime);
    interrupt_watch(b->plain);
    outrider_status status = OUTRIDER_OK;
    for (int64_t round = 0; round <= rounds && !status && !interrupt_seen(); round++) {
        console_progress("measuring", (uint64_t)round, (uint64_t)rounds + 1, "rounds");
        status = measure_round(b, round, &prompt_seconds, err);
        if (round || status) continue;
        getrusage(RUSAGE_SELF, &usage);
        b->peak_rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
        forget_samples(b);
        status = bandwidth_open(&b->bandwidth, runtime.threads, err);
    }
    interrupt_watch(NULL);
    console_progress_end();
    if (!status && b->no_memory) status = error_memory(err, "the figures", 0);
    return status;
}

/* Sessions and ids; how long prompt and answer may be in this context. */
static outrider_status prepare(bench_state *b, outrider_error *err)
{
    outrider_runtime_info runtime;
    outrider_model_info info;
    outrider_session_options so = OUTRIDER_SESSION_OPTIONS_INIT;
    outrider_model_get_runtime(b->model, &runtime);
    outrider_status status = outrider_model_get_info(b->model, OUTRIDER_VERIFIER, &info, err);
    if (status) return status;
    if (runtime.context < 4 * OUTRIDER_MAX_ROWS)
        return error_set(err, OUTRIDER_USAGE, "a context of %u tokens is too small to measure in; at least %d are needed",
                         runtime.context, 4 * OUTRIDER_MAX_ROWS);
    size_t room = runtime.context / 2; /* for the prompt; the rest is the answers' */
    b->prompt = (size_t)b->settings->prompt_tokens < room ? (size_t)b->settings->prompt_tokens : room;
    room = runtime.context - b->prompt;
    b->tokens = (uint64_t)b->settings->tokens < room ? (uint32_t)b->settings->tokens : (uint32_t)room;
    size_t n = b->prompt < OUTRIDER_MAX_ROWS ? OUTRIDER_MAX_ROWS : b->prompt;
    b->ids = malloc(n * sizeof *b->ids);
    if (!b->ids) return error_memory(err, "token ids", n * sizeof *b->ids);
    outrider_model_info draft;
    bool has_draft = !outrider_model_get_info(b->model, OUTRIDER_DRAFT, &draft, NULL);
    choose_ids(b->ids, n, has_draft && draft.vocab < info.vocab ? draft.vocab : info.vocab);
    so.role = OUTRIDER_ROLE_PLAIN;
    status = outrider_session_open(b->model, &so, &b->plain, err);
    so.role = OUTRIDER_ROLE_DRAFT;
    so.draft_head = true;
    if (!status && has_draft) status = outrider_session_open(b->model, &so, &b->draft, err);
    return status;
}

static int print_json(bench_state *b, const char *path)
{
    char name[128];
    outrider_runtime_info runtime;
    outrider_model_info info;
    json_t *verify = json_array();
    outrider_model_get_runtime(b->model, &runtime);
    outrider_model_get_info(b->model, OUTRIDER_VERIFIER, &info, NULL);
    for (int rows = 1; rows <= OUTRIDER_MAX_ROWS; rows++)
        if (b->verify_ms[rows].n)
            json_array_append_new(verify,
                                  json_pack("{s:i, s:o}", "width", rows, "ms", report_number(median(&b->verify_ms[rows]))));
    double rate = median(&b->plain_rate);
    report_processor(name, sizeof name);
    json_t *machine = json_pack("{s:o, s:s, s:i}", "processor", report_text(name, strlen(name)), "cpu", runtime.cpu, "threads",
                                runtime.threads);
    json_t *plain = json_pack("{s:o, s:I, s:o}", "tok_s", report_number(rate), "bytes", (json_int_t)info.step_bytes, "gbs",
                              report_number(rate * (double)info.step_bytes / 1e9));
    json_t *prefill =
        json_pack("{s:I, s:o}", "tokens", (json_int_t)b->prompt, "tok_s", report_number(median(&b->prefill_rate)));
    return report_print(json_pack("{s:s, s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:I}", "version", outrider_version(),
                                  "machine", machine, "model", report_text(path, strlen(path)), "context",
                                  (json_int_t)runtime.context, "rounds", (json_int_t)b->settings->rounds, "read_bandwidth_gbs",
                                  report_number(b->best_bandwidth), "prefill", prefill, "plain", plain, "verify", verify,
                                  "draft_step_ms", b->draft ? report_number(median(&b->draft_ms)) : json_null(), "load_s",
                                  report_number(runtime.load_seconds), "peak_rss_bytes", (json_int_t)b->peak_rss_bytes));
}

/* A line of a forward pass: its time, the weights that it touches, and the bandwidth that follows. */
static void print_pass(const char *name, double ms, uint64_t weights)
{
    printf("  %-22s %9.3f ms %10.1f tokens/s %12s %7.1f GB/s\n", name, ms, report_ratio(1000, ms), console_bytes(weights),
           report_ratio((double)weights, ms) / 1e6);
}

static void print_text(bench_state *b, const char *path)
{
    char name[128];
    outrider_runtime_info runtime;
    outrider_model_info info, draft;
    outrider_model_get_runtime(b->model, &runtime);
    outrider_model_get_info(b->model, OUTRIDER_VERIFIER, &info, NULL);
    printf("Outrider %s, %s\n", outrider_version(), path);
    printf("  %-22s %s, %s, %d threads\n", "machine", report_processor(name, sizeof name), runtime.cpu, runtime.threads);
    printf("  %-22s %.1f GB/s\n", "read bandwidth", b->best_bandwidth);
    printf("  %-22s %.2f s\n", "loading", runtime.load_seconds);
    printf("  %-22s %s\n", "peak memory", console_bytes(b->peak_rss_bytes));
    printf("  %-22s %.1f tokens/s (%s tokens)\n\n", "prompt", median(&b->prefill_rate), console_count(b->prompt));
    print_pass("plain, a token", report_ratio(1000, median(&b->plain_rate)), info.step_bytes);
    if (b->draft && !outrider_model_get_info(b->model, OUTRIDER_DRAFT, &draft, NULL))
        print_pass("draft step", median(&b->draft_ms), draft.step_bytes);
    printf("\n  %-10s %12s %14s\n", "verify", "", "times a plain");
    printf("  %-10s %12s %14s\n", "rows", "ms", "token");
    for (int rows = 1; rows <= OUTRIDER_MAX_ROWS; rows++)
        if (b->verify_ms[rows].n) {
            double ms = median(&b->verify_ms[rows]);
            printf("  %-10d %12.3f %14.2f\n", rows, ms, ms * median(&b->plain_rate) / 1000);
        }
    printf("\nMedians of %s rounds behind %s prompt tokens; bytes are those of the weights.\n",
           console_count((uint64_t)b->settings->rounds), console_count(b->prompt));
}

static void close_state(bench_state *b)
{
    outrider_session_close(b->plain);
    outrider_session_close(b->draft);
    outrider_model_close(b->model);
    bandwidth_close(b->bandwidth);
    free(b->ids);
    free(b->prefill_rate.values);
    free(b->plain_rate.values);
    free(b->draft_ms.values);
    for (int i = 0; i <= OUTRIDER_MAX_ROWS; i++) free(b->verify_ms[i].values);
}

/* Options of one kind of measurement have no place in the other. The exit code. */
static int check(const bench_settings *s)
{
    const bench_classes_settings *c = &s->classes;
    if (!s->by_class &&
        (c->prompts || c->csv || c->svg || c->lengths || s->no_fixed || s->model.tokenizer || s->model.chat_template))
        return console_fail(OUTRIDER_USAGE,
                            "--prompts, --lengths, --no-fixed, --csv, --svg, --tokenizer and --chat-template have "
                            "no place here without --classes");
    if (s->by_class && (s->prompt_tokens || s->widths))
        return console_fail(OUTRIDER_USAGE, "--prompt-tokens and --widths have no place beside --classes");
    if (c->lengths && s->no_fixed) return console_fail(OUTRIDER_USAGE, "--lengths and --no-fixed exclude each other");
    return OUTRIDER_OK;
}

static int run_classes(const char *path, bench_settings *s)
{
    bench_classes_settings *c = &s->classes;
    if (!c->lengths && !s->no_fixed) c->lengths = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 6 | 1 << 8;
    c->tokens = s->tokens ? (uint32_t)s->tokens : 64;
    c->rounds = s->rounds ? s->rounds : 3;
    c->json = s->json;
    return bench_classes(path, &s->model, c);
}

static void fill_defaults(bench_settings *s)
{
    if (!s->prompt_tokens) s->prompt_tokens = 512;
    if (!s->tokens) s->tokens = 32;
    if (!s->rounds) s->rounds = 5;
    if (!s->widths) s->widths = 0x1fe;
}

static int run(const command *self, int argc, char **argv)
{
    bench_settings s = {.json = false};
    bench_state b = {.settings = &s};
    operands found;
    outrider_error err;
    int code;
    if (!options_parse(self, argc, argv, &s, &found, &code)) return code;
    const char *path = found.n ? found.items[0] : load_demo_path();
    if (!path)
        return console_fail(OUTRIDER_USAGE, "no models/demo here, nor beside the program; name a model: outrider bench MODEL");
    code = check(&s);
    if (code || s.by_class) return code ? code : run_classes(path, &s);
    fill_defaults(&s);
    code = load_model(path, &s.model, true, &b.model);
    if (!code && (prepare(&b, &err) || measure_all(&b, &err))) code = console_fail_with(&err);
    if (!code && interrupt_seen()) code = console_fail(OUTRIDER_CANCELLED, "interrupted");
    if (!code && s.json)
        code = print_json(&b, path);
    else if (!code)
        print_text(&b, path);
    close_state(&b);
    return code;
}

static const option *const tables[] = {options, load_draft_options, load_text_options, load_model_options, load_verbose_options,
                                       NULL};

const command command_bench = {
    "bench",
    "[MODEL] [options]",
    0,
    1,
    "measure what prompts, tokens, verifies and draft steps cost here",
    "Measures a model or a pair on this machine: reading a prompt, plain decoding, verifies by width, draft steps; and the "
    "memory's read "
    "bandwidth in the same run, which is the limit of plain decoding. Without MODEL the pair that comes with the source is "
    "used. "
    "No tokenizer is needed.\n"
    "\n"
    "With --classes it measures whole answers: for each class of prompts the speed plain and drafted, what became of the "
    "drafts, and the fixed draft length that would have been best.\n"
    "\n"
    "Example: outrider bench models/demo --classes --svg classes.svg",
    tables,
    run,
};
