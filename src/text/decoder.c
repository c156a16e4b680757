#include "text/decoder.h"

static const char replacement[3] = {(char)0xEF, (char)0xBF, (char)0xBD}; /* U+FFFD */

/* How many bytes a character has that begins with `lead`; 0 when none does. */
static size_t character_size(uint8_t lead)
{
    if (lead < 0x80) return 1;
    if (lead < 0xC2) return 0; /* a continuation byte, or an overlong form */
    if (lead < 0xE0) return 2;
    if (lead < 0xF0) return 3;
    return lead < 0xF5 ? 4 : 0;
}

/* Whether `byte` may follow the bytes held: table 3-7 of the Unicode standard. Only the second byte's range depends on the first: no
 * overlong forms, no surrogates, nothing above U+10FFFF. */
static bool continues(const text_decoder *d, uint8_t byte)
{
    uint8_t low = 0x80, high = 0xBF;
    if (d->n_held == 1) {
        switch (d->held[0]) {
        case 0xE0: low = 0xA0; break;
        case 0xED: high = 0x9F; break;
        case 0xF0: low = 0x90; break;
        case 0xF4: high = 0x8F; break;
        default: break;
        }
    }
    return byte >= low && byte <= high;
}

/* One byte more. What is appended fits into what text_decoder_push reserved. */
static void push_byte(text_decoder *d, uint8_t byte, bytes *out)
{
    if (d->n_held && !continues(d, byte)) {
        /* What is held is the longest beginning of a character there can be: it becomes one U+FFFD, and the byte begins anew. */
        bytes_add(out, replacement, sizeof replacement);
        d->n_held = 0;
    }
    if (!d->n_held && !character_size(byte)) {
        bytes_add(out, replacement, sizeof replacement);
        return;
    }
    d->held[d->n_held++] = byte;
    if (d->n_held < character_size(d->held[0])) return;
    bytes_add(out, d->held, d->n_held);
    d->n_held = 0;
}

/* Each byte, held or new, becomes three at most. That much is reserved first, so that a call works whole or not at all. */
bool text_decoder_push(text_decoder *d, const char *data, size_t size, bytes *out)
{
    size_t most;
    if (__builtin_add_overflow(size, sizeof d->held, &most) || __builtin_mul_overflow(most, sizeof replacement, &most))
        return false;
    if (!bytes_reserve(out, most)) return false;
    for (size_t i = 0; i < size; i++) push_byte(d, (uint8_t)data[i], out);
    return true;
}

bool text_decoder_flush(text_decoder *d, bytes *out)
{
    if (d->n_held && !bytes_add(out, replacement, sizeof replacement)) return false;
    d->n_held = 0;
    return true;
}
