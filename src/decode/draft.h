/* Where proposals come from. A source follows a history that it does not own and proposes, one id at a time, what may come
 * next; what it proposes is never trusted, so a source can be slow or wrong but cannot change the stream. */
#ifndef DECODE_DRAFT_H
#define DECODE_DRAFT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The id of a proposal that is none: the source has nothing to propose, and what was proposed so far is all. No model has such an id. */
#define DRAFT_NONE UINT32_MAX

typedef struct draft_proposal {
    uint32_t id;      /* or DRAFT_NONE; then the rest says nothing but for passes */
    float confidence; /* distance of the best logit from the second, or what the source deems equal to it; >= 0 */
    uint32_t passes;  /* forward passes that this proposal took; 0: it was looked up and costs nothing (see length_source) */
} draft_proposal;

typedef struct draft_source {
    void *self;

    /* Makes ready to propose what follows history[0..n), n >= 1. Makes no pass. The ids stay readable and unchanged until settle. */
    void (*begin)(void *self, const uint32_t *history, size_t n);

    /* Proposes one more id: the first call after begin takes in whatever of the history the source has not seen yet, the
     * following calls continue the source's own proposals. OUTRIDER_CANCELLED when the flag was raised before a pass. After a failure
     * the source holds a prefix of history + proposals, as ever. */
    outrider_status (*next)(void *self, draft_proposal *out, outrider_error *err);

    /* Rolls back: of the ids that the source has taken in, the first n at most still belong to the history. Called after each
     * step that began, and whenever the history was cut. */
    void (*settle)(void *self, size_t n);

    /* Ids of a history of n (>= 1) that the first proposal would have to take in: 1 when only the last one is missing. The cost of a
     * first proposal is that of a step plus that of taking in the rest. 0: it may take no pass at all; then begin comes first and
     * missing is asked once more, until settle: 0 says now that the first proposal, if there is one, takes no pass. */
    size_t (*missing)(const void *self, size_t n);

    /* Takes in all but the last id of history[0..n) now, so that the time falls where the caller wants it (with the prompt). */
    outrider_status (*warm)(void *self, const uint32_t *history, size_t n, outrider_error *err);
} draft_source;

#endif
