/* Stop strings in a stream of text: it ends before the first match, and nothing of a match is ever shown. */
#ifndef TEXT_STOP_H
#define TEXT_STOP_H

#include "base/bytes.h"
#include "base/error.h"

enum { STOP_MAX = 16 };

typedef struct stop_matcher {
    const char *const *strings; /* not owned */
    size_t n;
    bytes held; /* text that may be the beginning of a match */
    int matched; /* index of the stop string that ended the text, or -1 */
} stop_matcher;

/* Up to STOP_MAX strings, none empty (OUTRIDER_USAGE). They must outlive the matcher; n may be 0. */
outrider_status stop_open(stop_matcher *m, const char *const *strings, size_t n, outrider_error *err);
void stop_close(stop_matcher *m);

/* Takes text in and appends to *out what can be shown for certain. Of several matches the one that begins first counts, of those that begin together
 * the one that ends first. After a match (m->matched >= 0) nothing more is appended. False when memory ran out. */
bool stop_push(stop_matcher *m, const char *text, size_t size, bytes *out);

/* The end of the stream: appends what was held back, if nothing matched. */
bool stop_flush(stop_matcher *m, bytes *out);

#endif
