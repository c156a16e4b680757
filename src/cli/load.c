#include "cli/load.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/console.h"
#include "cli/plan.h"

const option load_model_options[] = {
    {"context", 'c', "N|auto",
     "tokens a session may hold (default: 4,096 or the model's own limit if that is less); auto: as many as --memory leaves "
     "room for; --ctx is the same option",
     OPTION_CONTEXT, offsetof(model_settings, context), 0, 0},
    {"ctx", 0, "N|auto", NULL, OPTION_CONTEXT, offsetof(model_settings, context), 0, 0},
    {"threads", 't', "N", "threads (default: as many as this process may use)", OPTION_NUMBER,
     offsetof(model_settings, threads), 1, 256},
    {"cpu-mask", 0, "SET", "highest instruction set to use: ref, avx2, avx512, neon, dotprod (default: the best there is)",
     OPTION_TEXT, offsetof(model_settings, cpu_mask), 0, 0},
    {"memory", 0, "SIZE",
     "refuse to load when the memory plan of one session comes to more: a number of bytes, or of KB, MB, GB (powers of 1000), "
     "KiB, MiB, GiB or K, M, G (powers of 1024), such as 1.5GiB",
     OPTION_BYTES, offsetof(model_settings, memory), 0, 0},
    {NULL, 0, NULL, NULL, OPTION_FLAG, 0, 0, 0},
};

const option load_verbose_options[] = {
    {"verbose", 'v', NULL, "say on stderr what memory is planned for, what was loaded, and how long it took", OPTION_FLAG,
     offsetof(model_settings, verbose), 0, 0},
    {NULL, 0, NULL, NULL, OPTION_FLAG, 0, 0, 0},
};

const option load_draft_options[] = {
    {"draft", 0, "MODEL", "the draft model, a container or a folder (default: the one in MODEL's own folder, if any)",
     OPTION_TEXT, offsetof(model_settings, draft), 0, 0},
    {"no-draft", 0, NULL, "leave the draft of MODEL's folder alone and run plain", OPTION_FLAG,
     offsetof(model_settings, no_draft), 0, 0},
    {NULL, 0, NULL, NULL, OPTION_FLAG, 0, 0, 0},
};

const option load_source_options[] = {
    {"draft", 0, "MODEL|ngram",
     "the draft model, a container or a folder (default: the one in MODEL's own folder, if any); the word ngram: no model, "
     "proposals are looked up in the text so far (a folder of that name is ./ngram)",
     OPTION_TEXT, offsetof(model_settings, source), 0, 0},
    {"ngram", 0, NULL, "look proposals up in the text so far where that does well, and ask the draft model elsewhere",
     OPTION_FLAG, offsetof(model_settings, ngram), 0, 0},
    {"no-draft", 0, NULL, "leave the draft of MODEL's folder alone and run plain", OPTION_FLAG,
     offsetof(model_settings, no_draft), 0, 0},
    {NULL, 0, NULL, NULL, OPTION_FLAG, 0, 0, 0},
};

const option load_text_options[] = {
    {"tokenizer", 0, "DIR", "folder of tokenizer.json and the chat files (default: the model's own)", OPTION_TEXT,
     offsetof(model_settings, tokenizer), 0, 0},
    {"chat-template", 0, "NAME", "chat template: chatml (default: the one in tokenizer_config.json)", OPTION_TEXT,
     offsetof(model_settings, chat_template), 0, 0},
    {NULL, 0, NULL, NULL, OPTION_FLAG, 0, 0, 0},
};

bool load_has_draft(const outrider_model *model)
{
    outrider_model_info info;
    return outrider_model_get_info(model, OUTRIDER_DRAFT, &info, NULL) == OUTRIDER_OK;
}

static bool only_ngram(const model_settings *settings) { return settings->source && !strcmp(settings->source, "ngram"); }

outrider_draft_kind load_draft_kind(const model_settings *settings)
{
    if (only_ngram(settings)) return OUTRIDER_DRAFT_KIND_NGRAM;
    return settings->ngram ? OUTRIDER_DRAFT_KIND_BOTH : OUTRIDER_DRAFT_KIND_MODEL;
}

bool load_can_draft(const model_settings *settings, const outrider_model *model)
{
    return load_draft_kind(settings) != OUTRIDER_DRAFT_KIND_MODEL || load_has_draft(model);
}

static void describe_part(const outrider_model *model, outrider_part part, const char *name)
{
    outrider_model_info m;
    if (outrider_model_get_info(model, part, &m, NULL)) return;
    fprintf(stderr,
            "%-8s  %s: %s, %u layers, hidden %u, %u query and %u KV heads of %u, intermediate %u, vocabulary %u, %s; "
            "file %s, resident %s, KV cache %s a token, %s split rows\n",
            name, m.path, m.family, m.layers, m.hidden, m.heads, m.kv_heads, m.head_dim, m.intermediate, m.vocab,
            m.tied ? "tied" : "untied", console_bytes(m.file_bytes), console_bytes(m.weight_bytes),
            console_bytes(m.kv_bytes_per_token), console_count(m.split_rows));
}

static void describe(const outrider_model *model)
{
    outrider_runtime_info runtime;
    outrider_model_get_runtime(model, &runtime);
    describe_part(model, OUTRIDER_VERIFIER, "verifier");
    describe_part(model, OUTRIDER_DRAFT, "draft");
    fprintf(stderr, "running   %s, %d threads, context %s; loaded in %.2f s, tokenizer in %.2f s\n", runtime.cpu,
            runtime.threads, console_count(runtime.context), runtime.load_seconds, runtime.tokenizer_seconds);
}

/* The library's options for these settings. Exit code as load_model. */
static int model_options(const model_settings *settings, bool no_tokenizer, outrider_model_options *options)
{
    const char *draft = settings->source && !only_ngram(settings) ? settings->source : settings->draft;
    if ((settings->draft || settings->source) && settings->no_draft)
        return console_fail(OUTRIDER_USAGE, "--draft and --no-draft exclude each other");
    if (settings->ngram && settings->no_draft) return console_fail(OUTRIDER_USAGE, "--ngram and --no-draft exclude each other");
    *options = (outrider_model_options)OUTRIDER_MODEL_OPTIONS_INIT;
    options->draft_path = draft;
    options->no_draft = settings->no_draft || only_ngram(settings);
    options->tokenizer_dir = settings->tokenizer;
    options->no_tokenizer = no_tokenizer;
    options->chat_template = settings->chat_template;
    options->cpu_mask = settings->cpu_mask;
    options->threads = (int)settings->threads;
    options->context = settings->context;
    options->memory_bytes = settings->memory;
    options->progress = console_progress_bytes;
    return OUTRIDER_OK;
}

int load_model(const char *path, const model_settings *settings, bool no_tokenizer, outrider_model **model)
{
    outrider_model_options options;
    outrider_memory_plan plan;
    outrider_error err;
    int code = model_options(settings, no_tokenizer, &options);
    if (code) return code;
    if (settings->verbose) {
        if (outrider_model_plan(path, &options, &plan, &err)) return console_fail_with(&err);
        plan_print(stderr, &plan);
    }
    outrider_status status = outrider_model_open(path, &options, model, &err);
    console_progress_end();
    if (status) return console_fail_with(&err);
    if (settings->verbose) describe(*model);
    return OUTRIDER_OK;
}

int load_plan(const char *path, const model_settings *settings, outrider_memory_plan *plan)
{
    outrider_model_options options;
    outrider_error err;
    int code = model_options(settings, false, &options);
    if (!code && outrider_model_plan(path, &options, plan, &err)) code = console_fail_with(&err);
    return code;
}

const char *load_demo_path(void)
{
    static char path[PATH_MAX];
    static const char *const beside[] = {"../models/demo", "../share/outrider/demo"};
    if (!access("models/demo/verifier.trtc", R_OK)) return "models/demo";
    char program[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n <= 0) return NULL;
    program[n] = 0;
    *strrchr(program, '/') = 0;
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        char file[PATH_MAX + 32];
        int length = snprintf(path, sizeof path, "%s/%s", program, beside[i]);
        if (length < 0 || length >= (int)sizeof path) return NULL;
        snprintf(file, sizeof file, "%s/verifier.trtc", path);
        if (!access(file, R_OK)) return path;
    }
    return NULL;
}
