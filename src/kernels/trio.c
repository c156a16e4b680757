#include "kernels/trio.h"

#include <string.h>

/* SPREAD[b] has bit i of b as the low bit of byte i. Packing reads it four times for 8 weights; multiplications that do the
 * same took twice as long. */
#define S1(b)                                                                                                                    \
    ((uint64_t)((b)&1) | (uint64_t)((b) >> 1 & 1) << 8 | (uint64_t)((b) >> 2 & 1) << 16 | (uint64_t)((b) >> 3 & 1) << 24 |       \
     (uint64_t)((b) >> 4 & 1) << 32 | (uint64_t)((b) >> 5 & 1) << 40 | (uint64_t)((b) >> 6 & 1) << 48 | (uint64_t)((b) >> 7 & 1) << 56)
#define S4(b)  S1(b), S1((b) + 1), S1((b) + 2), S1((b) + 3)
#define S16(b) S4(b), S4((b) + 4), S4((b) + 8), S4((b) + 12)
#define S64(b) S16(b), S16((b) + 16), S16((b) + 32), S16((b) + 48)
static const uint64_t SPREAD[256] = {S64(0), S64(64), S64(128), S64(192)};

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
            const uint64_t lo = SPREAD[p & (uint8_t)~r] + 2 * SPREAD[n & (uint8_t)~r];
            const uint64_t high_plus = SPREAD[p & r], high_minus = SPREAD[n & r], hi = high_plus + 2 * high_minus;
            /* Bytes stay below 256 in every sum: digit <= 4, 5 e <= 10, 16 digit <= 64, 80 f <= 160. */
            const uint64_t digit = lo + 3 * high_plus + 4 * high_minus;
            const uint64_t code = part == 0 ? digit : part == 1 ? digit << 4 : 5 * lo + 80 * hi;
            uint8_t *out = tile + (v * lanes + lane) * 16 + 8 * half;
            uint64_t have;
            memcpy(&have, out, 8);
            have += code;
            memcpy(out, &have, 8);
        }
}
