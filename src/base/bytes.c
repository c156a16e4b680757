#include "base/bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool bytes_reserve(bytes *b, size_t more)
{
    size_t need;
    if (__builtin_add_overflow(b->size, more, &need) || __builtin_add_overflow(need, 1, &need)) return false;
    if (need <= b->capacity) return true;
    size_t capacity = b->capacity < 64 ? 64 : b->capacity;
    while (capacity < need) capacity += capacity / 2;
    char *data = realloc(b->data, capacity);
    if (!data) return false;
    b->data = data;
    b->capacity = capacity;
    return true;
}

bool bytes_add(bytes *b, const void *data, size_t size)
{
    if (!bytes_reserve(b, size)) return false;
    if (size) memcpy(b->data + b->size, data, size);
    b->size += size;
    b->data[b->size] = 0;
    return true;
}

bool bytes_add_text(bytes *b, const char *text) { return bytes_add(b, text, strlen(text)); }

bool bytes_add_format(bytes *b, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    bool ok = n >= 0 && bytes_reserve(b, (size_t)n);
    if (ok) {
        vsnprintf(b->data + b->size, (size_t)n + 1, format, again);
        b->size += (size_t)n;
    }
    va_end(again);
    return ok;
}

void bytes_free(bytes *b)
{
    free(b->data);
    *b = (bytes){0};
}

bool bytes_read_file(bytes *b, const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    bytes got = {0};
    char part[1 << 16];
    size_t n;
    while ((n = fread(part, 1, sizeof part, f)) > 0)
        if (!bytes_add(&got, part, n)) break;
    bool ok = !ferror(f) && feof(f) && bytes_reserve(&got, 0);
    fclose(f);
    if (!ok) {
        bytes_free(&got);
        return false;
    }
    got.data[got.size] = 0;
    bytes_free(b);
    *b = got;
    return true;
}
