/* The two big members of a tokenizer.json, model.vocab and model.merges, read in place: a tree of their hundreds of
 * thousands of values would take longer to build than all the rest of loading. */
#ifndef TEXT_SCAN_H
#define TEXT_SCAN_H

#include "text/bpe.h"
#include "text/vocab.h"

typedef struct scan_span {
    const char *begin, *end; /* NULL: not found */
} scan_span;

/* Finds both members and writes the document to `rest` with null in their place; that is still to be checked by a JSON
 * parser. Where the document is broken the rest of it is copied as it is, so that the parser meets the same. False
 * when memory ran out. */
bool scan_cut(const char *json, size_t size, scan_span *vocab_span, scan_span *merges_span, bytes *rest);

/* Reads {"token": id, ...} in the byte alphabet. A token that is not in the alphabet becomes TOKEN_FOREIGN. */
outrider_status scan_vocab(scan_span span, const char *name, vocab *v, outrider_error *err);

/* Reads ["a b", ...] or [["a", "b"], ...]. */
outrider_status scan_merges(scan_span span, const char *name, const vocab *v, bpe *b, outrider_error *err);

#endif
