/* A growable run of bytes, always followed by a zero byte, so that text in it is a C string too. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bytes {
    char *data; /* owned; NULL while nothing was added */
    size_t size, capacity;
} bytes;

/* Each returns false when memory ran out; what was there stays. */
bool bytes_reserve(bytes *b, size_t more);
bool bytes_add(bytes *b, const void *data, size_t size);
bool bytes_add_text(bytes *b, const char *text);
bool bytes_add_format(bytes *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

void bytes_free(bytes *b); /* leaves an empty one */

/* Reads a whole file. On failure nothing is left in *b and errno says why. */
bool bytes_read_file(bytes *b, const char *path);

#endif
