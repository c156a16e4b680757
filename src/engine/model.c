/* Opening a model or a pair: kernels, threads, weights of both parts, and the text files beside them while the weights are packed. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "engine/engine.h"

/* The text files load on a thread of their own while this one packs weights. */
typedef struct text_loading {
    outrider_model *model;
    const char *dir, *chat_template;
    outrider_error err;
    outrider_status status;
} text_loading;

static void *load_text(void *arg)
{
    text_loading *t = arg;
    const double start = clock_seconds();
    t->status = engine_text_open(t->model, t->dir, t->chat_template, &t->err);
    t->model->tokenizer_seconds = clock_seconds() - start;
    return NULL;
}

typedef struct weights_report {
    const outrider_model_options *options;
    const char *what;
} weights_report;

static void report_weights(void *user, uint64_t done, uint64_t total)
{
    const weights_report *r = user;
    r->options->progress(r->options->progress_user, r->what, done, total);
}

static outrider_status open_part(outrider_model *m, outrider_part part, const char *path, const outrider_model_options *o,
                                 outrider_error *err)
{
    engine_part *p = &m->parts[part];
    weights_report report = {o, part == OUTRIDER_DRAFT ? "packing draft" : "packing verifier"};
    p->path = strdup(path);
    if (!p->path) return error_memory(err, "a path", strlen(path) + 1);
    const outrider_status status =
        weights_open(&p->weights, path, &m->kernels, m->threads, o->progress ? report_weights : NULL, &report, err);
    p->present = status == OUTRIDER_OK;
    return status;
}

static outrider_status open_pass(outrider_model *m, engine_part *p, outrider_error *err)
{
    if (p->weights.config.head_dim > ATTEND_MAX_DIM)
        return error_set(err, OUTRIDER_BAD_FILE, "%s: head_dim: at most %d is supported, found %d", p->path, ATTEND_MAX_DIM,
                         p->weights.config.head_dim);
    return forward_open(&p->pass, &p->weights, &m->kernels, m->threads, PASS_ROWS, OUTRIDER_MAX_ROWS, m->context, err);
}

/* A draft must speak the verifier's tokens. Its own tokenizer is compared where it has one of its own; the sizes of the
 * vocabularies may differ by padding rows only. */
static outrider_status check_pair(outrider_model *m, const char *draft_dir, const char *text_dir, outrider_error *err)
{
    const size_t verifier = (size_t)m->parts[0].weights.config.vocab, draft = (size_t)m->parts[1].weights.config.vocab;
    m->shared_vocab = verifier < draft ? verifier : draft;
    if (!m->tokenizer) {
        if (verifier == draft) return OUTRIDER_OK;
        return error_set(err, OUTRIDER_USAGE, "%s: vocab: expected %zu as in the verifier, found %zu", m->parts[1].path,
                         verifier, draft);
    }
    if (draft < tokenizer_size(m->tokenizer))
        return error_set(err, OUTRIDER_USAGE, "%s: vocab: the verifier's tokenizer has %zu ids, this draft only %zu",
                         m->parts[1].path, tokenizer_size(m->tokenizer), draft);
    struct stat ours, theirs;
    bytes path = {0}, own = {0};
    if (!bytes_add_format(&path, "%s/tokenizer.json", draft_dir) || !bytes_add_format(&own, "%s/tokenizer.json", text_dir)) {
        bytes_free(&path);
        bytes_free(&own);
        return error_memory(err, "a path", strlen(draft_dir));
    }
    outrider_status status = OUTRIDER_OK;
    const bool other = stat(path.data, &theirs) == 0 &&
                       (stat(own.data, &ours) != 0 || ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino);
    if (other) {
        tokenizer *t;
        status = tokenizer_open(&t, path.data, err);
        if (!status) {
            status = tokenizer_same(m->tokenizer, t, err);
            tokenizer_close(t);
        }
    }
    bytes_free(&path);
    bytes_free(&own);
    return status;
}

/* A draft only proposes, so its head may leave ids out. Byte-pair ids stand in the order of their merges, so the first 32k are nearly all that
 * text is made of; special tokens stand at the end of the vocabulary. */
static void choose_draft_head(outrider_model *m)
{
    enum { LOW_IDS = 32768, TAIL_IDS = 1024 };
    const size_t vocab = (size_t)m->parts[OUTRIDER_DRAFT].weights.config.vocab;
    m->draft_head = (forward_head){vocab, vocab};
    if (vocab < 2 * LOW_IDS) return;
    size_t tail = vocab - TAIL_IDS; /* without a tokenizer: as many as any model's special tokens and padding are */
    if (m->tokenizer) {
        tail = tokenizer_size(m->tokenizer);
        while (tail > LOW_IDS && tokenizer_is_added(m->tokenizer, (uint32_t)tail - 1)) tail--;
    }
    m->draft_head = (forward_head){LOW_IDS, tail > LOW_IDS ? tail : vocab};
}

/* Everything after the paths are known. */
static outrider_status load(outrider_model *m, const model_paths *paths, const model_paths *draft,
                            const outrider_model_options *o, outrider_error *err)
{
    text_loading text = {m, o->tokenizer_dir ? o->tokenizer_dir : paths->dir, o->chat_template, {0}, OUTRIDER_OK};
    pthread_t thread;
    const bool with_text = !o->no_tokenizer;
    if (with_text && pthread_create(&thread, NULL, load_text, &text))
        return error_set(err, OUTRIDER_FAILURE, "cannot start a thread for the tokenizer");
    outrider_status status = open_part(m, OUTRIDER_VERIFIER, paths->model, o, err);
    if (!status && draft) status = open_part(m, OUTRIDER_DRAFT, draft->model, o, err);
    if (with_text) pthread_join(thread, NULL);
    if (status) return status;
    if (text.status) {
        if (err) *err = text.err;
        return text.status;
    }
    const size_t vocab = (size_t)m->parts[0].weights.config.vocab;
    m->shared_vocab = vocab;
    if (m->tokenizer && tokenizer_size(m->tokenizer) > vocab)
        return error_set(err, OUTRIDER_BAD_FILE, "%s: vocab: the tokenizer in %s has %zu ids, the model only %zu", paths->model,
                         text.dir, tokenizer_size(m->tokenizer), vocab);
    if (draft) status = check_pair(m, draft->dir, text.dir, err);
    if (!status) status = open_pass(m, &m->parts[0], err);
    if (!status && draft) status = open_pass(m, &m->parts[1], err);
    if (!status && draft) choose_draft_head(m);
    return status;
}

static outrider_status start(outrider_model *m, const outrider_model_options *o, outrider_error *err)
{
    cpu_isa isa;
    outrider_status status = cpu_choose(o->cpu_mask, &isa, err);
    if (status) return status;
    const int threads = o->threads > 0 ? o->threads : cpu_available();
    if (threads > 256) return error_set(err, OUTRIDER_USAGE, "threads: at most 256, found %d", threads);
    kernels_fill(&m->kernels, isa);
    return pool_open(&m->threads, threads, err);
}

/* The files that path and options name. *draft is all NULL when there is none. */
static outrider_status find_files(const char *path, const outrider_model_options *o, model_paths *paths, model_paths *draft,
                                  outrider_error *err)
{
    *paths = *draft = (model_paths){0};
    outrider_status status = folder_resolve(path, paths, err);
    if (status || o->no_draft) return status;
    const char *draft_path = o->draft_path ? o->draft_path : paths->draft;
    if (!draft_path) return OUTRIDER_OK;
    status = folder_resolve(draft_path, draft, err);
    if (status) {
        model_paths_free(paths);
        return status;
    }
    if (o->draft_path && draft->draft) { /* a pair folder given as the draft: its small one is meant */
        free(draft->model);
        draft->model = draft->draft;
        draft->draft = NULL;
    }
    return OUTRIDER_OK;
}

/* Plans first, and only loads what fits. */
static outrider_status plan_and_load(outrider_model *m, const char *path, const outrider_model_options *o,
                                     outrider_memory_plan *plan, bool only_plan, outrider_error *err)
{
    model_paths paths, draft;
    outrider_status status = find_files(path, o, &paths, &draft, err);
    if (status) return status;
    status = start(m, o, err);
    if (!status) {
        const char *const files[2] = {paths.model, draft.model};
        status = engine_plan(plan, files,
                             o->no_tokenizer    ? NULL
                             : o->tokenizer_dir ? o->tokenizer_dir
                                                : paths.dir,
                             o, &m->kernels, m->threads, err);
    }
    m->context = plan->context;
    if (!status && !only_plan) status = load(m, &paths, draft.model ? &draft : NULL, o, err);
    model_paths_free(&paths);
    model_paths_free(&draft);
    return status;
}

static outrider_status open_or_plan(const char *path, const outrider_model_options *options, outrider_memory_plan *plan,
                                    outrider_model **model, outrider_error *err)
{
    const outrider_model_options none = OUTRIDER_MODEL_OPTIONS_INIT;
    const double begun = clock_seconds();
    outrider_memory_plan planned = {0};
    outrider_model *m = calloc(1, sizeof *m);
    if (!m) return error_memory(err, "a model", sizeof *m);
    pthread_mutex_init(&m->lock, NULL);
    const outrider_status status = plan_and_load(m, path, options ? options : &none, &planned, model == NULL, err);
    m->load_seconds = clock_seconds() - begun;
    if (!status && plan) *plan = planned;
    if (status || !model)
        outrider_model_close(m);
    else
        *model = m;
    return status;
}

outrider_status outrider_model_open(const char *path, const outrider_model_options *options, outrider_model **model,
                                    outrider_error *err)
{
    return open_or_plan(path, options, NULL, model, err);
}

outrider_status outrider_model_plan(const char *path, const outrider_model_options *options, outrider_memory_plan *plan,
                                    outrider_error *err)
{
    return open_or_plan(path, options, plan, NULL, err);
}

void outrider_model_close(outrider_model *m)
{
    if (!m) return;
    ensure(atomic_load(&m->sessions) == 0);
    for (int i = 0; i < 2; i++) {
        forward_close(m->parts[i].pass);
        weights_close(&m->parts[i].weights);
        free(m->parts[i].path);
    }
    engine_text_close(m);
    pool_close(m->threads);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

outrider_status outrider_model_get_info(const outrider_model *m, outrider_part part, outrider_model_info *info,
                                        outrider_error *err)
{
    if ((part != OUTRIDER_VERIFIER && part != OUTRIDER_DRAFT) || !m->parts[part].present)
        return error_set(err, OUTRIDER_USAGE, "this model has no draft");
    const weights *w = &m->parts[part].weights;
    const model_config *c = &w->config;
    *info = (outrider_model_info){
        .path = m->parts[part].path,
        .family = model_family_name(c->family),
        .layers = (uint32_t)c->n_layers,
        .hidden = (uint32_t)c->hidden,
        .heads = (uint32_t)c->n_heads,
        .kv_heads = (uint32_t)c->n_kv_heads,
        .head_dim = (uint32_t)c->head_dim,
        .intermediate = (uint32_t)c->intermediate,
        .vocab = (uint32_t)c->vocab,
        .max_positions = (uint32_t)c->max_positions,
        .tied = c->tied,
        .file_bytes = w->file_bytes,
        .weight_bytes = w->resident_bytes,
        .step_bytes = w->step_bytes,
        .kv_bytes_per_token = kv_bytes_per_token(c),
        .scratch_bytes =
            forward_scratch_bytes(c, forward_widest(w), pool_threads(m->threads), PASS_ROWS, OUTRIDER_MAX_ROWS, m->context),
        .split_rows = w->split_rows,
    };
    if (part == OUTRIDER_DRAFT && m->draft_head.low_end < m->draft_head.high_begin)
        info->step_bytes -= (m->draft_head.high_begin - m->draft_head.low_end) * (w->head.superblocks * SUPERBLOCK + sizeof(float));
    return OUTRIDER_OK;
}

void outrider_model_get_runtime(const outrider_model *m, outrider_runtime_info *info)
{
    *info = (outrider_runtime_info){cpu_isa_name(m->kernels.isa), pool_threads(m->threads), m->context, m->load_seconds,
                                    m->tokenizer_seconds};
}

const char *outrider_version(void) { return OUTRIDER_VERSION; }

void outrider_free(void *p) { free(p); }
