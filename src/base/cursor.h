/* A bounded cursor over bytes: every read is checked, nothing is assumed to be aligned. */
#ifndef BASE_CURSOR_H
#define BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct cursor {
    const uint8_t *data;
    size_t size; /* bytes in all */
    size_t at;   /* bytes consumed; at <= size always */
} cursor;

static inline size_t cursor_left(const cursor *c) { return c->size - c->at; }

/* Hands out `bytes` bytes and steps over them; NULL, and no step, when fewer are left. */
static inline const uint8_t *cursor_take(cursor *c, size_t bytes)
{
    if (bytes > cursor_left(c)) return NULL;
    const uint8_t *p = c->data + c->at;
    c->at += bytes;
    return p;
}

/* Little-endian values; false, and no step, when too few bytes are left. */
static inline bool cursor_u32(cursor *c, uint32_t *value)
{
    const uint8_t *p = cursor_take(c, 4);
    if (!p) return false;
    *value = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    return true;
}

static inline bool cursor_i32(cursor *c, int32_t *value)
{
    uint32_t u;
    if (!cursor_u32(c, &u)) return false;
    memcpy(value, &u, 4);
    return true;
}

static inline bool cursor_f32(cursor *c, float *value)
{
    uint32_t u;
    if (!cursor_u32(c, &u)) return false;
    memcpy(value, &u, 4);
    return true;
}

/* a * b in *product; false when it wraps. */
static inline bool size_multiply(size_t a, size_t b, size_t *product) { return !__builtin_mul_overflow(a, b, product); }

#endif
