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

outrider_status outrider_inspect(const char *path, bool json, outrider_progress progress, void *user, char **text, outrider_error *err)
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
