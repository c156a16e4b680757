/* What a model is made of, whatever file it came from. */
#ifndef WEIGHTS_CONFIG_H
#define WEIGHTS_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "file/trtc.h"

typedef enum model_family {
    MODEL_QWEN2 = 1, /* biases on q, k and v; no norms of q and k */
    MODEL_QWEN3 = 3  /* RMSNorm of every q and k head before RoPE; no biases */
} model_family;

/* All counts are >= 1 and such that products of any two of them fit an int64_t. n_kv_heads divides n_heads; rotary_dims is
 * even and <= head_dim. The width of q is n_heads * head_dim, which need not be `hidden`. */
typedef struct model_config {
    model_family family;
    int32_t n_layers;
    int32_t hidden;  /* width of the residual stream */
    int32_t n_heads; /* query heads */
    int32_t n_kv_heads;
    int32_t head_dim;      /* columns of one head */
    int32_t rotary_dims;   /* leading columns of a head that RoPE turns (rule 7's rot) */
    int32_t intermediate;  /* width of the feed-forward part */
    int32_t vocab;         /* rows of embedding and head, padding rows included */
    int32_t max_positions; /* tokens of context the model was made for */
    float eps;             /* of every RMSNorm; > 0 */
    float theta;           /* RoPE base; > 0 */
    bool tied;             /* one table is embedding and head */
    bool has_qk_norm;
    bool has_qkv_bias; /* the family has them; a file may still leave the record of one out (tensor.bias NULL) */
} model_config;

const char *model_family_name(model_family family); /* "qwen2", "qwen3" */

/* From the header of an open container, which trtc_open has checked; cannot fail. */
model_config config_from_trtc(const trtc_header *header);

#endif
