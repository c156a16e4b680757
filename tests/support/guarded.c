#include "guarded.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Bytes on each free side that are filled and compared; enough for the widest store of any kernel, and a few. */
enum { MARGIN = 512, FIRST_BYTES = 1 << 18 };

typedef struct slot {
    uint8_t *low, *high; /* usable bytes between the guard pages */
    uint8_t *data;       /* NULL: none placed */
    size_t size;
} slot;

static slot slots[GUARDED_SLOTS];

static void map_slot(slot *s, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    bytes = (bytes + page - 1) / page * page;
    if (s->low) munmap(s->low - page, (size_t)(s->high - s->low) + 2 * page);
    uint8_t *map = mmap(NULL, bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || mprotect(map + page, bytes, PROT_READ | PROT_WRITE)) {
        perror("guarded buffer");
        abort();
    }
    s->low = map + page;
    s->high = s->low + bytes;
}

/* The margins below and above the buffer, cut at the guard pages. */
static uint8_t *margin_low(const slot *s) { return s->data - s->low > MARGIN ? s->data - MARGIN : s->low; }
static uint8_t *margin_high(const slot *s)
{
    uint8_t *end = s->data + s->size;
    return s->high - end > MARGIN ? end + MARGIN : s->high;
}

void *guarded_place(int number, size_t size, size_t align, guarded_where where)
{
    slot *s = &slots[number];
    const size_t needed = size + align + MARGIN;
    if ((size_t)(s->high - s->low) < needed) map_slot(s, needed > FIRST_BYTES ? needed : FIRST_BYTES);
    s->data = where == GUARDED_START ? s->low : s->high - (size + align - 1) / align * align;
    s->size = size;
    uint8_t *from = margin_low(s);
    memset(from, GUARDED_PATTERN, (size_t)(margin_high(s) - from));
    return s->data;
}

bool guarded_intact(void)
{
    for (int i = 0; i < GUARDED_SLOTS; i++) {
        const slot *s = &slots[i];
        if (!s->data) continue;
        for (const uint8_t *p = margin_low(s); p < s->data; p++)
            if (*p != GUARDED_PATTERN) return false;
        for (const uint8_t *p = s->data + s->size; p < margin_high(s); p++)
            if (*p != GUARDED_PATTERN) return false;
    }
    return true;
}

void guarded_clear(void)
{
    for (int i = 0; i < GUARDED_SLOTS; i++) slots[i].data = NULL;
}
