/* The memory plan: what a run takes, computed from the files' headers and level tables before anything is allocated. */
#include <stdio.h>
#include <sys/stat.h>

#include "engine/engine.h"

enum { DEFAULT_CONTEXT = 4096 };

/* Program, libraries, heap of small things and stacks; measured at under 20 MB with all libraries loaded, doubled for safety. */
static const uint64_t PROCESS_BYTES = (uint64_t)40 << 20;

/* What one of the two models takes. */
typedef struct part_need {
    model_config config;
    weights_need weights;
} part_need;

static outrider_status read_need(part_need *need, const char *path, const kernel_table *table, pool *threads,
                                 outrider_error *err)
{
    trtc_file file;
    const outrider_status status = trtc_open(&file, path, err);
    if (status) return status;
    need->config = config_from_trtc(&file.header);
    need->weights = weights_plan(&file, table, threads);
    trtc_close(&file);
    return OUTRIDER_OK;
}

/* Bytes of a tokenizer in memory: tables over ids and merges, and the JSON text itself while it is read. */
static uint64_t text_bytes(const char *dir)
{
    bytes path = {0};
    struct stat st;
    uint64_t size = 0;
    if (bytes_add_format(&path, "%s/tokenizer.json", dir) && stat(path.data, &st) == 0) size = (uint64_t)st.st_size;
    bytes_free(&path);
    return 4 * size + ((uint64_t)1 << 20);
}

static uint64_t kv_bytes(const model_config *c, uint32_t context)
{
    return ((uint64_t)context + ATTEND_CHUNK - 1) / ATTEND_CHUNK * ATTEND_CHUNK * kv_bytes_per_token(c);
}

/* Fills the parts that depend on the context, and the sum. */
static void plan_for(outrider_memory_plan *plan, const part_need *needs, int parts, int threads, uint32_t context)
{
    plan->context = context;
    plan->total = plan->text + plan->process;
    for (int i = 0; i < parts; i++) {
        const model_config *c = &needs[i].config;
        const size_t logits = i == OUTRIDER_VERIFIER ? OUTRIDER_MAX_ROWS : 1;
        plan->weights[i] = needs[i].weights.resident_bytes;
        plan->kv[i] = kv_bytes(c, context);
        plan->scratch[i] = forward_scratch_bytes(c, needs[i].weights.widest, threads, PASS_ROWS, OUTRIDER_MAX_ROWS, context) +
                           logits * (uint64_t)c->vocab * sizeof(float) + (uint64_t)context * sizeof(uint32_t);
        if (i == OUTRIDER_VERIFIER) plan->scratch[i] += ngram_bytes(context);
        plan->total += plan->weights[i] + plan->kv[i] + plan->scratch[i];
    }
}

static outrider_status refuse(const outrider_memory_plan *p, uint64_t limit, outrider_error *err)
{
    return error_set(err, OUTRIDER_NO_MEMORY,
                     "not enough memory: the plan needs %llu bytes, the limit is %llu: weights %llu + %llu, KV cache of %u "
                     "tokens %llu + %llu, "
                     "scratch %llu + %llu, text %llu, process %llu",
                     (unsigned long long)p->total, (unsigned long long)limit, (unsigned long long)p->weights[0],
                     (unsigned long long)p->weights[1], p->context, (unsigned long long)p->kv[0], (unsigned long long)p->kv[1],
                     (unsigned long long)p->scratch[0], (unsigned long long)p->scratch[1], (unsigned long long)p->text,
                     (unsigned long long)p->process);
}

/* The largest context whose plan stays within the limit, by bisection (the plan grows with the context); at least one page. */
static uint32_t largest_context(outrider_memory_plan *plan, const part_need *needs, int parts, int threads, uint32_t most,
                                uint64_t limit)
{
    uint32_t least = most < ATTEND_CHUNK ? most : ATTEND_CHUNK;
    if (!limit) return most;
    while (least < most) {
        const uint32_t middle = least + (most - least + 1) / 2;
        plan_for(plan, needs, parts, threads, middle);
        if (plan->total <= limit)
            least = middle;
        else
            most = middle - 1;
    }
    return least;
}

outrider_status engine_plan(outrider_memory_plan *plan, const char *const files[2], const char *text_dir,
                            const outrider_model_options *o, const kernel_table *table, pool *threads, outrider_error *err)
{
    part_need needs[2];
    int parts = 0;
    uint32_t most = UINT32_MAX;
    *plan = (outrider_memory_plan){.process = PROCESS_BYTES, .text = text_dir ? text_bytes(text_dir) : 0};
    uint64_t loading = 0;
    for (; parts < 2 && files[parts]; parts++) {
        const outrider_status status = read_need(&needs[parts], files[parts], table, threads, err);
        if (status) return status;
        if ((uint32_t)needs[parts].config.max_positions < most) most = (uint32_t)needs[parts].config.max_positions;
        if (needs[parts].weights.loading_bytes > loading) loading = needs[parts].weights.loading_bytes;
    }
    plan->process += loading;
    uint32_t context = o->context;
    if (context == OUTRIDER_CONTEXT_AUTO)
        context = largest_context(plan, needs, parts, pool_threads(threads), most, o->memory_bytes);
    else if (context == 0)
        context = most < DEFAULT_CONTEXT ? most : DEFAULT_CONTEXT;
    else if (context > most)
        return error_set(err, OUTRIDER_USAGE, "a context of %u tokens was asked for; %s holds at most %u", context,
                         parts > 1 ? "this pair" : "this model", most);
    plan_for(plan, needs, parts, pool_threads(threads), context);
    return o->memory_bytes && plan->total > o->memory_bytes ? refuse(plan, o->memory_bytes, err) : OUTRIDER_OK;
}
