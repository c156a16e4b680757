/* UTF-8: how much of a run of bytes is valid. */
#ifndef TEXT_UTF8_H
#define TEXT_UTF8_H

#include <stddef.h>

/* Length of the longest prefix that is whole, valid UTF-8 (no surrogates, nothing overlong, nothing above U+10FFFF). */
size_t utf8_valid_prefix(const char *text, size_t size);

#endif
