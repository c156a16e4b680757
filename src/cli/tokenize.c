/* outrider tokenize: text to token ids, and back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/load.h"
#include "cli/prompt.h"
#include "cli/report.h"

typedef struct tokenize_settings {
    model_settings model;
    prompt_settings prompt;
    const char *decode;
    bool specials, chat, json;
} tokenize_settings;

static const option options[] = {
    {"prompt", 'p', "TEXT", "the text", OPTION_TEXT, offsetof(tokenize_settings, prompt.text), 0, 0},
    {"file", 'f', "FILE",
     "read the text from a file, byte for byte; -: from standard input, which is also read when there is neither -p "
     "nor -f",
     OPTION_TEXT, offsetof(tokenize_settings, prompt.file), 0, 0},
    {"decode", 'd', "IDS", "print the text of token ids (1,2,3) instead", OPTION_TEXT, offsetof(tokenize_settings, decode), 0,
     0},
    {"specials", 0, NULL, "special tokens count: those written in the text become one id, those among the ids are printed",
     OPTION_FLAG, offsetof(tokenize_settings, specials), 0, 0},
    {"chat", 0, NULL, "the text is a user's message: print the ids of the whole chat prompt", OPTION_FLAG,
     offsetof(tokenize_settings, chat), 0, 0},
    {"json", 0, NULL, "print one JSON object", OPTION_FLAG, offsetof(tokenize_settings, json), 0, 0},
    {NULL, 0, NULL, NULL, OPTION_FLAG, 0, 0, 0},
};

static int print_ids(const tokenize_settings *s, const uint32_t *ids, size_t n)
{
    if (s->json) return report_print(json_pack("{s:o}", "ids", report_ids(ids, n)));
    for (size_t i = 0; i < n; i++) printf("%s%u", i ? "," : "", ids[i]);
    putchar('\n');
    return OUTRIDER_OK;
}

static int decode(const tokenize_settings *s, const outrider_model *model)
{
    uint32_t *ids;
    size_t n, size;
    char *text;
    outrider_model_info info;
    outrider_error err;
    if (outrider_model_get_info(model, OUTRIDER_VERIFIER, &info, &err)) return console_fail_with(&err);
    if (!options_ids(s->decode, &ids, &n))
        return console_fail(OUTRIDER_USAGE, "--decode: '%s' is not a list of token ids such as 1,2,3", s->decode);
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= info.vocab) {
            int code =
                console_fail(OUTRIDER_USAGE, "--decode: token id %u is outside the vocabulary of %u ids", ids[i], info.vocab);
            free(ids);
            return code;
        }
    outrider_status status = outrider_detokenize(model, ids, n, s->specials ? OUTRIDER_SPECIALS : 0, &text, &size, &err);
    free(ids);
    if (status) return console_fail_with(&err);
    int code = OUTRIDER_OK;
    if (s->json)
        code = report_print(json_pack("{s:o}", "text", report_text(text, size)));
    else
        fwrite(text, 1, size, stdout);
    outrider_free(text);
    return code;
}

static int encode_chat(const tokenize_settings *s, outrider_model *model, const char *text)
{
    outrider_session_options plain = OUTRIDER_SESSION_OPTIONS_INIT;
    outrider_session *session;
    outrider_message message = {"user", text};
    outrider_error err;
    plain.role = OUTRIDER_ROLE_PLAIN;
    if (outrider_session_open(model, &plain, &session, &err)) return console_fail_with(&err);
    int code;
    size_t n;
    if (outrider_session_push_chat(session, &message, 1, 0, &err)) {
        code = console_fail_with(&err);
    } else {
        const uint32_t *ids = outrider_session_tokens(session, &n);
        code = print_ids(s, ids, n);
    }
    outrider_session_close(session);
    return code;
}

static int encode(const tokenize_settings *s, const outrider_model *model, const bytes *text)
{
    uint32_t *ids;
    size_t n;
    outrider_error err;
    if (outrider_tokenize(model, text->data ? text->data : "", text->size, s->specials ? OUTRIDER_SPECIALS : 0, &ids, &n, &err))
        return console_fail_with(&err);
    int code = print_ids(s, ids, n);
    outrider_free(ids);
    return code;
}

static int run(const command *self, int argc, char **argv)
{
    tokenize_settings s = {.decode = NULL};
    operands found;
    outrider_model *model = NULL;
    bytes text = {0};
    int code;
    if (!options_parse(self, argc, argv, &s, &found, &code)) return code;
    if (s.decode && (s.prompt.text || s.prompt.file || s.chat))
        return console_fail(OUTRIDER_USAGE, "--decode takes ids; -p, -f and --chat have no place beside it");
    if (!s.decode) code = prompt_read(&s.prompt, &text);
    if (!code && s.chat) {
        prompt_trim(&text);
        if (text.data && memchr(text.data, 0, text.size))
            code = console_fail(OUTRIDER_USAGE, "the text holds a zero byte, which a chat message cannot");
    }
    s.model.no_draft = true;
    if (!code) code = load_model(found.items[0], &s.model, false, &model);
    if (!code)
        code = s.decode ? decode(&s, model)
               : s.chat ? encode_chat(&s, model, text.data ? text.data : "")
                        : encode(&s, model, &text);
    outrider_model_close(model);
    bytes_free(&text);
    return code;
}

static const option *const tables[] = {options, load_text_options, load_model_options, load_verbose_options, NULL};

const command command_tokenize = {
    "tokenize",
    "MODEL [options]",
    1,
    1,
    "print the token ids of a text, or the text of ids",
    "Prints the token ids of a text as 1,2,3, the form that 'outrider probe --ids' takes; with --decode the other way round, "
    "byte for "
    "byte.",
    tables,
    run,
};
