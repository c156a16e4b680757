/* Chat prompts: what the Qwen3 and ChatML templates make of a conversation, in C. */
#ifndef TEXT_CHAT_H
#define TEXT_CHAT_H

#include <jansson.h>

#include "base/bytes.h"
#include "base/error.h"
#include "text/tokenizer.h"

enum {
    CHAT_ADD_GENERATION_PROMPT = 1, /* open the assistant's turn at the end */
    CHAT_NO_THINKING = 2            /* enable_thinking = false */
};

typedef struct chat_template chat_template;

/* Recognises the template in `dir`/tokenizer_config.json (chat_template) by its features: the Qwen3 one, or ChatML with or without a
 * default system prompt. Anything else is refused, never guessed; so is a missing one. The lines suggest --chat-template chatml. */
outrider_status chat_open(chat_template **out, const char *dir, outrider_error *err);

/* A template by name: "chatml" (no default system prompt) or "qwen3". */
outrider_status chat_open_named(chat_template **out, const char *name, outrider_error *err);

void chat_close(chat_template *c); /* NULL is allowed */

const char *chat_name(const chat_template *c); /* "qwen3", "chatml" */

/* Appends the prompt for messages (a JSON array in the OpenAI chat shape) and tools (an array, or NULL). What the template cannot take is
 * OUTRIDER_USAGE, with the message's index. */
outrider_status chat_render(const chat_template *c, const json_t *messages, const json_t *tools, unsigned flags, bytes *out,
                            outrider_error *err);

/* The same as token ids. Special tokens in what the conversation brings stay text; only the template's own are matched. */
outrider_status chat_encode(const chat_template *c, const tokenizer *t, const json_t *messages, const json_t *tools, unsigned flags,
                            ids *out, outrider_error *err);

#endif
