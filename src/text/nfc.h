/* Unicode's canonical composition (NFC). */
#ifndef TEXT_NFC_H
#define TEXT_NFC_H

#include "base/bytes.h"

/* False only for text that is its own NFC for certain: valid UTF-8 without a character from U+0300 on. */
bool nfc_may_change(const char *text, size_t size);

/* Code points between the steps; zeroed at first, kept from call to call, freed by the caller. */
typedef struct nfc_work {
    int32_t *points;
    size_t capacity;
} nfc_work;

/* Appends the NFC of valid UTF-8. Linear time, whatever the text. False when memory ran out. */
bool nfc_add(nfc_work *work, const char *text, size_t size, bytes *out);

#endif
