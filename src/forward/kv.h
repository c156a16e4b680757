/* The KV cache of one sequence in one model: f16 keys (after norm and RoPE) and values (rule 8).
 *
 * Positions stand in pages of 256, the chunk of rule 9, so that a page is also what one partial softmax reads. A page holds, for each layer, keys
 * and values of each KV head as [256][head_dim]. Address space for all pages is taken at open; memory becomes resident as
 * positions are written, and cutting the cache back costs nothing. */
#ifndef FORWARD_KV_H
#define FORWARD_KV_H

#include <stdint.h>

#include "base/error.h"
#include "weights/config.h"

typedef struct kv_cache {
    size_t layers, heads, head_dim;
    size_t capacity;  /* positions it may hold */
    size_t positions; /* positions it holds: 0 .. positions-1 */
    size_t n_pages, page_bytes;
    uint16_t **pages; /* [n_pages] */
    void *memory;     /* n_pages * page_bytes */
} kv_cache;

outrider_status kv_open(kv_cache *kv, const model_config *config, size_t capacity, outrider_error *err);
void kv_close(kv_cache *kv); /* a zeroed one is allowed */

/* Keys (which = 0) or values (1) of one head in one page: f16 [256][head_dim]. */
static inline uint16_t *kv_at(const kv_cache *kv, size_t page, size_t layer, int which, size_t head)
{
    return kv->pages[page] + ((layer * 2 + (size_t)which) * kv->heads + head) * 256 * kv->head_dim;
}

/* Bytes that one position takes. */
uint64_t kv_bytes_per_token(const model_config *config);

#endif
