#include "kernels/trio.h"

#include <string.h>

/* Spreads the 8 bits of a byte over the low bits of 8 bytes, bit i to byte i: the multiplication copies the byte into all
 * bytes, the mask keeps bit i of byte i, and the sum with 0x7f carries it to bit 7 of its byte (the table of 256 words that this would be costs
 * more cache than it saves time). */
static inline uint64_t spread(uint8_t bits)
{
    uint64_t kept = (bits * 0x0101010101010101u) & 0x8040201008040201u;
    return ((kept + 0x7f7f7f7f7f7f7f7fu) | kept) >> 7 & 0x0101010101010101u;
}

static inline uint8_t plane_byte(const uint8_t *plane, size_t at, size_t cols)
{
    size_t first = at * 8;
    if (first + 8 <= cols) return plane[at];
    if (first >= cols) return 0;
    return (uint8_t)(plane[at] & ((1u << (cols - first)) - 1));
}

void trio_pack_row(uint8_t *tile, size_t lanes, size_t row_in_tile, const five_row *row)
{
    const size_t lane = row_in_tile % lanes, part = row_in_tile / lanes;
    const size_t vectors = (row->cols + 15) / 16;
    for (size_t v = 0; v < vectors; v++)
        for (size_t half = 0; half < 2; half++) {
            const size_t at = 2 * v + half;
            const uint8_t p = plane_byte(row->bp, at, row->cols), n = plane_byte(row->bn, at, row->cols),
                          r = plane_byte(row->br, at, row->cols);
            const uint64_t lo = spread(p & (uint8_t)~r) + 2 * spread(n & (uint8_t)~r);
            const uint64_t hi = spread(p & r) + 2 * spread(n & r);
            /* Bytes stay below 256 in every sum: digit <= 4, 5 e <= 10, 16 digit <= 64, 80 f <= 160. */
            const uint64_t digit = lo + hi + 2 * spread(r);
            const uint64_t code = part == 0 ? digit : part == 1 ? digit << 4 : 5 * lo + 80 * hi;
            uint8_t *out = tile + (v * lanes + lane) * 16 + 8 * half;
            uint64_t have;
            memcpy(&have, out, 8);
            have += code;
            memcpy(out, &have, 8);
        }
}
