/* The ids that end an answer. */
#ifndef TEXT_ENDS_H
#define TEXT_ENDS_H

#include "text/tokenizer.h"

/* Appends the end ids that `dir`/generation_config.json lists (eos_token_id: a number or a list); where that file or field is missing, the
 * ids of eos_token in `dir`/tokenizer_config.json and of <|im_end|> and <|endoftext|>, as far as the tokenizer has them. A file that
 * is there and not as expected is refused. */
outrider_status ends_read(const char *dir, const tokenizer *t, ids *out, outrider_error *err);

#endif
