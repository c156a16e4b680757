/* Large blocks straight from the kernel: zeroed, page-aligned, resident only where they were touched. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>

/* `bytes` (at least 1) of zeroed memory, backed by huge pages where the kernel grants them; NULL when the address space or the limit set on this
 * process does not allow it. */
void *memory_map(size_t bytes);

/* Gives back what memory_map gave, with the same size. NULL is allowed. */
void memory_unmap(void *p, size_t bytes);

#endif
