/* The program of outrider.h's manual, complete: asks a question and prints the answer as it comes. C11, and C++ too.
 *
 *     cc example.c $(pkg-config --cflags --libs outrider) -o example
 *     ./example [MODEL [QUESTION]]
 */
#include <outrider.h>

#include <stdio.h>

static int fail(const outrider_error *err)
{
    fprintf(stderr, "example: %s\n", err->message);
    return (int)err->status;
}

/* Called with each piece of text that is final; false would end the answer. */
static bool on_text(void *user, const char *text, size_t size, const uint32_t *ids, size_t n_ids)
{
    FILE *out = (FILE *)user;
    (void)ids;
    (void)n_ids;
    return fwrite(text, 1, size, out) == size && fflush(out) == 0;
}

/* One question to an open session. Returns 0, or the status of what failed. */
static int ask(outrider_session *session, const char *question)
{
    outrider_error err;
    outrider_message msg = {"user", question};
    outrider_generate_options go = OUTRIDER_GENERATE_OPTIONS_INIT;
    outrider_result result;
    go.max_tokens = 64;
    if (outrider_session_push_chat(session, &msg, 1, 0, &err)) return fail(&err);
    if (outrider_session_generate(session, &go, on_text, stdout, &result, &err)) return fail(&err);
    printf("\n(%llu tokens, %llu of %llu drafted ones accepted)\n", (unsigned long long)result.tokens,
           (unsigned long long)result.accepted, (unsigned long long)result.proposed);
    return result.tokens > 0 && result.finish != OUTRIDER_FINISH_CANCELLED ? 0 : 1;
}

int main(int argc, char **argv)
{
    outrider_error err;
    outrider_model *model;
    outrider_session *session;
    outrider_model_options mo = OUTRIDER_MODEL_OPTIONS_INIT;
    mo.draft_path = NULL; /* a folder with both files brings its own draft */
    if (outrider_model_open(argc > 1 ? argv[1] : "models/demo", &mo, &model, &err)) return fail(&err);
    int code;
    if (outrider_session_open(model, NULL, &session, &err)) {
        code = fail(&err);
    } else {
        code = ask(session, argc > 2 ? argv[2] : "What is the capital of France?");
        outrider_session_close(session);
    }
    outrider_model_close(model);
    return code;
}
