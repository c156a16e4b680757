/* Two sessions over one pair, one plain and one drafted, that answer the same prompts; and whether they said the same. */
#ifndef CLI_TWIN_H
#define CLI_TWIN_H

#include "cli/compare.h"
#include "outrider.h"

typedef enum twin_side { TWIN_PLAIN, TWIN_DRAFTED } twin_side;

typedef struct twin {
    outrider_model *model;
    outrider_session *sessions[2]; /* by side */
    bool raw;                      /* prompts are text to go on with, not a user's message */
    bool ids_only;                 /* no digests: they cost time, and ids are compared without them */
    unsigned chat_flags;
} twin;

/* What both sides are asked. */
typedef struct twin_question {
    const char *prompt;
    outrider_generate_options options; /* the plain side ignores what is said about drafts */
} twin_question;

typedef struct twin_answer {
    outrider_result result;
    const uint32_t *ids; /* of the answer; owned by the side's session, valid until its next answer */
    size_t n;
    char ids_digest[65], logits_digest[65]; /* over all that this side emitted since the sessions were opened; "" if ids_only */
} twin_answer;

/* Opens both sessions. twin_close may be called after a failure too, and twin_open again after twin_close. */
outrider_status twin_open(twin *t, outrider_model *model, outrider_draft_kind kind, outrider_error *err);
void twin_close(twin *t);

/* One side answers, beginning from an empty history. While it does, an interrupt ends the answer; answer->result.finish then
 * says so. on_text may be NULL. */
outrider_status twin_ask(twin *t, twin_side side, const twin_question *question, outrider_on_text on_text, void *user,
                         twin_answer *answer, outrider_error *err);

bool twin_same(const twin_answer *plain, const twin_answer *drafted, compare_difference *found);

#endif
