#include "decode/accept.h"

#include "base/error.h"

static bool is_end(uint32_t id, const uint32_t *ends, size_t n_ends)
{
    for (size_t i = 0; i < n_ends; i++)
        if (ends[i] == id) return true;
    return false;
}

/* picks[i] was chosen after proposals[0..i), so it is the verifier's own next token exactly when all of those equal the picks before
 * them: the run of matches from the front is what stands, and the pick after it comes on top (the correction, or one more token when
 * nothing was wrong). picks[kept] also tells whether the first proposal that was not verified would have been right. */
accept_result accept_run(const uint32_t *proposals, size_t drafted, size_t kept, const uint32_t *picks, size_t cap,
                         const uint32_t *ends, size_t n_ends)
{
    ensure(kept <= drafted && cap >= 1);
    accept_result r = {0, 0, 0, ACCEPT_OPEN};
    while (r.matched < drafted && r.matched <= kept && proposals[r.matched] == picks[r.matched]) r.matched++;
    const size_t run = (r.matched < kept ? r.matched : kept) + 1;
    while (r.emitted < run && r.end == ACCEPT_OPEN) {
        if (is_end(picks[r.emitted], ends, n_ends)) r.end = ACCEPT_END_ID;
        r.emitted++;
        if (r.end == ACCEPT_OPEN && r.emitted == cap) r.end = ACCEPT_CAP;
    }
    r.accepted = run - 1 < r.emitted ? run - 1 : r.emitted;
    return r;
}
