/* The small members of a tokenizer.json: checked, and what they set. */
#ifndef TEXT_FIELDS_H
#define TEXT_FIELDS_H

#include <jansson.h>

#include "text/split.h"
#include "text/vocab.h"

typedef struct fields {
    bool nfc;           /* text is normalised */
    bool ignore_merges; /* a word that is a token stays whole */
    split *pattern;     /* owned by the caller; NULL after a failure */
} fields;

/* Refuses whatever this tokenizer doesn't do, with file, field, expected and found. `root` has no vocab and merges
 * (scan.h). */
outrider_status fields_read(json_t *root, const char *name, fields *out, outrider_error *err);

/* Appends the added tokens to the vocabulary and their ids to *added, in the file's order. */
outrider_status fields_added(json_t *root, const char *name, vocab *v, uint32_t **added, size_t *n_added, outrider_error *err);

#endif
