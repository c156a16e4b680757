/* Buffers that end, or begin, at a page that may not be touched: a read or write past the documented bytes faults at
 * once, and bytes on the free side are a known pattern that guarded_intact compares. */
#ifndef SUPPORT_GUARDED_H
#define SUPPORT_GUARDED_H

#include <stdbool.h>
#include <stddef.h>

/* Where the bytes lie: their last one right before the upper guard page (as near as the alignment allows), or their
 * first one right behind the lower guard page. */
typedef enum guarded_where { GUARDED_END, GUARDED_START, GUARDED_PLACES } guarded_where;

enum { GUARDED_SLOTS = 24 };

/* `size` bytes in slot `slot` (each slot holds one buffer at a time; a slot is mapped on first use and grows), their
 * address a multiple of `align`. The bytes are filled with the pattern too. Ends the process when memory runs out. */
void *guarded_place(int slot, size_t size, size_t align, guarded_where where);

/* Whether the bytes around the buffers that lie in the slots still hold the pattern. */
bool guarded_intact(void);

/* Forgets all buffers (the slots stay mapped). */
void guarded_clear(void);

/* The byte that fresh and free bytes hold. */
#define GUARDED_PATTERN 0xa5

#endif
