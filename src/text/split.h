/* The split pattern of a tokenizer: one regular expression that cuts text into the words that byte pairs are merged
 * in. */
#ifndef TEXT_SPLIT_H
#define TEXT_SPLIT_H

#include "base/error.h"

typedef struct split split;

/* Compiles a pattern that was written for Oniguruma (Ruby syntax). What means something else in PCRE2 is translated or
 * refused; `where` begins the message (file and field). */
outrider_status split_open(split **out, const char *pattern, size_t size, const char *where, outrider_error *err);
void split_close(split *s); /* NULL is allowed */

/* One thread's way through texts. */
typedef struct split_cursor split_cursor;
split_cursor *split_cursor_new(const split *s); /* NULL when memory ran out */
void split_cursor_free(split_cursor *c);        /* NULL is allowed */

/* Starts on a text of valid UTF-8, which must stay where it is. */
void split_start(split_cursor *c, const char *text, size_t size);

/* The next piece, which begins where the last one ended: a match, or what lies between two. *size is 0 at the end. */
outrider_status split_next(split_cursor *c, const char **piece, size_t *size, outrider_error *err);

#endif
