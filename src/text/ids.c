#include "text/ids.h"

#include <stdlib.h>

bool ids_add(ids *list, uint32_t id)
{
    if (list->size == list->capacity) {
        size_t capacity = list->capacity < 64 ? 64 : list->capacity, bytes;
        if (list->capacity >= 64 && __builtin_add_overflow(capacity, capacity / 2, &capacity)) return false;
        if (__builtin_mul_overflow(capacity, sizeof *list->data, &bytes)) return false;
        uint32_t *data = realloc(list->data, bytes);
        if (!data) return false;
        list->data = data;
        list->capacity = capacity;
    }
    list->data[list->size++] = id;
    return true;
}

void ids_free(ids *list)
{
    free(list->data);
    *list = (ids){0};
}
