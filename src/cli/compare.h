/* Whether a drafted answer is the plain one. Nothing here knows a model, so that tests can plant a difference. */
#ifndef CLI_COMPARE_H
#define CLI_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One answer: its ids, and the digests of all ids and all logits rows up to its end. */
typedef struct compare_stream {
    const uint32_t *ids;
    size_t n;
    const char *ids_digest, *logits_digest; /* hex, zero-terminated */
} compare_stream;

typedef enum compare_kind {
    COMPARE_SAME,
    COMPARE_ID,     /* another id at `index` */
    COMPARE_LENGTH, /* one is the beginning of the other; `index` is where it ends */
    COMPARE_IDS,    /* equal ids, unequal digests of ids: the digest went wrong */
    COMPARE_LOGITS  /* equal ids from logits that are not equal bit for bit */
} compare_kind;

typedef struct compare_difference {
    compare_kind kind;
    size_t index;           /* of COMPARE_ID and COMPARE_LENGTH: the first token that differs, counted from 0 */
    int64_t plain, drafted; /* the ids there, -1: no token */
} compare_difference;

/* True when both are the same; `found` is filled either way. */
bool compare_streams(const compare_stream *plain, const compare_stream *drafted, compare_difference *found);

/* One line about a difference, zero-terminated, cut to fit. */
void compare_describe(const compare_difference *d, char *text, size_t size);

#endif
