/* The decoding cycle: draft, verify in one pass, keep what the verifier would have written itself, roll both caches back.
 * Plain decoding is the same cycle with no draft source. The invariants stand at the head of step.c. */
#ifndef DECODE_STEP_H
#define DECODE_STEP_H

#include <stdatomic.h>

#include "decode/accept.h"
#include "decode/draft.h"
#include "decode/lane.h"
#include "decode/length.h"

/* Seconds of some steady clock; NULL in the settings: CLOCK_MONOTONIC. */
typedef double (*decode_clock)(void *user);

typedef struct decode_settings {
    lane verifier;
    const draft_source *draft; /* NULL: plain */
    length_controller *length; /* NULL only when draft is; kept by the caller, may go on over several answers */
    uint32_t *history;         /* the caller's, room for `context` ids; the decoder appends */
    size_t n;                  /* ids in it, 1..context - 1 */
    size_t context;
    const uint32_t *ends;      /* the verifier's end ids; not owned */
    size_t n_ends;             /* 0: go on past them */
    uint64_t max_tokens;       /* 0: as many as the context holds */
    const atomic_bool *cancel; /* read before each pass; NULL: never cancelled */
    decode_clock clock;
    void *clock_user;
} decode_settings;

typedef enum decode_phase { DECODE_COLD, DECODE_PRIMED, DECODE_RUNNING, DECODE_DONE } decode_phase;

/* What one kind of source contributed. */
typedef struct decode_source {
    uint64_t drafted, proposed, accepted; /* made; of them verified; of them accepted */
    double seconds;                       /* that making them took */
} decode_source;

typedef struct decoder {
    decode_settings s;
    size_t n; /* ids in the history now */
    uint64_t emitted;
    decode_phase phase;
    uint64_t prompt_tokens; /* computed by decode_prefill */

    /* Counts, as in outrider_result. */
    uint64_t proposed, accepted, verifies, drafted_steps;
    uint64_t proposed_at[OUTRIDER_MAX_DRAFT], accepted_at[OUTRIDER_MAX_DRAFT];
    uint64_t widths[OUTRIDER_MAX_ROWS + 1];
    uint64_t switches_before; /* the controller's count when this answer began */
    double draft_seconds, verify_seconds;
    decode_source sources[LENGTH_SOURCES]; /* the same by who made the proposals; of a step that fails what was made */
} decoder;

/* What one step yielded. The rows are those of the verifier's last pass and can be read until the next step. */
typedef struct decode_emitted {
    size_t n;                        /* 1..OUTRIDER_MAX_ROWS; 0 only with a status other than OK */
    uint32_t ids[OUTRIDER_MAX_ROWS]; /* also history[decoder.n - n ..] */
    size_t rows[OUTRIDER_MAX_ROWS];  /* for each: the kept logits row that chose it */
    bool finished;
    outrider_finish finish; /* when finished: END, LENGTH or CONTEXT */
} decode_emitted;

/* Begins an answer. Nothing is computed or allocated. The verifier's cache must hold a prefix of the history (all of it at most). */
void decode_start(decoder *d, const decode_settings *settings);

/* Computes what the verifier lacks of the history, `rows` (>= 1) ids a pass, with logits for the last one alone; when it lacks
 * nothing, the last id is computed again. OUTRIDER_CANCELLED when the flag was raised before a pass; what was computed
 * stays, and it may be called again. */
outrider_status decode_prefill(decoder *d, size_t rows, outrider_error *err);

/* Gives the draft the prompt now rather than with its first proposal (an option: time before the answer against time in it). Does
 * nothing without a draft or while the length stands at 0 (fixed at 0, or drafts are off). */
outrider_status decode_warm(decoder *d, outrider_error *err);

/* One cycle, after decode_prefill and until `finished`. The first one emits the token that the prefill's last row chose, without a
 * pass. With any status other than OK nothing was emitted and history and caches are as before the step (the draft may have taken in
 * more of the history); after OUTRIDER_CANCELLED the answer may be taken up again. */
outrider_status decode_step(decoder *d, decode_emitted *out, outrider_error *err);

/* Writes the fields of *result that the decoder counts: prompt_tokens, tokens, proposed .. widths, draft_seconds, verify_seconds. */
void decode_report(const decoder *d, outrider_result *result);

#endif
