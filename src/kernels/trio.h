/* The packed form that all SIMD kernels share: three five-value weights a byte (2.67 bits a weight), made of two nibbles that a 16-entry byte shuffle
 * expands at once.
 *
 * A tile has 3 * lanes rows, where lanes is the number of 128-bit lanes of a vector (1 NEON, 2 AVX2, 4 AVX-512). A vector holds 16
 * columns: byte c of lane r is made of row r, row lanes + r and row 2 * lanes + r at that column. With a weight's code
 * digit = 0 zero, 1 +lo, 2 -lo, 3 +hi, 4 -hi, and the third row's weight seen as two ternary digits (lo part e, hi part f: 0 none, 1 plus, 2 minus),
 *     low nibble  = digit(first)  + 5 * e(third)      (0..14)
 *     high nibble = digit(second) + 5 * f(third)      (0..14)
 * So each of the three is a function of a nibble: digit(first) = low % 5, digit(second) = high % 5, third = (low / 5, high / 5); an expanding kernel looks
 * levels up by pshufb / tbl with no arithmetic in base 5. The vector of columns 16j.. of superblock b is number b * 16 + j of its tile.
 */
#ifndef KERNELS_TRIO_H
#define KERNELS_TRIO_H

#include "kernels/kernels.h"

/* Adds a row to a tile; lanes = 1, 2 or 4. A table's five_pack_row is this with its own lanes. */
void trio_pack_row(uint8_t *tile, size_t lanes, size_t row_in_tile, const five_row *row);

#endif
