#include "cli/compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool compare_streams(const compare_stream *plain, const compare_stream *drafted, compare_difference *found)
{
    size_t both = plain->n < drafted->n ? plain->n : drafted->n, i = 0;
    while (i < both && plain->ids[i] == drafted->ids[i]) i++;
    *found = (compare_difference){COMPARE_SAME, i, -1, -1};
    if (i < plain->n) found->plain = plain->ids[i];
    if (i < drafted->n) found->drafted = drafted->ids[i];
    if (i < both)
        found->kind = COMPARE_ID;
    else if (plain->n != drafted->n)
        found->kind = COMPARE_LENGTH;
    else if (strcmp(plain->ids_digest, drafted->ids_digest) != 0)
        found->kind = COMPARE_IDS;
    else if (strcmp(plain->logits_digest, drafted->logits_digest) != 0)
        found->kind = COMPARE_LOGITS;
    return found->kind == COMPARE_SAME;
}

void compare_describe(const compare_difference *d, char *text, size_t size)
{
    switch (d->kind) {
    case COMPARE_SAME: snprintf(text, size, "the streams are the same"); break;
    case COMPARE_ID:
        snprintf(text, size, "token %zu is %" PRId64 " plain and %" PRId64 " drafted", d->index, d->plain, d->drafted);
        break;
    case COMPARE_LENGTH:
        snprintf(text, size, "the %s stream ends at token %zu, where the other goes on with %" PRId64,
                 d->plain < 0 ? "plain" : "drafted", d->index, d->plain < 0 ? d->drafted : d->plain);
        break;
    case COMPARE_IDS: snprintf(text, size, "the ids are equal, but not their digests"); break;
    case COMPARE_LOGITS: snprintf(text, size, "the ids are equal, but not the logits that they came from"); break;
    }
}
