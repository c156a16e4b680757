/* outrider probe: the argmax and the logits digest of every position, in the lines that tools/oracle.py prints. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/load.h"

typedef struct probe_settings {
    model_settings model;
    const char *ids, *digest;
    int64_t greedy, rows;
} probe_settings;

static const option options[] = {
    {"ids", 0, "IDS", "token ids to compute, as 1,2,3", OPTION_TEXT, offsetof(probe_settings, ids), 0, 0},
    {"greedy", 0, "N", "then go on greedily and print N ids (default 0)", OPTION_NUMBER, offsetof(probe_settings, greedy), 0,
     INT32_MAX},
    {"digest", 0, "FORM", "short: the first 16 digits (default); full: all 64", OPTION_TEXT, offsetof(probe_settings, digest),
     0, 0},
    {"rows", 0, "N", "ids a forward pass, 1 (default) to 17; the output is the same", OPTION_NUMBER,
     offsetof(probe_settings, rows), 1, OUTRIDER_MAX_ROWS},
    {NULL, 0, NULL, NULL, OPTION_FLAG, 0, 0, 0},
};

/* What a row of float logits hashes to: its values as little-endian f32. */
static void row_digest(const float *row, size_t vocab, char hex[65])
{
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the digest is defined over little-endian values"
#endif
    digest_of(row, vocab * sizeof *row, hex);
}

/* Computes ids and prints a line for each; *next is what the last one chooses. */
static outrider_status print_positions(outrider_session *session, const uint32_t *ids, size_t n, size_t rows, size_t vocab,
                                       int digits, uint32_t *next, outrider_error *err)
{
    for (size_t at = 0; at < n; at += rows) {
        size_t count = n - at < rows ? n - at : rows;
        outrider_status status = outrider_session_eval(session, ids + at, count, err);
        if (status) return status;
        for (size_t row = 0; row < count; row++) {
            char hex[65];
            status = outrider_session_argmax(session, row, next, err);
            if (status) return status;
            row_digest(outrider_session_logits(session, row), vocab, hex);
            printf("%zu %u -> %u %.*s\n", at + row, ids[at + row], *next, digits, hex);
        }
    }
    return OUTRIDER_OK;
}

/* The line of ids that follow; each but the last is computed to find the next. */
static outrider_status print_greedy(outrider_session *session, uint32_t next, int64_t n, outrider_error *err)
{
    bytes line = {0};
    outrider_status status = OUTRIDER_OK;
    for (int64_t i = 0; i < n && !status; i++) {
        if (!bytes_add_format(&line, "%s%u", i ? "," : "", next)) status = error_memory(err, "the ids", line.size);
        if (!status && i + 1 < n) status = outrider_session_eval(session, &next, 1, err);
        if (!status && i + 1 < n) status = outrider_session_argmax(session, 0, &next, err);
    }
    if (!status && n) printf("greedy %s\n", line.data);
    bytes_free(&line);
    return status;
}

static int probe(const probe_settings *s, outrider_model *model, const uint32_t *ids, size_t n, int digits)
{
    outrider_session_options options_plain = OUTRIDER_SESSION_OPTIONS_INIT;
    outrider_session *session;
    outrider_model_info info;
    outrider_error err;
    uint32_t next = 0;
    options_plain.role = OUTRIDER_ROLE_PLAIN;
    outrider_status status = outrider_model_get_info(model, OUTRIDER_VERIFIER, &info, &err);
    if (!status) status = outrider_session_open(model, &options_plain, &session, &err);
    if (status) return console_fail_with(&err);
    status = print_positions(session, ids, n, (size_t)s->rows, info.vocab, digits, &next, &err);
    if (!status) status = print_greedy(session, next, s->greedy, &err);
    outrider_session_close(session);
    return status ? console_fail_with(&err) : OUTRIDER_OK;
}

static int run(const command *self, int argc, char **argv)
{
    probe_settings s = {.rows = 1, .digest = "short"};
    operands found;
    outrider_model *model = NULL;
    uint32_t *ids = NULL;
    size_t n;
    int code;
    if (!options_parse(self, argc, argv, &s, &found, &code)) return code;
    bool full = !strcmp(s.digest, "full");
    if (!full && strcmp(s.digest, "short"))
        return console_fail(OUTRIDER_USAGE, "--digest: '%s' is not short or full", s.digest);
    if (!s.ids) return console_fail(OUTRIDER_USAGE, "'outrider probe' needs --ids, such as --ids 1,2,3");
    if (!options_ids(s.ids, &ids, &n))
        return console_fail(OUTRIDER_USAGE, "--ids: '%s' is not a list of token ids such as 1,2,3", s.ids);
    s.model.no_draft = true;
    code = load_model(found.items[0], &s.model, true, &model);
    if (!code) code = probe(&s, model, ids, n, full ? 64 : 16);
    outrider_model_close(model);
    free(ids);
    return code;
}

static const option *const tables[] = {options, load_model_options, NULL};

const command command_probe = {
    "probe",
    "MODEL --ids IDS [options]",
    1,
    1,
    "print what each position chooses, and the digest of its logits",
    "Computes token ids and prints for each: its position, the id, the id that follows greedily, and the SHA-256 of its logits "
    "(float "
    "values, little endian). tools/oracle.py prints the same lines from an independent program. No tokenizer is needed.\n"
    "\n"
    "Example: outrider probe models/demo --ids 1,2,3 --greedy 8",
    tables,
    run,
};
