/* JSON as Python's json.dumps(x, ensure_ascii=False) writes it, which is what tojson does in a chat template. */
#ifndef TEXT_CHAT_JSON_H
#define TEXT_CHAT_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "base/bytes.h"

/* Appends the value; keys stay in the order they came in. False when memory ran out. */
bool chat_json_dump(const json_t *value, bytes *out);

/* Appends a finite number as Python's repr: the shortest digits that read back as the same number. */
bool chat_json_real(double value, bytes *out);

#endif
