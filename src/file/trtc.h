/* TRTC v4 containers: bytes on disk -> a directory of named tensors. Layout facts: docs/FORMATS.md.
 *
 * Checked in two steps. trtc_open checks the structure: header ranges, each record's shape against the header and its
 * sizes against the bytes that are left, the end of the file, finite scales, norms and biases; after it no pointer below
 * leads outside the map. The planes of five-value tensors, nearly the whole file, are read by trtc_check_rows: for every
 * column bp & bn = 0 and br within bp | bn. Who uses a tensor's planes calls it first for the rows it is about to read
 * (the packer does, row range by row range, on all its threads); trtc_check_all does it for a whole file.
 *
 * Bits of a plane at and after column `cols` mean nothing: they need not be zero, are not checked and must be masked
 * away by who reads planes a word at a time. The sidecar sums of the records are stepped over.
 *
 * Tensors bear the names that GGUF gives them for the qwen3 and qwen2 families:
 *   token_embd  blk.N.attn_norm  blk.N.ffn_norm  blk.N.attn_q_norm  blk.N.attn_k_norm
 *   blk.N.attn_q  blk.N.attn_k  blk.N.attn_v  blk.N.attn_output  blk.N.ffn_gate  blk.N.ffn_up  blk.N.ffn_down
 *   output_norm  output         (a tied file has token_embd only; it is the head too, and is the last record)
 *
 * Errors: one line that names file, tensor or header field, expected and found. OUTRIDER_BAD_FILE for what the file
 * holds, OUTRIDER_FAILURE when it cannot be read, OUTRIDER_NO_MEMORY (the directory is smaller than the file). */
#ifndef FILE_TRTC_H
#define FILE_TRTC_H

#include <stdbool.h>

#include "file/map.h"

enum { TRTC_ARCH_QWEN2 = 1, TRTC_ARCH_BITNET = 2, TRTC_ARCH_QWEN3 = 3 };

typedef struct trtc_header {
    int32_t version, arch, n_layers, hidden, n_heads, n_kv_heads, head_dim, rotary_dims, intermediate, vocab, max_positions;
    float eps, theta;
    int32_t eok; /* 1 = tied head, 2 = the input embedding is a record of its own */
} trtc_header;

typedef enum tensor_kind { TENSOR_F32, TENSOR_TRIT, TENSOR_INT8 } tensor_kind;

/* Pointers lead into the map and are not aligned: read f32 values with trtc_f32. */
typedef struct tensor {
    char name[40];
    tensor_kind kind;
    int32_t rows, cols;             /* a norm has 1 row */
    size_t row_stride;              /* bytes of one row of a plane (TRIT) or of the weights (INT8) */
    const uint8_t *f32;             /* F32: cols values */
    const uint8_t *bp, *bn, *br;    /* TRIT: planes, rows * row_stride bytes each; bit i of byte j is column 8j+i */
    const uint8_t *s_lo, *s_hi;     /* TRIT: f32[rows] */
    const uint8_t *bias;            /* TRIT: f32[rows], or NULL */
    const int8_t *weights;          /* INT8: rows * row_stride */
    const uint8_t *scale;           /* INT8: f32[rows] */
    size_t file_offset, file_bytes; /* of the whole record */
} tensor;

typedef struct trtc_file {
    file_map map; /* of trtc_open_memory: path and data as given, nothing mapped */
    bool mapped;
    trtc_header header;
    tensor *tensors; /* owned; in file order */
    size_t n_tensors;
} trtc_file;

/* On failure *file is zeroed; nothing needs closing. */
outrider_status trtc_open(trtc_file *file, const char *path, outrider_error *err);

/* The same over bytes in memory, which stay the caller's and must outlive *file. `name` stands for the path in messages. */
outrider_status trtc_open_memory(trtc_file *file, const void *data, size_t size, const char *name, outrider_error *err);

void trtc_close(trtc_file *file); /* a zeroed one is allowed */

/* The plane invariants of rows [row_begin, row_end) of a TRIT tensor; OUTRIDER_BAD_FILE names the first row and column
 * that break one. Other kinds pass. Reads only these rows; may run on many threads at once. */
outrider_status trtc_check_rows(const trtc_file *file, const tensor *t, int32_t row_begin, int32_t row_end,
                                outrider_error *err);

/* trtc_check_rows over all rows of all tensors, in file order. Reads the whole file. */
outrider_status trtc_check_all(const trtc_file *file, outrider_error *err);

/* The tensor of that name, or NULL. */
const tensor *trtc_find(const trtc_file *file, const char *name);

/* The i-th value of an unaligned little-endian f32 array. */
float trtc_f32(const uint8_t *values, size_t i);

#endif
