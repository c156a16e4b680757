#include "text/vocab.h"

#include <stdlib.h>
#include <string.h>

void vocab_free(vocab *v)
{
    bytes_free(&v->text);
    free(v->tokens);
    free(v->slots);
    *v = (vocab){0};
}

static uint64_t hash(const char *data, size_t size)
{
    uint64_t h = size * 0x9e3779b97f4a7c15u;
    while (size >= 8) {
        uint64_t eight;
        memcpy(&eight, data, 8);
        h = (h ^ eight) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
        data += 8;
        size -= 8;
    }
    uint64_t rest = 0;
    memcpy(&rest, data, size);
    h = (h ^ rest) * 0xff51afd7ed558ccdu;
    return h ^ h >> 32;
}

static void put(vocab *v, uint32_t id)
{
    const token_info *t = &v->tokens[id];
    size_t i = hash(v->text.data + t->at, t->size) & (v->n_slots - 1);
    while (v->slots[i]) i = (i + 1) & (v->n_slots - 1);
    v->slots[i] = id + 1;
}

/* Keeps at least half of the slots free. */
static bool make_room(vocab *v)
{
    if ((v->n_hashed + 1) * 2 <= v->n_slots) return true;
    uint32_t *old = v->slots;
    size_t n_old = v->n_slots, n = n_old ? n_old * 2 : 1024;
    v->slots = calloc(n, sizeof *v->slots);
    if (!v->slots) {
        v->slots = old;
        return false;
    }
    v->n_slots = n;
    for (size_t i = 0; i < n_old; i++)
        if (old[i]) put(v, old[i] - 1);
    free(old);
    return true;
}

bool vocab_set(vocab *v, uint32_t id, const char *data, size_t size, token_kind kind)
{
    ensure(id < VOCAB_MAX_IDS && size <= VOCAB_MAX_TOKEN && vocab_kind(v, id) == TOKEN_NONE);
    if (id >= v->capacity) {
        size_t capacity = v->capacity ? v->capacity * 2 : 4096;
        if (capacity <= id) capacity = id + (size_t)1;
        token_info *tokens = realloc(v->tokens, capacity * sizeof *tokens);
        if (!tokens) return false;
        v->tokens = tokens;
        v->capacity = capacity;
    }
    if (kind == TOKEN_PLAIN && !make_room(v)) return false;
    size_t at = v->text.size;
    if (at + size + 1 > UINT32_MAX || !bytes_reserve(&v->text, size + 1)) return false;
    bytes_add(&v->text, data, size);
    bytes_add(&v->text, "", 1);
    while (v->size <= id) v->tokens[v->size++] = (token_info){0};
    v->tokens[id] = (token_info){(uint32_t)at, (uint32_t)size, kind};
    if (kind == TOKEN_PLAIN) {
        put(v, id);
        v->n_hashed++;
    }
    return true;
}

const char *vocab_bytes(const vocab *v, uint32_t id, size_t *size)
{
    bool there = id < v->size && v->tokens[id].kind != TOKEN_NONE;
    *size = there ? v->tokens[id].size : 0;
    return there ? v->text.data + v->tokens[id].at : "";
}

token_kind vocab_kind(const vocab *v, uint32_t id) { return id < v->size ? (token_kind)v->tokens[id].kind : TOKEN_NONE; }

uint32_t vocab_find(const vocab *v, const char *data, size_t size)
{
    if (!v->n_slots) return UINT32_MAX;
    for (size_t i = hash(data, size) & (v->n_slots - 1); v->slots[i]; i = (i + 1) & (v->n_slots - 1)) {
        const token_info *t = &v->tokens[v->slots[i] - 1];
        if (t->size == size && memcmp(v->text.data + t->at, data, size) == 0) return v->slots[i] - 1;
    }
    return UINT32_MAX;
}
