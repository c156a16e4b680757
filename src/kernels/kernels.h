/* The numeric kernels: every function here is defined by docs/EXACTNESS.md (the contract, whose rule numbers are cited), by the plain C in
 * ref/ and by nothing else. Another instruction set may order integer sums as it likes and must keep every float operation.
 *
 * A kernel_table is filled C first, then each instruction set that the processor (and the user's mask) allows overwrites what it
 * does better. No kernel allocates, locks or fails; matrix kernels take a range of rows or tiles so that threads can share the
 * work, and give a row the same bits whatever the range and the number of activation rows.
 */
#ifndef KERNELS_KERNELS_H
#define KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

enum {
    SUPERBLOCK = 256,    /* columns that share one set of 4 activation scales (rule 3) */
    GROUPS = 4,          /* groups of 64 interleaved columns in a superblock */
    ATTEND_CHUNK = 256,  /* absolute positions that one partial softmax covers (rule 9) */
    ATTEND_MAX_DIM = 256 /* largest head_dim */
};

/* Rows of activations after rule 3. The columns of one superblock stand together for all rows: superblock b of row t is
 * q + (b * rows + t) * 256, in natural column order: column 16j + 4l + i of it belongs to group l. */
typedef struct activations {
    size_t rows, superblocks;
    int8_t *q;      /* [superblocks][rows][256], values -127..127 */
    float *d;       /* [superblocks][rows][4], scale of each group */
    int16_t *sums;  /* [superblocks][rows][8]: sums[m] = sum over j of q[16j + 2m] + q[16j + 2m + 1] */
} activations;

/* A matrix of five-value rows as a kernel wants it. What `codes` holds is the table's own business. Rows are padded to whole
 * tiles; padding rows have scale 0 and are never written to an output. */
typedef struct five_matrix {
    size_t rows, cols, superblocks, tiles;
    uint8_t *codes;  /* [tiles][superblocks][tile_bytes] */
    int16_t *levels; /* [tiles * tile_rows][2]: integer levels k_lo, k_hi of a row (rule 4) */
    float *scale;    /* [tiles * tile_rows] */
} five_matrix;

/* int8 rows (embedding, head). Padding columns are 0. */
typedef struct int8_matrix {
    size_t rows, cols, superblocks;
    const int8_t *k;    /* [rows][superblocks * 256] */
    const float *scale; /* [rows] */
} int8_matrix;

/* One row of planes in the file: bit i of byte j = column 8j + i; (cols + 7) / 8 bytes each. */
typedef struct five_row {
    const uint8_t *bp, *bn, *br;
    size_t cols;
} five_row;

/* What one chunk of positions leaves of one head (rule 9). */
typedef struct attention_partial {
    float m, l;
    float o[ATTEND_MAX_DIM];
} attention_partial;

/* Attention of one row's query heads that share one KV head (rule 9). */
typedef struct attention {
    const float *q;             /* [heads][head_dim], after RoPE, not scaled */
    size_t heads, head_dim;
    float q_scale;              /* 1 / sqrt(head_dim) */
    size_t positions;           /* keys 0 .. positions-1 are seen; >= 1 */
    const uint16_t *const *k;   /* one pointer a chunk of 256 positions: f16 [256][head_dim] */
    const uint16_t *const *v;
    float *out;                 /* [heads][head_dim] */
    attention_partial *scratch; /* room for 4 heads a chunk */
} attention;

typedef struct kernel_table {
    cpu_isa isa;

    /* Five-value matrices: geometry of the packed form. */
    size_t tile_rows, tile_bytes; /* rows of a tile; bytes of one superblock of a tile */

    /* Adds one row (row_in_tile of a tile whose bytes were zero) to `tile`, [superblocks][tile_bytes]. */
    void (*five_pack_row)(uint8_t *tile, size_t row_in_tile, const five_row *row, int k_lo, int k_hi);

    /* y[t * y_stride + r] = row r times activation row t (rule 5, without bias), for the rows of tiles [begin, end). */
    void (*five_multiply)(const five_matrix *m, size_t begin, size_t end, const activations *x, float *y, size_t y_stride);

    /* The same for int8 rows [begin, end). */
    void (*int8_multiply)(const int8_matrix *m, size_t begin, size_t end, const activations *x, float *y, size_t y_stride);

    /* Rule 3 for superblocks [begin, end) of row t: x points to the row's first column, cols is its length. False when a value is
     * NaN or infinite (the outputs then mean nothing). */
    bool (*quantise)(const activations *a, size_t t, const float *x, size_t cols, size_t begin, size_t end);

    /* Rule 2: y[n] from x[n]; y may be x. */
    void (*rmsnorm)(float *y, const float *x, const float *weight, size_t n, float eps);

    /* Rule 7 in place: head[0..rot-1] turned by the angles whose cosines and sines stand in c, s [rot / 2]. */
    void (*rope)(float *head, size_t rot, const float *c, const float *s);

    /* Rule 8: f32 -> f16, saturated. */
    void (*to_half)(uint16_t *out, const float *x, size_t n);

    void (*attend)(const attention *a);

    /* Rule 11: out[i] = (g * (1 / (1 + exp32(-g)))) * u; out may be g. */
    void (*swiglu)(float *out, const float *gate, const float *up, size_t n);

    /* Residual: x[i] += y[i]. */
    void (*add)(float *x, const float *y, size_t n);

    /* Rule 12: id of the largest logit, lowest among equals; the runner-up's logit in *second when second is not NULL (n >= 2).
     * False when a logit is NaN or infinite. */
    bool (*argmax)(const float *logits, size_t n, uint32_t *id, float *second);
} kernel_table;

/* Fills a table for the set that cpu_choose gave. */
void kernels_fill(kernel_table *table, cpu_isa isa);

/* Each instruction set's overwrites; kernels_ref fills the whole table. */
void kernels_ref(kernel_table *table);
void kernels_avx2(kernel_table *table);
void kernels_avx512(kernel_table *table);
void kernels_neon(kernel_table *table);
void kernels_dotprod(kernel_table *table);

/* Bytes of the parts of `activations` for so many rows and columns (each part padded to 64 bytes), and their layout in one buffer that is aligned to
 * 64 bytes. */
size_t activations_bytes(size_t rows, size_t cols);
void activations_place(activations *a, size_t rows, size_t cols, void *buffer);

#endif
