/* A file mapped into memory, read only. */
#ifndef FILE_MAP_H
#define FILE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct file_map {
    char *path; /* owned */
    const uint8_t *data;
    size_t size; /* bytes */
} file_map;

/* Maps the regular file at path. Refuses directories, empty files and what cannot be read, each in its own words. */
outrider_status file_map_open(file_map *map, const char *path, outrider_error *err);

/* Tells the kernel that the pages of [data, data + size) were read for the last time (madvise); a hint only. */
void file_map_release(const file_map *map, const void *data, size_t size);

void file_map_close(file_map *map); /* a zeroed map is allowed */

#endif
