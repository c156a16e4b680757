#include "forward/kv.h"

#include <stdlib.h>

#include "base/memory.h"
#include "kernels/kernels.h"

uint64_t kv_bytes_per_token(const model_config *c)
{
    return (uint64_t)c->n_layers * 2 * (uint64_t)c->n_kv_heads * (uint64_t)c->head_dim * sizeof(uint16_t);
}

outrider_status kv_open(kv_cache *kv, const model_config *config, size_t capacity, outrider_error *err)
{
    *kv = (kv_cache){.layers = (size_t)config->n_layers,
                     .heads = (size_t)config->n_kv_heads,
                     .head_dim = (size_t)config->head_dim,
                     .capacity = capacity};
    kv->n_pages = (capacity + ATTEND_CHUNK - 1) / ATTEND_CHUNK;
    kv->page_bytes = (size_t)kv_bytes_per_token(config) * ATTEND_CHUNK;
    const size_t all = kv->n_pages * kv->page_bytes;
    kv->pages = calloc(kv->n_pages, sizeof *kv->pages);
    kv->memory = memory_map(all);
    if (!kv->pages || !kv->memory) {
        kv_close(kv);
        return error_memory(err, "the KV cache", all);
    }
    for (size_t i = 0; i < kv->n_pages; i++) kv->pages[i] = (uint16_t *)((uint8_t *)kv->memory + i * kv->page_bytes);
    return OUTRIDER_OK;
}

void kv_close(kv_cache *kv)
{
    memory_unmap(kv->memory, kv->n_pages * kv->page_bytes);
    free(kv->pages);
    *kv = (kv_cache){0};
}
