#include "text/utf8.h"

#include <stdint.h>
#include <string.h>

/* Length of the valid character at the front of p, 0 if there is none (Unicode 15, table 3-7). */
static size_t character(const uint8_t *p, size_t size)
{
    uint8_t lead = p[0], low = 0x80, high = 0xbf;
    size_t length;
    if (lead < 0x80) return 1;
    if (lead < 0xc2 || lead > 0xf4) return 0;
    if (lead < 0xe0) {
        length = 2;
    } else if (lead < 0xf0) {
        length = 3;
        if (lead == 0xe0) low = 0xa0;
        if (lead == 0xed) high = 0x9f;
    } else {
        length = 4;
        if (lead == 0xf0) low = 0x90;
        if (lead == 0xf4) high = 0x8f;
    }
    if (size < length || p[1] < low || p[1] > high) return 0;
    for (size_t i = 2; i < length; i++)
        if (p[i] < 0x80 || p[i] > 0xbf) return 0;
    return length;
}

size_t utf8_valid_prefix(const char *text, size_t size)
{
    size_t i = 0;
    while (i < size) {
        uint64_t eight;
        if (size - i >= 8 && (memcpy(&eight, text + i, 8), (eight & 0x8080808080808080u) == 0)) {
            i += 8;
            continue;
        }
        size_t length = character((const uint8_t *)text + i, size - i);
        if (!length) break;
        i += length;
    }
    return i;
}
