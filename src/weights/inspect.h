/* What a container holds and what running it takes: the report behind `outrider inspect`. */
#ifndef WEIGHTS_INSPECT_H
#define WEIGHTS_INSPECT_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/error.h"
#include "file/trtc.h"
#include "weights/config.h"

/* What MANIFEST.json beside the container says of it (weights_container: file, bytes, sha256). */
typedef enum inspect_manifest {
    INSPECT_NO_MANIFEST,
    INSPECT_MANIFEST_UNUSABLE,   /* not JSON, or no such entry; manifest_note says what */
    INSPECT_MANIFEST_OTHER_FILE, /* it speaks of another file; manifest_note is that file's name */
    INSPECT_MANIFEST_AGREES,     /* size and SHA-256 are those of the file */
    INSPECT_MANIFEST_SIZE,       /* the sizes differ; the digest was not computed */
    INSPECT_MANIFEST_DIGEST,     /* the digests differ */
    INSPECT_MANIFEST_STATES
} inspect_manifest;

/* Kinds of weights, and where the bytes of the file go. The bytes add up to the file's size. */
enum { INSPECT_FIVE, INSPECT_EMBEDDING, INSPECT_HEAD, INSPECT_NORMS, INSPECT_BIASES, INSPECT_KINDS };
enum {
    INSPECT_PLANES, /* bp, bn, br, padding columns included */
    INSPECT_LEVELS, /* s_lo, s_hi */
    INSPECT_INT8,   /* weights of int8 records */
    INSPECT_INT8_SCALES,
    INSPECT_F32,     /* norms and biases */
    INSPECT_SIDECAR, /* the writer's sums, not read */
    INSPECT_COUNTS,  /* header and the counts at the records */
    INSPECT_PARTS
};

typedef struct inspect_report {
    char *path; /* owned */
    uint64_t file_bytes;
    trtc_header header;
    model_config config;

    uint64_t parameters[INSPECT_KINDS]; /* columns without padding; of a tied table under EMBEDDING alone */
    uint64_t part_bytes[INSPECT_PARTS];

    uint64_t five_rows;
    uint64_t zeros, high;                     /* of parameters[INSPECT_FIVE]: weights that are 0, and those of the high level */
    uint64_t one_level_rows;                  /* rows without low or without high weights (or with neither): carried exactly */
    uint64_t exceptional_rows;                /* rows whose smaller level is off by more than LEVELS_MAX_ERROR */
    uint64_t split_rows;                      /* those of them that a loader splits in two */
    double level_error_max, level_error_mean; /* relative error of the smaller level, over all five-value rows; a split
                                                 row counts as 0, for it is carried exactly */

    /* What a run takes. Weights packed for the kernels: trios of rows in tiles of 6 rows x 256 columns (512 bytes), 8
     * bytes a row for its scale and two levels, q k v and gate up one below the other, a split row twice. */
    uint64_t packed_bytes;
    uint64_t int8_bytes;         /* the head with its scales (tied: the embedding too), and an untied embedding's scales */
    uint64_t f32_bytes;          /* norms and biases */
    uint64_t mapped_bytes;       /* an untied embedding's weights: they stay in the file's mapping, read a row at a time */
    uint64_t kv_bytes_per_token; /* both caches of all layers, f16 */
    uint64_t scratch_bytes;      /* of a run; 0 from inspect_file, for the caller to fill before the report is written */

    inspect_manifest manifest;
    char manifest_note[192];
    uint64_t manifest_bytes;              /* as the manifest says; 0 when it does not */
    char manifest_sha256[65], sha256[65]; /* "" when not known, not computed */
} inspect_report;

/* Called now and then with bytes of the file done and in all; the last call has done == total. */
typedef void (*inspect_progress)(void *user, uint64_t done, uint64_t total);

/* Reads the whole container once: checks it in full (structure and planes), counts, and computes the digest when a
 * manifest beside it names this file and its size. A manifest that disagrees is no error of this function but a state of
 * the report. On success *out is the caller's, to be ended with inspect_free; on failure it is zeroed. progress may be
 * NULL. */
outrider_status inspect_file(const char *path, inspect_report *out, inspect_progress progress, void *user, outrider_error *err);

void inspect_free(inspect_report *report); /* a zeroed one is allowed */

uint64_t inspect_weight_bytes(const inspect_report *report); /* packed + int8 + f32: memory of the weights, mapping apart */
const char *inspect_manifest_name(inspect_manifest state);   /* "none", "unusable", "other file", "agrees", ... */

/* Append the report to *out, as a table for people or as one JSON object with a newline at the end (field names are
 * those above, kinds and parts as objects). False when memory ran out. */
bool inspect_write_text(const inspect_report *report, bytes *out);
bool inspect_write_json(const inspect_report *report, bytes *out);

#endif
