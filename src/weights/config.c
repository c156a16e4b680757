#include "weights/config.h"

const char *model_family_name(model_family family) { return family == MODEL_QWEN2 ? "qwen2" : "qwen3"; }

model_config config_from_trtc(const trtc_header *header)
{
    ensure(header->arch == TRTC_ARCH_QWEN2 || header->arch == TRTC_ARCH_QWEN3);
    bool qwen3 = header->arch == TRTC_ARCH_QWEN3;
    return (model_config){
        .family = qwen3 ? MODEL_QWEN3 : MODEL_QWEN2,
        .n_layers = header->n_layers,
        .hidden = header->hidden,
        .n_heads = header->n_heads,
        .n_kv_heads = header->n_kv_heads,
        .head_dim = header->head_dim,
        .rotary_dims = header->rotary_dims,
        .intermediate = header->intermediate,
        .vocab = header->vocab,
        .max_positions = header->max_positions,
        .eps = header->eps,
        .theta = header->theta,
        .tied = header->eok == 1,
        .has_qk_norm = qwen3,
        .has_qkv_bias = !qwen3,
    };
}
