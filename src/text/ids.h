/* A growable run of token ids. */
#ifndef TEXT_IDS_H
#define TEXT_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ids {
    uint32_t *data; /* owned; NULL while nothing was added */
    size_t size, capacity;
} ids;

bool ids_add(ids *list, uint32_t id); /* false when memory ran out; what was there stays */
void ids_free(ids *list);             /* leaves an empty one */

#endif
