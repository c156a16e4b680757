/* A stand-in for the library, so that the command can be tested against an engine that fails: test_cli_faults.py links it
 * with src/cli. Its "models" are names of faults, comma separated: "good", "id=17" (the drafted stream has another id as its
 * 18th token), "logits=17" (another logits row there), "short=17" (it ends there), "slow" (a step takes 5 ms), "deaf" (nothing
 * ends an answer early), "fail=17" (generate fails), "nomem", "bad", "nodraft", "options" (opening fails and says what was
 * asked for), "mismatch" (inspecting shows a table and fails). Tokens are bytes; each is the next letter of the alphabet, every
 * seventh a space; the next answer goes on from there, unless the model is "restart": then each begins, and counts, anew. */
#include "outrider.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/digest.h"
#include "base/error.h"

enum { VOCAB = 256, CONTEXT = 4096 };

struct outrider_model {
    char path[256];
    long id_at, logits_at, short_at, fail_at; /* -1: never */
    bool slow, deaf, restart, draft;
};

struct outrider_session {
    outrider_model *model;
    outrider_role role;
    uint32_t history[CONTEXT + 1];
    size_t n;
    uint64_t emitted;
    digest *ids, *logits;
    size_t rows;
    float row[VOCAB];
    atomic_bool cancel;
};

const char *outrider_version(void) { return OUTRIDER_VERSION; }

void outrider_free(void *p) { free(p); }

static long fault(const char *path, const char *name)
{
    const char *at = strstr(path, name);
    return at ? atol(at + strlen(name)) : -1;
}

static outrider_status check_path(const char *path, const outrider_model_options *o, outrider_error *err)
{
    if (strstr(path, "nomem")) return error_set(err, OUTRIDER_NO_MEMORY, "not enough memory: 1 bytes for everything");
    if (strstr(path, "bad")) return error_set(err, OUTRIDER_BAD_FILE, "%s: magic: expected TRTC", path);
    if (strstr(path, "options"))
        return error_set(err, OUTRIDER_FAILURE, "context %u, memory %llu", o->context, (unsigned long long)o->memory_bytes);
    return OUTRIDER_OK;
}

outrider_status outrider_model_plan(const char *path, const outrider_model_options *o, outrider_memory_plan *plan,
                                    outrider_error *err)
{
    const bool draft = !strstr(path, "nodraft") && !o->no_draft;
    const outrider_status status = check_path(path, o, err);
    if (status) return status;
    *plan = (outrider_memory_plan){.weights = {3u << 20, draft ? 1000 : 0},
                                   .kv = {UINT64_C(5) << 30, draft ? 2048 : 0},
                                   .scratch = {10, draft ? 20 : 0},
                                   .text = o->no_tokenizer ? 0 : 30,
                                   .process = 40,
                                   .context = CONTEXT};
    plan->total = plan->text + plan->process;
    for (int i = 0; i < 2; i++) plan->total += plan->weights[i] + plan->kv[i] + plan->scratch[i];
    return OUTRIDER_OK;
}

outrider_status outrider_model_open(const char *path, const outrider_model_options *o, outrider_model **model,
                                    outrider_error *err)
{
    const outrider_status status = check_path(path, o, err);
    if (status) return status;
    outrider_model *m = calloc(1, sizeof *m);
    ensure(m);
    snprintf(m->path, sizeof m->path, "%s", path);
    m->id_at = fault(path, "id=");
    m->logits_at = fault(path, "logits=");
    m->short_at = fault(path, "short=");
    m->fail_at = fault(path, "fail=");
    m->slow = strstr(path, "slow") != NULL;
    m->deaf = strstr(path, "deaf") != NULL;
    m->restart = strstr(path, "restart") != NULL;
    m->draft = !strstr(path, "nodraft") && !o->no_draft;
    if (o->progress) o->progress(o->progress_user, "packing verifier", 10, 10);
    *model = m;
    return OUTRIDER_OK;
}

void outrider_model_close(outrider_model *m) { free(m); }

outrider_status outrider_model_get_info(const outrider_model *m, outrider_part part, outrider_model_info *info,
                                        outrider_error *err)
{
    if (part == OUTRIDER_DRAFT && !m->draft) return error_set(err, OUTRIDER_USAGE, "this model has no draft");
    *info = (outrider_model_info){.path = m->path, .family = "qwen3", .layers = 1, .vocab = VOCAB, .step_bytes = 1000};
    return OUTRIDER_OK;
}

void outrider_model_get_runtime(const outrider_model *m, outrider_runtime_info *info)
{
    (void)m;
    *info = (outrider_runtime_info){"ref", 1, CONTEXT, 0.25, 0.125};
}

outrider_status outrider_inspect(const char *path, bool json, outrider_progress progress, void *user, char **text,
                                 outrider_error *err)
{
    *text = NULL;
    if (strstr(path, "bad")) return error_set(err, OUTRIDER_BAD_FILE, "%s: magic: expected TRTC", path);
    progress(user, "reading", 1, 1);
    *text = strdup(json ? "{}" : "a table\n");
    return strstr(path, "mismatch") ? error_set(err, OUTRIDER_BAD_FILE, "%s: size: one or the other", path) : OUTRIDER_OK;
}

outrider_status outrider_tokenize(const outrider_model *m, const char *text, size_t size, unsigned flags, uint32_t **ids,
                                  size_t *n, outrider_error *err)
{
    (void)m, (void)flags, (void)err;
    *ids = malloc((size + 1) * sizeof **ids);
    for (size_t i = 0; i < size; i++) (*ids)[i] = (unsigned char)text[i];
    *n = size;
    return OUTRIDER_OK;
}

outrider_status outrider_detokenize(const outrider_model *m, const uint32_t *ids, size_t n, unsigned flags, char **text,
                                    size_t *size, outrider_error *err)
{
    (void)m, (void)flags, (void)err;
    *text = malloc(n + 1);
    for (size_t i = 0; i < n; i++) (*text)[i] = (char)ids[i];
    (*text)[n] = 0;
    *size = n;
    return OUTRIDER_OK;
}

outrider_status outrider_session_open(outrider_model *model, const outrider_session_options *o, outrider_session **session,
                                      outrider_error *err)
{
    (void)err;
    outrider_session *s = calloc(1, sizeof *s);
    ensure(s);
    s->model = model;
    s->role = o ? o->role : OUTRIDER_ROLE_PAIR;
    if (o && o->digests) {
        s->ids = digest_open();
        s->logits = digest_open();
    }
    *session = s;
    return OUTRIDER_OK;
}

void outrider_session_close(outrider_session *s)
{
    if (!s) return;
    digest_close(s->ids);
    digest_close(s->logits);
    free(s);
}

outrider_status outrider_session_push_tokens(outrider_session *s, const uint32_t *ids, size_t n, outrider_error *err)
{
    if (n > CONTEXT - s->n) return error_set(err, OUTRIDER_USAGE, "%zu tokens and %zu do not fit in %d", s->n, n, CONTEXT);
    memcpy(s->history + s->n, ids, n * sizeof *ids);
    s->n += n;
    return OUTRIDER_OK;
}

outrider_status outrider_session_push_text(outrider_session *s, const char *text, size_t size, unsigned flags,
                                           outrider_error *err)
{
    uint32_t *ids;
    size_t n;
    outrider_tokenize(s->model, text, size, flags, &ids, &n, err);
    outrider_status status = outrider_session_push_tokens(s, ids, n, err);
    free(ids);
    return status;
}

outrider_status outrider_session_push_chat(outrider_session *s, const outrider_message *messages, size_t n, unsigned flags,
                                           outrider_error *err)
{
    outrider_status status = OUTRIDER_OK;
    for (size_t i = 0; i < n && !status; i++)
        status = outrider_session_push_text(s, messages[i].content, strlen(messages[i].content), flags, err);
    return status;
}

const uint32_t *outrider_session_tokens(const outrider_session *s, size_t *n)
{
    *n = s->n;
    return s->history;
}

outrider_status outrider_session_truncate(outrider_session *s, size_t n, outrider_error *err)
{
    (void)err;
    ensure(n <= s->n);
    s->n = n;
    if (!n && s->model->restart) s->emitted = 0;
    return OUTRIDER_OK;
}

void outrider_session_cancel(outrider_session *s) { atomic_store(&s->cancel, true); }

/* The next token, and the value that its logits row hashes to. */
static uint32_t choose(outrider_session *s, int32_t *row)
{
    const outrider_model *m = s->model;
    const bool drafted = s->role == OUTRIDER_ROLE_PAIR && m->draft;
    uint32_t id = s->emitted % 7 == 6 ? (uint32_t)' ' : 'a' + (uint32_t)(s->emitted % 26);
    *row = (int32_t)id;
    if (drafted && (long)s->emitted == m->id_at) id = '!';
    if (drafted && (long)s->emitted == m->logits_at) *row = -1;
    return id;
}

/* Steps of four tokens, three of them drafted, after a first one that is alone. */
outrider_status outrider_session_generate(outrider_session *s, const outrider_generate_options *o, outrider_on_text on_text,
                                          void *user, outrider_result *result, outrider_error *err)
{
    const bool drafted = s->role == OUTRIDER_ROLE_PAIR && s->model->draft;
    outrider_result r = {.finish = OUTRIDER_FINISH_LENGTH, .stop_index = -1, .prompt_tokens = s->n, .prefill_seconds = 0.5};
    uint64_t cap = o->max_tokens ? o->max_tokens : 100000;
    atomic_store(&s->cancel, false);
    while (r.tokens < cap) {
        if (s->n == CONTEXT || (atomic_load(&s->cancel) && !s->model->deaf)) {
            r.finish = s->n == CONTEXT ? OUTRIDER_FINISH_CONTEXT : OUTRIDER_FINISH_CANCELLED;
            break;
        }
        if (s->model->fail_at >= 0 && (long)s->emitted >= s->model->fail_at)
            return error_set(err, OUTRIDER_FAILURE, "layer 3: a value is not finite");
        if (drafted && (long)s->emitted >= s->model->short_at && s->model->short_at >= 0) break;
        if (s->model->slow) nanosleep(&(struct timespec){0, 5000000}, NULL);
        uint32_t ids[4];
        char text[4];
        size_t n = 0, most = drafted && r.tokens ? 4 : 1;
        for (; n < most && r.tokens < cap && s->n < CONTEXT; n++, r.tokens++, s->emitted++) {
            int32_t row;
            ids[n] = choose(s, &row);
            text[n] = (char)ids[n];
            s->history[s->n++] = ids[n];
            if (s->ids) digest_add(s->ids, &ids[n], sizeof ids[n]);
            if (s->logits) digest_add(s->logits, &row, sizeof row);
        }
        r.verifies += r.tokens > n;
        if (r.tokens > n) r.widths[most]++;
        for (size_t i = 0; i + 1 < n; i++) {
            r.proposed_at[i]++, r.proposed++;
            r.accepted_at[i]++, r.accepted++;
        }
        if (on_text && !on_text(user, text, n, ids, n) && !s->model->deaf) {
            r.finish = OUTRIDER_FINISH_CANCELLED;
            break;
        }
    }
    r.decode_seconds = 0.001 * (double)r.tokens / (drafted ? 2 : 1);
    if (result) *result = r;
    return OUTRIDER_OK;
}

outrider_status outrider_session_eval(outrider_session *s, const uint32_t *ids, size_t n, outrider_error *err)
{
    s->rows = n;
    return outrider_session_push_tokens(s, ids, n, err);
}

const float *outrider_session_logits(const outrider_session *s, size_t row) { return row < s->rows ? s->row : NULL; }

outrider_status outrider_session_argmax(const outrider_session *s, size_t row, uint32_t *id, outrider_error *err)
{
    if (s->model->fail_at >= 0) return error_set(err, OUTRIDER_FAILURE, "a logit is not finite");
    *id = (uint32_t)(row + s->n) % VOCAB;
    return OUTRIDER_OK;
}

outrider_status outrider_session_digests(const outrider_session *s, char ids_hex[65], char logits_hex[65], outrider_error *err)
{
    if (!s->ids) return error_set(err, OUTRIDER_USAGE, "no digests");
    digest_hex(s->ids, ids_hex);
    digest_hex(s->logits, logits_hex);
    return OUTRIDER_OK;
}
