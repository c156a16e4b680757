/* Token bytes -> UTF-8 text, as they come: never half a character. */
#ifndef TEXT_DECODER_H
#define TEXT_DECODER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

/* Zeroed: nothing held back. */
typedef struct text_decoder {
    uint8_t held[4]; /* the start of a character that is not whole yet */
    size_t n_held;
} text_decoder;

/* Appends the text that becomes certain with these bytes. What can never become a character is U+FFFD, one for each maximal subpart
 * (Unicode 15, section 3.9; Python's 'replace' does the same): joined deltas equal the decoding of the whole. False when memory ran out. */
bool text_decoder_push(text_decoder *d, const char *data, size_t size, bytes *out);

/* The end of the text: U+FFFD for what is still held back. */
bool text_decoder_flush(text_decoder *d, bytes *out);

#endif
