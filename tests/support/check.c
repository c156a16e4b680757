#include "check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/digest.h"

const char *const *check_masks(size_t *n)
{
    static const char *names[CPU_ISAS];
    *n = 0;
    for (int isa = 0; isa < CPU_ISAS; isa++)
        if (cpu_has((cpu_isa)isa)) names[(*n)++] = cpu_isa_name((cpu_isa)isa);
    return names;
}

void check_ok(outrider_status status, const outrider_error *err)
{
    if (status != OUTRIDER_OK) fail_msg("status %d: %s", (int)status, err->message);
}

outrider_model *check_open(const char *path, const char *draft, bool text, const char *mask, int threads)
{
    outrider_model_options o = OUTRIDER_MODEL_OPTIONS_INIT;
    o.draft_path = draft;
    o.no_tokenizer = !text;
    o.cpu_mask = mask;
    o.threads = threads;
    outrider_model *model = NULL;
    outrider_error err = {0};
    check_ok(outrider_model_open(path, &o, &model, &err), &err);
    return model;
}

outrider_session *check_session(outrider_model *model, outrider_role role, bool digests)
{
    outrider_session_options o = OUTRIDER_SESSION_OPTIONS_INIT;
    o.role = role;
    o.digests = digests;
    outrider_session *session = NULL;
    outrider_error err = {0};
    check_ok(outrider_session_open(model, &o, &session, &err), &err);
    return session;
}

void check_row_digest(const outrider_session *session, size_t row, size_t vocab, char hex[65])
{
    const float *logits = outrider_session_logits(session, row);
    assert_non_null(logits);
    digest_of(logits, vocab * sizeof *logits, hex);
}
