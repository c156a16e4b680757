/* Which of the templates that we have in C a Jinja template is. */
#ifndef TEXT_CHAT_KNOWN_H
#define TEXT_CHAT_KNOWN_H

#include "base/bytes.h"

typedef enum chat_kind { CHAT_UNKNOWN, CHAT_CHATML, CHAT_QWEN3 } chat_kind;

typedef struct chat_known {
    chat_kind kind;
    bool null_is_empty;   /* Qwen3: the later text of the template, which takes content null (or none) as "" */
    bytes default_system; /* ChatML: the system prompt when the first message is not one; .data is NULL when there is none */
} chat_known;

/* Compares a template with the known ones tag by tag, so that whatever it does otherwise makes it unknown. Layout, the kind of quotes and
 * x['role'] for x.role make no difference. False when memory ran out. */
bool chat_recognise(const char *text, size_t size, chat_known *known);

/* Appends the template's tags in the form they are compared in, each followed by a zero byte: "%" and a statement, "=" and an output. A
 * text that cannot be taken apart ends with the tag "?". */
bool chat_tags(const char *text, size_t size, bytes *tags);

#endif
