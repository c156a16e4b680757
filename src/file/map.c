#include "file/map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the open file is, checked before it is mapped. A file that another process cuts short afterwards still ends in
 * SIGBUS, as with every mapping; a file that is short from the start is the readers' affair. */
static outrider_status check_kind(int fd, const char *path, size_t *size, outrider_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return error_set(err, OUTRIDER_FAILURE, "%s: cannot be read: %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode)) return error_set(err, OUTRIDER_FAILURE, "%s: is a folder, a file was expected", path);
    if (!S_ISREG(st.st_mode)) return error_set(err, OUTRIDER_FAILURE, "%s: is not a regular file", path);
    if (st.st_size == 0) return error_set(err, OUTRIDER_BAD_FILE, "%s: is empty", path);
    if ((uintmax_t)st.st_size > SIZE_MAX / 2)
        return error_set(err, OUTRIDER_FAILURE, "%s: is too large to be mapped on this machine", path);
    *size = (size_t)st.st_size;
    return OUTRIDER_OK;
}

outrider_status file_map_open(file_map *map, const char *path, outrider_error *err)
{
    *map = (file_map){0};
    /* O_NONBLOCK: opening a pipe must not wait for a writer; it changes nothing for regular files. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return error_set(err, OUTRIDER_FAILURE, "%s: cannot be opened: %s", path, strerror(errno));
    size_t size = 0;
    outrider_status status = check_kind(fd, path, &size, err);
    if (status == OUTRIDER_OK) {
        void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED) {
            status = error_set(err, OUTRIDER_FAILURE, "%s: cannot be mapped: %s", path, strerror(errno));
        } else {
            *map = (file_map){.path = strdup(path), .data = data, .size = size};
            if (!map->path) {
                file_map_close(map);
                status = error_memory(err, "a path", strlen(path) + 1);
            }
        }
    }
    close(fd);
    return status;
}

/* Only whole pages inside the range are given up: its first and last page may hold a neighbour that is still needed. */
void file_map_release(const file_map *map, const void *data, size_t size)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t base = (uintptr_t)map->data, begin = (uintptr_t)data, end = begin + size;
    ensure(begin >= base && size <= map->size - (begin - base));
    uintptr_t first = (begin + page - 1) / page * page;
    uintptr_t last = end == base + map->size ? (end + page - 1) / page * page : end / page * page;
    if (first < last)
        (void)madvise((void *)first, last - first, MADV_DONTNEED); /* a private read-only map: read again if touched */
}

void file_map_close(file_map *map)
{
    if (map->data) munmap((void *)(uintptr_t)map->data, map->size);
    free(map->path);
    *map = (file_map){0};
}
