#include "base/memory.h"

#include <sys/mman.h>

void *memory_map(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return NULL;
    /* Below a few huge pages the rounding would cost more memory than the fewer page walks save time. */
    if (bytes >= (size_t)8 << 20) madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

void memory_unmap(void *p, size_t bytes)
{
    if (p) munmap(p, bytes);
}
