/* Tiny TRTC containers for tests, written independently of the reader. */
#ifndef SUPPORT_TRTC_H
#define SUPPORT_TRTC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

typedef struct toy_options {
    int32_t arch, n_layers, hidden, n_heads, n_kv_heads, head_dim, rotary_dims, intermediate, vocab, max_positions;
    bool tied;
    bool bias;            /* records of q, k and v carry one */
    int32_t pad;          /* cols_pad is a multiple of it */
    int32_t stride_extra; /* bytes a row longer than cols_pad needs */
    bool junk;            /* bits and bytes after the last column are set */
    bool exceptional;     /* row 0 of each matrix has levels no common scale carries */
} toy_options;

/* Arch 3, 2 layers, untied, odd sizes; about 3 KB. */
extern const toy_options toy_default;

typedef struct toy_mark {
    char name[56];
    size_t at; /* byte of the file */
} toy_mark;

typedef struct toy {
    bytes file;
    toy_mark *marks; /* "n_layers", "blk.0.attn_q.rows", "blk.0.attn_q.bp", ..., "output_norm", "token_embd.scale", ... */
    size_t n_marks;
    uint64_t five_weights, zeros, high, five_rows, one_level_rows;
} toy;

void toy_write(toy *t, const toy_options *options); /* the same options give the same bytes; ends the test on failure */
void toy_free(toy *t);

size_t toy_at(const toy *t, const char *name); /* where a mark is; an unknown one ends the test */
void toy_set_i32(toy *t, const char *name, int32_t value);
void toy_set_f32(toy *t, const char *name, size_t i, float value); /* the i-th from the mark on */

/* Writes bytes to a file; ends the test on failure. */
void toy_save(const char *path, const void *data, size_t size);

#endif
