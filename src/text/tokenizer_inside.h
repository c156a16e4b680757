/* What a tokenizer is made of, for tokenizer.c and encode.c. */
#ifndef TEXT_TOKENIZER_INSIDE_H
#define TEXT_TOKENIZER_INSIDE_H

#include "text/bpe.h"
#include "text/fields.h"
#include "text/tokenizer.h"
#include "text/vocab.h"

struct tokenizer {
    vocab vocab;
    bpe bpe;
    fields fields;
    uint32_t *added; /* ids of the added tokens, ordered by their bytes */
    size_t n_added;
    bool first[256]; /* first bytes of added tokens */
};

#endif
