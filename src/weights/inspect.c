#include "weights/inspect.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "file/folder.h"
#include "weights/levels.h"

enum {
    TILE_ROWS = 6,
    TILE_COLS = 256,
    TILE_BYTES = 512,
    ROW_BYTES = 8,         /* f32 scale, two i16 levels */
    DIGEST_STEP = 16 << 20 /* bytes hashed between two calls of progress */
};

/* One inspection under way. */
typedef struct inspection {
    inspect_report *report;
    trtc_file file;
    digest *hash; /* NULL when no digest is wanted */
    uint64_t done;
    double error_sum;
    inspect_progress progress;
    void *user;
    outrider_error *err;
} inspection;

/* -- The manifest ------------------------------------------------------------------------------------------------------ */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Takes what the manifest's object says into the report and judges all but the digest. */
static void take_manifest(inspect_report *r, json_t *root)
{
    json_t *entry = json_object_get(root, "weights_container");
    const char *file = json_string_value(json_object_get(entry, "file"));
    json_t *size = json_object_get(entry, "bytes");
    const char *sha256 = json_string_value(json_object_get(entry, "sha256"));
    bool hex = sha256 && strlen(sha256) == 64 && strspn(sha256, "0123456789abcdefABCDEF") == 64;
    if (!file || !hex || (size && (!json_is_integer(size) || json_integer_value(size) < 0))) {
        r->manifest = INSPECT_MANIFEST_UNUSABLE;
        snprintf(r->manifest_note, sizeof r->manifest_note, "weights_container with file, bytes and sha256 expected");
        return;
    }
    if (strcmp(base_name(file), base_name(r->path)) != 0) {
        r->manifest = INSPECT_MANIFEST_OTHER_FILE;
        snprintf(r->manifest_note, sizeof r->manifest_note, "%s", base_name(file));
        return;
    }
    for (int i = 0; i < 64; i++) r->manifest_sha256[i] = (char)(sha256[i] | 0x20); /* lower case; digits have the bit set */
    r->manifest_bytes = size ? (uint64_t)json_integer_value(size) : r->file_bytes;
    r->manifest = r->manifest_bytes == r->file_bytes ? INSPECT_MANIFEST_AGREES : INSPECT_MANIFEST_SIZE;
}

/* Reads MANIFEST.json beside the container. INSPECT_MANIFEST_AGREES means for now that the digest is to be computed. */
static outrider_status read_manifest(inspect_report *r, outrider_error *err)
{
    model_paths paths = {0};
    outrider_status s = folder_resolve(r->path, &paths, err);
    if (s) return s;
    bytes path = {0}, text = {0};
    if (!bytes_add_format(&path, "%s/MANIFEST.json", paths.dir)) {
        s = error_memory(err, "a path", strlen(paths.dir));
    } else if (bytes_read_file(&text, path.data)) {
        json_error_t why;
        json_t *root = json_loadb(text.data, text.size, 0, &why);
        if (root) {
            take_manifest(r, root);
        } else {
            r->manifest = INSPECT_MANIFEST_UNUSABLE;
            snprintf(r->manifest_note, sizeof r->manifest_note, "line %d: %s", why.line, why.text);
        }
        json_decref(root);
    } else if (errno != ENOENT) {
        r->manifest = INSPECT_MANIFEST_UNUSABLE;
        snprintf(r->manifest_note, sizeof r->manifest_note, "%s", strerror(errno));
    }
    bytes_free(&path);
    bytes_free(&text);
    model_paths_free(&paths);
    return s;
}

/* -- Counting ---------------------------------------------------------------------------------------------------------- */

/* Nonzero and high weights of one row, which has passed trtc_check_rows: bits of bp | bn and of br, eight bytes at a
 * time, without the bits after the last column. */
static void count_row(const uint8_t *bp, const uint8_t *bn, const uint8_t *br, size_t cols, uint64_t *nonzero, uint64_t *high)
{
    size_t row_bytes = (cols + 7) / 8;
    uint64_t nz = 0, hi = 0;
    for (size_t i = 0; i < row_bytes; i += 8) {
        size_t n = row_bytes - i < 8 ? row_bytes - i : 8;
        uint64_t p = 0, m = 0, h = 0;
        if (n == 8) {
            memcpy(&p, bp + i, 8);
            memcpy(&m, bn + i, 8);
            memcpy(&h, br + i, 8);
        } else {
            memcpy(&p, bp + i, n);
            memcpy(&m, bn + i, n);
            memcpy(&h, br + i, n);
        }
        uint64_t value = p | m;
        if (i + 8 >= row_bytes && cols % 8) {
            /* The last byte that was copied holds the last columns; its place in the word depends on the byte order. */
            uint8_t keep[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
            keep[n - 1] = (uint8_t)((1u << cols % 8) - 1);
            uint64_t mask;
            memcpy(&mask, keep, 8);
            value &= mask;
            h &= mask;
        }
        nz += (uint64_t)__builtin_popcountll(value);
        hi += (uint64_t)__builtin_popcountll(h);
    }
    *nonzero = nz;
    *high = hi;
}

/* Checks and counts one five-value tensor; adds its split rows to *split. Each row is counted while it is still in the
 * cache from its check. */
static outrider_status count_trit(inspection *in, const tensor *t, uint64_t *split)
{
    inspect_report *r = in->report;
    for (int32_t row = 0; row < t->rows; row++) {
        outrider_status s = trtc_check_rows(&in->file, t, row, row + 1, in->err);
        if (s) return s;
        size_t offset = (size_t)row * t->row_stride;
        uint64_t nonzero, high;
        count_row(t->bp + offset, t->bn + offset, t->br + offset, (size_t)t->cols, &nonzero, &high);
        r->zeros += (uint64_t)t->cols - nonzero;
        r->high += high;
        if (high == 0 || high == nonzero) {
            r->one_level_rows++;
            continue;
        }
        row_levels l = levels_choose(trtc_f32(t->s_lo, (size_t)row), trtc_f32(t->s_hi, (size_t)row), true, true);
        r->exceptional_rows += l.exceptional;
        if (l.split) {
            ++*split;
            continue;
        }
        if (l.error > r->level_error_max) r->level_error_max = l.error;
        in->error_sum += l.error;
    }
    return OUTRIDER_OK;
}

/* Where the bytes of a tensor's record go, and its parameters. */
static void count_record(inspect_report *r, const tensor *t)
{
    uint64_t rows = (uint64_t)t->rows, cells = rows * (uint64_t)t->cols, stored = rows * t->row_stride;
    switch (t->kind) {
    case TENSOR_F32:
        r->parameters[INSPECT_NORMS] += cells;
        r->part_bytes[INSPECT_F32] += 4 * cells;
        break;
    case TENSOR_TRIT:
        r->parameters[INSPECT_FIVE] += cells;
        r->parameters[INSPECT_BIASES] += t->bias ? rows : 0;
        r->five_rows += rows;
        r->part_bytes[INSPECT_PLANES] += 3 * stored;
        r->part_bytes[INSPECT_LEVELS] += 8 * rows;
        r->part_bytes[INSPECT_SIDECAR] += 8 * rows;
        r->part_bytes[INSPECT_F32] += t->bias ? 4 * rows : 0;
        r->part_bytes[INSPECT_COUNTS] += 20;
        break;
    case TENSOR_INT8:
        r->parameters[strcmp(t->name, "output") == 0 ? INSPECT_HEAD : INSPECT_EMBEDDING] += cells;
        r->part_bytes[INSPECT_INT8] += stored;
        r->part_bytes[INSPECT_INT8_SCALES] += 4 * rows;
        r->part_bytes[INSPECT_SIDECAR] += 4 * rows;
        r->part_bytes[INSPECT_COUNTS] += 16;
        break;
    }
}

/* -- Memory of a run --------------------------------------------------------------------------------------------------- */

static uint64_t packed_matrix(uint64_t rows, uint64_t cols)
{
    uint64_t tiles = (rows + TILE_ROWS - 1) / TILE_ROWS, superblocks = (cols + TILE_COLS - 1) / TILE_COLS;
    return tiles * (superblocks * TILE_BYTES + TILE_ROWS * ROW_BYTES);
}

/* Whether the tensor is packed below the one before it, as part of one product: k and v below q, up below gate. */
static bool joins_previous(const char *name)
{
    const char *what = strrchr(name, '.');
    return what && (strcmp(what, ".attn_k") == 0 || strcmp(what, ".attn_v") == 0 || strcmp(what, ".ffn_up") == 0);
}

static void count_memory(inspection *in)
{
    inspect_report *r = in->report;
    const model_config *c = &r->config;
    uint64_t vocab = (uint64_t)c->vocab, hidden = (uint64_t)c->hidden,
             padded = (hidden + TILE_COLS - 1) / TILE_COLS * TILE_COLS;
    r->int8_bytes = vocab * padded + 4 * vocab + (c->tied ? 0 : 4 * vocab);
    r->mapped_bytes = c->tied ? 0 : vocab * hidden;
    r->f32_bytes = 4 * (r->parameters[INSPECT_NORMS] + r->parameters[INSPECT_BIASES]);
    r->kv_bytes_per_token = (uint64_t)c->n_layers * 2 * (uint64_t)c->n_kv_heads * (uint64_t)c->head_dim * 2;
    r->level_error_mean = r->five_rows ? in->error_sum / (double)r->five_rows : 0;
}

/* -- The pass over the file -------------------------------------------------------------------------------------------- */

static void report_progress(inspection *in)
{
    if (in->progress) in->progress(in->user, in->done, in->report->file_bytes);
}

/* Takes bytes [in->done, end) of the file into the digest; without one only the progress moves. */
static void pass_over(inspection *in, uint64_t end)
{
    while (in->done < end) {
        uint64_t n = end - in->done;
        if (in->hash) {
            if (n > DIGEST_STEP) n = DIGEST_STEP;
            digest_add(in->hash, in->file.map.data + in->done, (size_t)n);
        }
        in->done += n;
        report_progress(in);
    }
}

/* One pass, tensor by tensor in file order: first the digest, which reads the record from the disk, then the counts,
 * which find it in the page cache. The mapping's pages are given back after each. */
static outrider_status pass(inspection *in)
{
    inspect_report *r = in->report;
    uint64_t rows = 0; /* of the packed product that is being collected */
    for (size_t i = 0; i < in->file.n_tensors; i++) {
        const tensor *t = &in->file.tensors[i];
        if (in->hash) pass_over(in, t->file_offset + t->file_bytes);
        count_record(r, t);
        if (t->kind == TENSOR_TRIT) {
            uint64_t split = 0;
            outrider_status s = count_trit(in, t, &split);
            if (s) return s;
            r->split_rows += split;
            rows += (uint64_t)t->rows + split;
            bool more = i + 1 < in->file.n_tensors && joins_previous(in->file.tensors[i + 1].name);
            if (!more) {
                r->packed_bytes += packed_matrix(rows, (uint64_t)t->cols);
                rows = 0;
            }
        }
        if (!in->hash) pass_over(in, t->file_offset + t->file_bytes);
        file_map_release(&in->file.map, in->file.map.data + t->file_offset, t->file_bytes);
    }
    return OUTRIDER_OK;
}

static outrider_status run(inspection *in)
{
    inspect_report *r = in->report;
    r->file_bytes = in->file.map.size;
    r->header = in->file.header;
    r->config = config_from_trtc(&in->file.header);
    r->part_bytes[INSPECT_COUNTS] = in->file.tensors[0].file_offset; /* the header */
    outrider_status s = read_manifest(r, in->err);
    if (s) return s;
    if (r->manifest == INSPECT_MANIFEST_AGREES) {
        in->hash = digest_open();
        if (!in->hash) return error_memory(in->err, "a digest", 64);
    }
    s = pass(in);
    if (s) return s;
    count_memory(in);
    if (in->hash) {
        digest_hex(in->hash, r->sha256);
        if (strcmp(r->sha256, r->manifest_sha256) != 0) r->manifest = INSPECT_MANIFEST_DIGEST;
    }
    return OUTRIDER_OK;
}

outrider_status inspect_file(const char *path, inspect_report *out, inspect_progress progress, void *user, outrider_error *err)
{
    *out = (inspect_report){0};
    inspection in = {.report = out, .progress = progress, .user = user, .err = err};
    outrider_status s = trtc_open(&in.file, path, err);
    if (s) return s;
    out->path = strdup(path);
    s = out->path ? run(&in) : error_memory(err, "a path", strlen(path) + 1);
    if (s) inspect_free(out);
    digest_close(in.hash);
    trtc_close(&in.file);
    return s;
}

void inspect_free(inspect_report *report)
{
    free(report->path);
    *report = (inspect_report){0};
}

uint64_t inspect_weight_bytes(const inspect_report *report)
{
    return report->packed_bytes + report->int8_bytes + report->f32_bytes;
}

const char *inspect_manifest_name(inspect_manifest state)
{
    static const char *const names[INSPECT_MANIFEST_STATES] = {"none",   "unusable",     "other file",
                                                               "agrees", "size differs", "digest differs"};
    return names[state];
}

/* -- The written forms ------------------------------------------------------------------------------------------------- */

typedef struct label {
    const char *text, *key;
} label;

static const label kinds[INSPECT_KINDS] = {
    [INSPECT_FIVE] = {"five-value", "five_value"}, [INSPECT_EMBEDDING] = {"embedding (int8)", "embedding"},
    [INSPECT_HEAD] = {"head (int8)", "head"},      [INSPECT_NORMS] = {"norms (f32)", "norms"},
    [INSPECT_BIASES] = {"biases (f32)", "biases"},
};

static const label parts[INSPECT_PARTS] = {
    [INSPECT_PLANES] = {"planes", "planes"},
    [INSPECT_LEVELS] = {"levels of five-value rows", "levels"},
    [INSPECT_INT8] = {"int8 weights", "int8"},
    [INSPECT_INT8_SCALES] = {"scales of int8 rows", "int8_scales"},
    [INSPECT_F32] = {"norms and biases", "f32"},
    [INSPECT_SIDECAR] = {"sidecar sums (not read)", "sidecar"},
    [INSPECT_COUNTS] = {"header and counts", "counts"},
};

static uint64_t total(const uint64_t *values, int n)
{
    uint64_t sum = 0;
    for (int i = 0; i < n; i++) sum += values[i];
    return sum;
}

static double share(uint64_t part, uint64_t whole) { return whole ? (double)part / (double)whole : 0; }

/* -- Text -------------------------------------------------------------------------------------------------------------- */

/* A whole number with a comma before each three digits. */
static const char *grouped(uint64_t value, char out[32])
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%" PRIu64, value), at = 0;
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0) out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = 0;
    return out;
}

/* A line: label, number, and what follows it (a unit, a share). */
static bool line(bytes *out, const char *name, uint64_t value, const char *after)
{
    char text[32];
    return bytes_add_format(out, "  %-30s%18s%s%s\n", name, grouped(value, text), after[0] ? "  " : "", after);
}

static bool line_share(bytes *out, const char *name, uint64_t value, uint64_t whole)
{
    char after[32];
    snprintf(after, sizeof after, "%6.2f %%", 100 * share(value, whole));
    return line(out, name, value, after);
}

static bool line_bytes(bytes *out, const char *name, uint64_t value)
{
    char after[32] = "";
    if (value >= 1 << 30)
        snprintf(after, sizeof after, "%8.2f GiB", (double)value / (1 << 30));
    else if (value >= 1 << 20)
        snprintf(after, sizeof after, "%8.2f MiB", (double)value / (1 << 20));
    else if (value >= 1 << 10)
        snprintf(after, sizeof after, "%8.2f KiB", (double)value / (1 << 10));
    return line(out, name, value, after);
}

static bool write_header(const inspect_report *r, bytes *out)
{
    const model_config *c = &r->config;
    char size[32], positions[32];
    return bytes_add_format(out, "%s\n  TRTC version %" PRId32 ", %s topology, %s head, %s bytes\n", r->path, r->header.version,
                            model_family_name(c->family), c->tied ? "tied" : "untied", grouped(r->file_bytes, size)) &&
           bytes_add_format(out,
                            "  %" PRId32 " layers, hidden %" PRId32 ", intermediate %" PRId32 ", heads %" PRId32 "/%" PRId32
                            " of %" PRId32 " (rotary %" PRId32 ")\n",
                            c->n_layers, c->hidden, c->intermediate, c->n_heads, c->n_kv_heads, c->head_dim, c->rotary_dims) &&
           bytes_add_format(out, "  vocabulary %" PRId32 ", context %s, norm eps %g, RoPE theta %g\n", c->vocab,
                            grouped((uint64_t)c->max_positions, positions), (double)c->eps, (double)c->theta);
}

static bool write_counts(const inspect_report *r, bytes *out)
{
    uint64_t parameters = total(r->parameters, INSPECT_KINDS), five = r->parameters[INSPECT_FIVE];
    bool ok = bytes_add_text(out, "\nparameters\n");
    for (int i = 0; ok && i < INSPECT_KINDS; i++)
        if (r->parameters[i]) ok = line_share(out, kinds[i].text, r->parameters[i], parameters);
    ok = ok && line(out, "all", parameters, "") && bytes_add_text(out, "\nbytes in the file\n");
    for (int i = 0; ok && i < INSPECT_PARTS; i++) ok = line_share(out, parts[i].text, r->part_bytes[i], r->file_bytes);
    return ok && line_bytes(out, "all", r->file_bytes) && bytes_add_text(out, "\nfive-value weights\n") &&
           line_share(out, "zero", r->zeros, five) && line_share(out, "high level", r->high, five) &&
           line_share(out, "high level, of those not zero", r->high, five - r->zeros) && line(out, "rows", r->five_rows, "") &&
           line(out, "rows of one level", r->one_level_rows, "") && line(out, "exceptional rows", r->exceptional_rows, "") &&
           line(out, "split when loaded", r->split_rows, "") &&
           bytes_add_format(out, "  %-30s%18.3e\n  %-30s%18.3e\n", "error of the levels, largest", r->level_error_max,
                            "error of the levels, mean", r->level_error_mean);
}

static bool write_memory(const inspect_report *r, bytes *out)
{
    char context[48];
    snprintf(context, sizeof context, "KV cache of %" PRId32 " tokens", r->config.max_positions);
    bool ok = bytes_add_text(out, "\nmemory of a run\n") && line_bytes(out, "five-value weights, packed", r->packed_bytes) &&
              line_bytes(out, r->config.tied ? "embedding and head" : "head, scales of the embedding", r->int8_bytes) &&
              line_bytes(out, "norms and biases", r->f32_bytes) && line_bytes(out, "weights, all", inspect_weight_bytes(r));
    if (ok && r->mapped_bytes) ok = line_bytes(out, "embedding, left in the file", r->mapped_bytes);
    if (ok && r->scratch_bytes) ok = line_bytes(out, "scratch", r->scratch_bytes);
    return ok && line_bytes(out, "KV cache a token", r->kv_bytes_per_token) &&
           line_bytes(out, context, r->kv_bytes_per_token * (uint64_t)r->config.max_positions);
}

static bool write_manifest(const inspect_report *r, bytes *out)
{
    char said[32], found[32];
    if (!bytes_add_text(out, "\nMANIFEST.json\n")) return false;
    switch (r->manifest) {
    case INSPECT_NO_MANIFEST: return bytes_add_text(out, "  none beside the file\n");
    case INSPECT_MANIFEST_UNUSABLE: return bytes_add_format(out, "  not usable: %s\n", r->manifest_note);
    case INSPECT_MANIFEST_OTHER_FILE: return bytes_add_format(out, "  is about another file: %s\n", r->manifest_note);
    case INSPECT_MANIFEST_AGREES: return bytes_add_format(out, "  agrees: SHA-256 %s\n", r->sha256);
    case INSPECT_MANIFEST_SIZE:
        return bytes_add_format(out, "  DISAGREES: %s bytes expected, %s found\n", grouped(r->manifest_bytes, said),
                                grouped(r->file_bytes, found));
    case INSPECT_MANIFEST_DIGEST:
        return bytes_add_format(out, "  DISAGREES: SHA-256 %s expected,\n             SHA-256 %s found\n", r->manifest_sha256,
                                r->sha256);
    default: return false;
    }
}

bool inspect_write_text(const inspect_report *report, bytes *out)
{
    return write_header(report, out) && write_counts(report, out) && write_memory(report, out) && write_manifest(report, out);
}

/* -- JSON -------------------------------------------------------------------------------------------------------------- */

/* Text as a JSON string; null for "". Bytes that are no UTF-8, which a path may hold, become '?'. */
static json_t *json_text(const char *text)
{
    if (!text[0]) return json_null();
    json_t *whole = json_string(text);
    if (whole) return whole;
    char plain[512];
    snprintf(plain, sizeof plain, "%s", text);
    for (char *c = plain; *c; c++)
        if (*c & 0x80) *c = '?';
    return json_string(plain);
}

static json_t *json_table(const uint64_t *values, const label *labels, int n)
{
    json_t *table = json_object();
    for (int i = 0; table && i < n; i++) json_object_set_new(table, labels[i].key, json_integer((json_int_t)values[i]));
    return table;
}

static json_t *json_header(const inspect_report *r)
{
    const model_config *c = &r->config;
    return json_pack("{s:i, s:i, s:s, s:b, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:f}", "version",
                     r->header.version, "arch", r->header.arch, "family", model_family_name(c->family), "tied", c->tied,
                     "n_layers", c->n_layers, "hidden", c->hidden, "n_heads", c->n_heads, "n_kv_heads", c->n_kv_heads,
                     "head_dim", c->head_dim, "rotary_dims", c->rotary_dims, "intermediate", c->intermediate, "vocab", c->vocab,
                     "max_positions", c->max_positions, "eps", (double)c->eps, "theta", (double)c->theta);
}

static json_t *json_five(const inspect_report *r)
{
    uint64_t five = r->parameters[INSPECT_FIVE];
    return json_pack("{s:I, s:I, s:f, s:I, s:f, s:f, s:I, s:I, s:I, s:f, s:f}", "rows", (json_int_t)r->five_rows, "zeros",
                     (json_int_t)r->zeros, "zero_share", share(r->zeros, five), "high", (json_int_t)r->high, "high_share",
                     share(r->high, five), "high_share_of_nonzero", share(r->high, five - r->zeros), "one_level_rows",
                     (json_int_t)r->one_level_rows, "exceptional_rows", (json_int_t)r->exceptional_rows, "split_rows",
                     (json_int_t)r->split_rows, "level_error_max", r->level_error_max, "level_error_mean", r->level_error_mean);
}

static json_t *json_memory(const inspect_report *r)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "packed_bytes", (json_int_t)r->packed_bytes, "int8_bytes",
                     (json_int_t)r->int8_bytes, "f32_bytes", (json_int_t)r->f32_bytes, "weight_bytes",
                     (json_int_t)inspect_weight_bytes(r), "mapped_bytes", (json_int_t)r->mapped_bytes, "scratch_bytes",
                     (json_int_t)r->scratch_bytes, "kv_bytes_per_token", (json_int_t)r->kv_bytes_per_token);
}

static json_t *json_manifest(const inspect_report *r)
{
    return json_pack("{s:s, s:o, s:I, s:o, s:o}", "state", inspect_manifest_name(r->manifest), "note",
                     json_text(r->manifest_note), "bytes", (json_int_t)r->manifest_bytes, "sha256",
                     json_text(r->manifest_sha256), "found_sha256", json_text(r->sha256));
}

bool inspect_write_json(const inspect_report *report, bytes *out)
{
    json_t *root = json_pack("{s:o, s:I, s:o, s:o, s:I, s:o, s:o, s:o, s:o}", "path", json_text(report->path), "file_bytes",
                             (json_int_t)report->file_bytes, "header", json_header(report), "parameters",
                             json_table(report->parameters, kinds, INSPECT_KINDS), "parameters_all",
                             (json_int_t)total(report->parameters, INSPECT_KINDS), "bytes",
                             json_table(report->part_bytes, parts, INSPECT_PARTS), "five_value", json_five(report), "memory",
                             json_memory(report), "manifest", json_manifest(report));
    char *text = root ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
    bool ok = text && bytes_add_text(out, text) && bytes_add_text(out, "\n");
    free(text);
    json_decref(root);
    return ok;
}
