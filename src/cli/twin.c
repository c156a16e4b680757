#include "cli/twin.h"

#include <string.h>

#include "cli/interrupt.h"

outrider_status twin_open(twin *t, outrider_model *model, outrider_draft_kind kind, outrider_error *err)
{
    static const outrider_role roles[2] = {OUTRIDER_ROLE_PLAIN, OUTRIDER_ROLE_PAIR};
    outrider_session_options options = OUTRIDER_SESSION_OPTIONS_INIT;
    options.digests = !t->ids_only;
    options.draft_kind = kind;
    t->model = model;
    for (int side = 0; side < 2; side++) {
        options.role = roles[side];
        outrider_status status = outrider_session_open(model, &options, &t->sessions[side], err);
        if (status) return status;
    }
    return OUTRIDER_OK;
}

void twin_close(twin *t)
{
    interrupt_watch(NULL);
    for (int side = 0; side < 2; side++) {
        outrider_session_close(t->sessions[side]);
        t->sessions[side] = NULL;
    }
}

/* Hands text on to the caller's function, if any, until there was an interrupt. */
typedef struct relay {
    outrider_on_text on_text;
    void *user;
} relay;

static bool relay_text(void *user, const char *text, size_t size, const uint32_t *ids, size_t n_ids)
{
    relay *r = user;
    bool on = !r->on_text || r->on_text(r->user, text, size, ids, n_ids);
    return on && !interrupt_seen();
}

static outrider_status push(const twin *t, outrider_session *session, const char *prompt, outrider_error *err)
{
    outrider_message message = {"user", prompt};
    if (t->raw) return outrider_session_push_text(session, prompt, strlen(prompt), OUTRIDER_SPECIALS, err);
    return outrider_session_push_chat(session, &message, 1, t->chat_flags, err);
}

outrider_status twin_ask(twin *t, twin_side side, const twin_question *question, outrider_on_text on_text, void *user,
                         twin_answer *answer, outrider_error *err)
{
    outrider_session *session = t->sessions[side];
    relay r = {on_text, user};
    size_t prompt;
    outrider_status status = outrider_session_truncate(session, 0, err);
    if (!status) status = push(t, session, question->prompt, err);
    if (status) return status;
    outrider_session_tokens(session, &prompt);
    interrupt_watch(session); /* until twin_close: an interrupt between two answers is then seen by the next one */
    status = outrider_session_generate(session, &question->options, relay_text, &r, &answer->result, err);
    answer->ids_digest[0] = answer->logits_digest[0] = 0;
    if (!status && !t->ids_only) status = outrider_session_digests(session, answer->ids_digest, answer->logits_digest, err);
    if (status) return status;
    answer->ids = outrider_session_tokens(session, &answer->n) + prompt;
    answer->n -= prompt;
    return OUTRIDER_OK;
}

bool twin_same(const twin_answer *plain, const twin_answer *drafted, compare_difference *found)
{
    compare_stream a = {plain->ids, plain->n, plain->ids_digest, plain->logits_digest};
    compare_stream b = {drafted->ids, drafted->n, drafted->ids_digest, drafted->logits_digest};
    return compare_streams(&a, &b, found);
}
