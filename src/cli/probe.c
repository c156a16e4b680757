/* outrider probe: the argmax and the logits digest of every position, in the lines that tools/oracle.py prints. */
#include <errno.h>
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
    const char *ids, *digest, *dump;
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
    {"dump", 0, "FILE", "also write the logits of all IDS to this file: rows of float values, little endian, and nothing else",
     OPTION_TEXT, offsetof(probe_settings, dump), 0, 0},
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

/* How positions are computed and shown. */
typedef struct probing {
    outrider_session *session;
    size_t rows, vocab;
    int digits;
    FILE *dump; /* NULL: none */
    const char *dump_path;
} probing;

static outrider_status dump_failed(const probing *p, outrider_error *err)
{
    return error_set(err, OUTRIDER_FAILURE, "%s: %s", p->dump_path, strerror(errno));
}

/* Computes ids and prints a line for each; *next is what the last one chooses. */
static outrider_status print_positions(const probing *p, const uint32_t *ids, size_t n, uint32_t *next, outrider_error *err)
{
    for (size_t at = 0; at < n; at += p->rows) {
        size_t count = n - at < p->rows ? n - at : p->rows;
        outrider_status status = outrider_session_eval(p->session, ids + at, count, err);
        if (status) return status;
        for (size_t row = 0; row < count; row++) {
            char hex[65];
            status = outrider_session_argmax(p->session, row, next, err);
            if (status) return status;
            const float *logits = outrider_session_logits(p->session, row);
            row_digest(logits, p->vocab, hex);
            printf("%zu %u -> %u %.*s\n", at + row, ids[at + row], *next, p->digits, hex);
            if (p->dump && fwrite(logits, sizeof *logits, p->vocab, p->dump) != p->vocab) return dump_failed(p, err);
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

/* Opens session and dump; close_probing may be called after a failure too. */
static outrider_status open_probing(probing *p, outrider_model *model, outrider_error *err)
{
    outrider_session_options plain = OUTRIDER_SESSION_OPTIONS_INIT;
    outrider_model_info info;
    plain.role = OUTRIDER_ROLE_PLAIN;
    outrider_status status = outrider_model_get_info(model, OUTRIDER_VERIFIER, &info, err);
    if (!status) status = outrider_session_open(model, &plain, &p->session, err);
    if (status) return status;
    p->vocab = info.vocab;
    if (p->dump_path && !(p->dump = fopen(p->dump_path, "wb"))) return dump_failed(p, err);
    return OUTRIDER_OK;
}

/* What could not be written shows when the file is closed. */
static outrider_status close_probing(probing *p, outrider_status status, outrider_error *err)
{
    outrider_session_close(p->session);
    if (p->dump && fclose(p->dump) && !status) status = dump_failed(p, err);
    return status;
}

static int probe(const probe_settings *s, outrider_model *model, const uint32_t *ids, size_t n)
{
    probing p = {.rows = (size_t)s->rows, .digits = strcmp(s->digest, "full") ? 16 : 64, .dump_path = s->dump};
    outrider_error err;
    uint32_t next = 0;
    outrider_status status = open_probing(&p, model, &err);
    if (!status) status = print_positions(&p, ids, n, &next, &err);
    if (!status) status = print_greedy(p.session, next, s->greedy, &err);
    status = close_probing(&p, status, &err);
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
    if (strcmp(s.digest, "full") && strcmp(s.digest, "short"))
        return console_fail(OUTRIDER_USAGE, "--digest: '%s' is not short or full", s.digest);
    if (!s.ids) return console_fail(OUTRIDER_USAGE, "'outrider probe' needs --ids, such as --ids 1,2,3");
    if (!options_ids(s.ids, &ids, &n))
        return console_fail(OUTRIDER_USAGE, "--ids: '%s' is not a list of token ids such as 1,2,3", s.ids);
    s.model.no_draft = true;
    code = load_model(found.items[0], &s.model, true, &model);
    if (!code) code = probe(&s, model, ids, n);
    outrider_model_close(model);
    free(ids);
    return code;
}

static const option *const tables[] = {options, load_model_options, load_verbose_options, NULL};

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
