/* A model's weights, checked, typed and packed for the kernels. */
#ifndef WEIGHTS_WEIGHTS_H
#define WEIGHTS_WEIGHTS_H

#include <stdint.h>

#include "base/error.h"
#include "base/pool.h"
#include "file/trtc.h"
#include "kernels/kernels.h"
#include "weights/config.h"

/* A row whose levels no common scale carries closely enough (rule 4): its low level stands in `row`, its high level in row
 * `extra` of the same matrix; the value of the row is the sum of both. */
typedef struct split_row {
    uint32_t row, extra;
} split_row;

/* One matrix product of a layer: one tensor, or several that share their input, one below the other. */
typedef struct projection {
    five_matrix matrix; /* rows 0..outs-1, then the extra rows */
    size_t outs;
    float *bias; /* [outs], or NULL */
    split_row *splits;
    size_t n_splits;
} projection;

typedef struct layer_weights {
    float *attn_norm, *ffn_norm; /* [hidden] */
    float *q_norm, *k_norm;      /* [head_dim], or NULL where the family has none */
    projection qkv;              /* n_heads * head_dim rows of q, then n_kv_heads * head_dim of k, then of v */
    projection o;
    projection gate_up; /* intermediate rows of gate, then of up */
    projection down;
} layer_weights;

typedef struct weights {
    model_config config;
    layer_weights *layers;
    float *final_norm; /* [hidden] */
    int8_matrix head;
    const int8_t *embedding; /* [vocab][embedding_stride], in the file's mapping when untied */
    size_t embedding_stride; /* bytes */
    float *embedding_scale;  /* [vocab] */

    uint64_t resident_bytes; /* of packed weights, scales and norms */
    uint64_t step_bytes;     /* of those, what one forward pass touches */
    uint64_t split_rows;
    uint64_t file_bytes;

    struct weights_store *store; /* owns all of the above */
} weights;

/* Memory that the weights of an open container will take: all of weights.resident_bytes, known before anything is packed. */
typedef struct weights_need {
    uint64_t resident_bytes; /* packed, in whole pages */
    uint64_t
        loading_bytes; /* on top of it while loading: the file's pages of the largest records that are read at a time, and work space */
    size_t widest; /* rows of the widest matrix product, extra rows included */
} weights_need;

weights_need weights_plan(const trtc_file *file, const kernel_table *table, pool *threads);

/* Called with bytes of the file done and in all. */
typedef void (*weights_progress)(void *user, uint64_t done, uint64_t total);

/* Opens the container at path, checks it and packs it for the kernels of `table` with all threads of the pool. Pages of the file are given
 * back as they were read, so that packed and unpacked weights are never both resident. The table must outlive the weights. */
outrider_status weights_open(weights *w, const char *path, const kernel_table *table, pool *threads, weights_progress progress,
                             void *user, outrider_error *err);

void weights_close(weights *w); /* a zeroed one is allowed */

#endif
