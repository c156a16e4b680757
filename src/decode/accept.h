/* Which proposals stand. Pure. */
#ifndef DECODE_ACCEPT_H
#define DECODE_ACCEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum accept_end { ACCEPT_OPEN, ACCEPT_END_ID, ACCEPT_CAP } accept_end;

typedef struct accept_result {
    size_t accepted; /* proposals among those verified that equal the verifier's choice and are emitted */
    size_t
        matched; /* proposals that equal the verifier's choice, cut or not, with the first one not verified if its right value is known */
    size_t emitted; /* picks[0..emitted) go out: 1..accepted + 1 */
    accept_end end; /* END_ID: the last one emitted is an end id; CAP: `cap` ids were emitted, the last is no end id */
} accept_result;

/* picks[0..kept] are the verifier's choices after [pending, proposals[0..kept)]; `drafted` >= kept proposals exist. At most `cap` (>= 1)
 * ids may be emitted. ends[0..n_ends) are the verifier's end ids (n_ends = 0: none ends anything). */
accept_result accept_run(const uint32_t *proposals, size_t drafted, size_t kept, const uint32_t *picks, size_t cap,
                         const uint32_t *ends, size_t n_ends);

#endif
