/* `outrider inspect`, from the library's side. */
#include <stdlib.h>

#include "engine/engine.h"
#include "weights/inspect.h"

typedef struct reading {
    outrider_progress progress;
    void *user;
} reading;

static void report(void *user, uint64_t done, uint64_t total)
{
    const reading *r = user;
    r->progress(r->user, "reading", done, total);
}

/* Scratch of a run with the default threads and context; extra rows are counted as if all stood in one product. */
static uint64_t scratch_bytes(const inspect_report *r)
{
    const model_config *c = &r->config;
    const size_t qkv = ((size_t)c->n_heads + 2 * (size_t)c->n_kv_heads) * (size_t)c->head_dim,
                 gate_up = 2 * (size_t)c->intermediate;
    size_t widest = qkv > gate_up ? qkv : gate_up;
    if ((size_t)c->hidden > widest) widest = (size_t)c->hidden;
    const size_t context = c->max_positions < 4096 ? (size_t)c->max_positions : 4096;
    return forward_scratch_bytes(c, widest + r->split_rows, cpu_available(), PASS_ROWS, OUTRIDER_MAX_ROWS, context) +
           OUTRIDER_MAX_ROWS * (uint64_t)c->vocab * sizeof(float);
}

outrider_status outrider_inspect(const char *path, bool json, outrider_progress progress, void *user, char **text,
                                 outrider_error *err)
{
    *text = NULL;
    model_paths paths = {0};
    outrider_status status = folder_resolve(path, &paths, err);
    if (status) return status;
    reading r = {progress, user};
    inspect_report report_of;
    status = inspect_file(paths.model, &report_of, progress ? report : NULL, &r, err);
    model_paths_free(&paths);
    if (status) return status;
    report_of.scratch_bytes = scratch_bytes(&report_of);
    bytes out = {0};
    if (!(json ? inspect_write_json : inspect_write_text)(&report_of, &out)) {
        bytes_free(&out);
        status = error_memory(err, "the report", 0);
    } else {
        *text = out.data;
        const inspect_manifest state = report_of.manifest;
        if (state == INSPECT_MANIFEST_SIZE)
            status = error_set(err, OUTRIDER_BAD_FILE, "%s: size: MANIFEST.json says %llu bytes, found %llu", report_of.path,
                               (unsigned long long)report_of.manifest_bytes, (unsigned long long)report_of.file_bytes);
        if (state == INSPECT_MANIFEST_DIGEST)
            status = error_set(err, OUTRIDER_BAD_FILE, "%s: sha256: MANIFEST.json says %s, found %s", report_of.path,
                               report_of.manifest_sha256, report_of.sha256);
    }
    inspect_free(&report_of);
    return status;
}
