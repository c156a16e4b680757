/* outrider verify: is the drafted stream the plain one? Token ids and logits, class by class. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/load.h"
#include "cli/prompt.h"
#include "cli/report.h"
#include "cli/twin.h"

typedef struct verify_settings {
    model_settings model;
    const char *prompts;
    bool raw, json;
    int64_t tokens, draft_max, seed;
    int draft_length;
} verify_settings;

static const option options[] = {
    {"tokens", 'n', "N", "tokens to compare in all (default 2,000)", OPTION_NUMBER, offsetof(verify_settings, tokens), 1,
     INT32_MAX},
    {"prompts", 0, "FILE",
     "prompts: a JSON object of class: [texts], a JSON list, or plain text with one a line (default: "
     "prompts.json beside the model, or a built-in set of five classes)",
     OPTION_TEXT, offsetof(verify_settings, prompts), 0, 0},
    {"draft-length", 0, "N", "tokens to draft a step: auto (default), random, or a number 0 to 16", OPTION_DRAFT_LENGTH,
     offsetof(verify_settings, draft_length), 0, 0},
    {"draft-max", 0, "N", "most tokens to draft a step when the length is auto or random (default 16)", OPTION_NUMBER,
     offsetof(verify_settings, draft_max), 0, OUTRIDER_MAX_DRAFT},
    {"seed", 0, "N", "seed of random draft lengths (default 0)", OPTION_NUMBER, offsetof(verify_settings, seed), 0, INT64_MAX},
    {"raw", 0, NULL, "prompts are text to go on with, not a user's messages", OPTION_FLAG, offsetof(verify_settings, raw), 0,
     0},
    {"json", 0, NULL, "print one JSON object", OPTION_FLAG, offsetof(verify_settings, json), 0, 0},
    {NULL, 0, NULL, NULL, OPTION_FLAG, 0, 0, 0},
};

/* Answers shorter than this hardly draft, so few tokens are asked of few prompts. */
enum { SHORTEST = 16 };

/* What came of one class of prompts. */
typedef struct class_result {
    uint64_t tokens, divergences;
    report plain, drafted;
} class_result;

typedef struct verify_state {
    const verify_settings *settings;
    const prompt_set *set;
    outrider_model *model;
    twin twin;
    class_result *classes; /* [set->n] */
    uint64_t tokens;       /* compared */
    uint64_t divergences;  /* answers that differ */
    uint64_t bar_tokens;   /* of both sides */
    const char *bar_class;
    bool interrupted;
    char ids_digest[65], logits_digest[65]; /* of the plain side */

    compare_difference first; /* when divergences > 0 */
    const char *first_class, *first_prompt;
} verify_state;

static bool advance_bar(void *user, const char *text, size_t size, const uint32_t *ids, size_t n_ids)
{
    verify_state *v = user;
    (void)text;
    (void)size;
    (void)ids;
    v->bar_tokens += n_ids;
    console_progress(v->bar_class, v->bar_tokens / 2, (uint64_t)v->settings->tokens, "tokens, plain and drafted");
    return true;
}

/* Remembers a difference. Both sessions begin anew, so that the digests of later answers can be equal again. */
static outrider_status diverge(verify_state *v, size_t class_index, const char *prompt, const compare_difference *d,
                               outrider_error *err)
{
    if (!v->divergences++) {
        v->first = *d;
        v->first_class = v->set->classes[class_index].name;
        v->first_prompt = prompt;
    }
    v->classes[class_index].divergences++;
    twin_close(&v->twin);
    return twin_open(&v->twin, v->model, load_draft_kind(&v->settings->model), err);
}

/* One prompt, answered by both sides with `most` tokens, or fewer where the context ends. */
static outrider_status compare_answers(verify_state *v, size_t class_index, const char *prompt, uint64_t most, uint64_t number,
                                       outrider_error *err)
{
    class_result *c = &v->classes[class_index];
    const outrider_generate_options go = {.max_tokens = (uint32_t)most,
                                          .ignore_end = true,
                                          .draft_length = v->settings->draft_length,
                                          .draft_max = (uint32_t)v->settings->draft_max,
                                          .draft_seed = (uint64_t)v->settings->seed + number};
    twin_question question = {prompt, go};
    twin_answer answers[2];
    compare_difference d;
    v->bar_class = v->set->classes[class_index].name;
    for (int side = TWIN_PLAIN; side <= TWIN_DRAFTED; side++) {
        outrider_status status = twin_ask(&v->twin, side, &question, advance_bar, v, &answers[side], err);
        if (status) return status;
        if (answers[side].result.finish == OUTRIDER_FINISH_CANCELLED) {
            v->interrupted = true;
            return OUTRIDER_OK;
        }
    }
    bool same = twin_same(&answers[TWIN_PLAIN], &answers[TWIN_DRAFTED], &d);
    report_add(&c->plain, &answers[TWIN_PLAIN].result);
    report_add(&c->drafted, &answers[TWIN_DRAFTED].result);
    c->tokens += answers[TWIN_PLAIN].n;
    v->tokens += answers[TWIN_PLAIN].n;
    v->bar_tokens = 2 * v->tokens;
    memcpy(v->ids_digest, answers[TWIN_PLAIN].ids_digest, sizeof v->ids_digest);
    memcpy(v->logits_digest, answers[TWIN_PLAIN].logits_digest, sizeof v->logits_digest);
    return same ? OUTRIDER_OK : diverge(v, class_index, prompt, &d, err);
}

/* Spreads the tokens over the prompts, one of each class in turn, and begins again when contexts end too early. */
static int compare_all(verify_state *v)
{
    const uint64_t wanted = (uint64_t)v->settings->tokens;
    uint64_t each = (wanted + v->set->total - 1) / v->set->total;
    if (each < SHORTEST) each = SHORTEST;
    outrider_error err;
    outrider_status status = twin_open(&v->twin, v->model, load_draft_kind(&v->settings->model), &err);
    for (uint64_t i = 0; !status && !v->interrupted && v->tokens < wanted; i++) {
        size_t class_index;
        const char *prompt;
        uint64_t left = wanted - v->tokens;
        prompt_set_item(v->set, i % v->set->total, &class_index, &prompt);
        status = compare_answers(v, class_index, prompt, left < each ? left : each, i, &err);
    }
    console_progress_end();
    twin_close(&v->twin);
    return status ? console_fail_with(&err) : OUTRIDER_OK;
}

static report sum_of(const verify_state *v, bool drafted)
{
    report all = {.answers = 0};
    for (size_t i = 0; i < v->set->n; i++) {
        const report *one = drafted ? &v->classes[i].drafted : &v->classes[i].plain;
        uint64_t answers = all.answers + one->answers;
        report_add(&all, &one->sum);
        all.answers = answers;
    }
    return all;
}

static void print_row(const char *name, uint64_t tokens, uint64_t divergences, const report *plain, const report *drafted)
{
    char accepted[16] = "-";
    if (drafted->sum.proposed)
        snprintf(accepted, sizeof accepted, "%.1f %%", 100.0 * (double)drafted->sum.accepted / (double)drafted->sum.proposed);
    printf("%-14.14s %9s %11s %11.1f %11.1f %9s %8.2f\n", name, console_count(tokens), console_count(divergences),
           report_decode_rate(plain), report_decode_rate(drafted), accepted, report_tokens_a_verify(drafted));
}

static void print_length(const verify_settings *s, char *text, size_t size)
{
    if (s->draft_length == OUTRIDER_DRAFT_DYNAMIC)
        snprintf(text, size, "auto");
    else if (s->draft_length == OUTRIDER_DRAFT_RANDOM)
        snprintf(text, size, "random");
    else
        snprintf(text, size, "%d", s->draft_length);
}

static void print_text(const verify_state *v)
{
    char length[16];
    report plain = sum_of(v, false), drafted = sum_of(v, true);
    print_length(v->settings, length, sizeof length);
    printf("Plain against drafted, draft length %s: %s tokens of %s answers\n\n", length, console_count(v->tokens),
           console_count(plain.answers));
    printf("%-14s %9s %11s %11s %11s %9s %8s\n", "", "", "answers", "plain", "drafted", "", "tokens");
    printf("%-14s %9s %11s %11s %11s %9s %8s\n", "class", "tokens", "that differ", "tokens/s", "tokens/s", "accepted",
           "a verify");
    for (size_t i = 0; i < v->set->n; i++)
        print_row(v->set->classes[i].name, v->classes[i].tokens, v->classes[i].divergences, &v->classes[i].plain,
                  &v->classes[i].drafted);
    print_row("all", v->tokens, v->divergences, &plain, &drafted);
    if (v->divergences) {
        char what[160];
        compare_describe(&v->first, what, sizeof what);
        printf("\nFirst difference: class %s, prompt '%s': %s\n", v->first_class, v->first_prompt, what);
        printf("Drafted and plain streams differ: %s tokens, %s divergences\n", console_count(v->tokens),
               console_count(v->divergences));
    } else if (v->tokens) {
        printf("\nids digest     %s\nlogits digest  %s\n\n", v->ids_digest, v->logits_digest);
        if (v->settings->draft_length == OUTRIDER_DRAFT_DYNAMIC && drafted.sum.proposed < v->tokens / 10)
            printf("(Only %s tokens were drafted: it was found not to pay off on this machine.\n"
                   "--draft-length random drafts all the way.)\n",
                   console_count(drafted.sum.proposed));
        printf("Drafted and plain streams are the same: %s tokens, 0 divergences\n", console_count(v->tokens));
    }
}

static json_t *json_difference(const verify_state *v)
{
    static const char *const kinds[] = {"none", "id", "length", "ids_digest", "logits"};
    if (!v->divergences) return json_null();
    bool located = v->first.kind == COMPARE_ID || v->first.kind == COMPARE_LENGTH;
    return json_pack("{s:o, s:o, s:s, s:o, s:o, s:o}", "class", report_text(v->first_class, strlen(v->first_class)), "prompt",
                     report_text(v->first_prompt, strlen(v->first_prompt)), "kind", kinds[v->first.kind], "index",
                     located ? json_integer((json_int_t)v->first.index) : json_null(), "plain_id",
                     v->first.plain >= 0 ? json_integer(v->first.plain) : json_null(), "drafted_id",
                     v->first.drafted >= 0 ? json_integer(v->first.drafted) : json_null());
}

static json_t *json_class(const char *name, const class_result *c)
{
    return json_pack(
        "{s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "class", report_text(name, strlen(name)), "answers",
        (json_int_t)c->plain.answers, "tokens", (json_int_t)c->tokens, "divergences", (json_int_t)c->divergences, "acceptance",
        report_acceptance(&c->drafted), "tokens_per_verify", report_number(report_tokens_a_verify(&c->drafted)), "plain_tok_s",
        report_number(report_decode_rate(&c->plain)), "drafted_tok_s", report_number(report_decode_rate(&c->drafted)));
}

static int print_json(const verify_state *v)
{
    char length[16];
    report drafted = sum_of(v, true);
    json_t *classes = json_array();
    bool digests = v->tokens && !v->divergences; /* after a divergence they begin anew and say nothing about the whole */
    print_length(v->settings, length, sizeof length);
    for (size_t i = 0; i < v->set->n; i++)
        if (v->classes[i].tokens) json_array_append_new(classes, json_class(v->set->classes[i].name, &v->classes[i]));
    return report_print(json_pack(
        "{s:I, s:I, s:I, s:o, s:s, s:b, s:o, s:o, s:o, s:o, s:o}", "tokens", (json_int_t)v->tokens, "answers",
        (json_int_t)drafted.answers, "divergences", (json_int_t)v->divergences, "first_divergence", json_difference(v),
        "draft_length", length, "interrupted", (int)v->interrupted, "acceptance", report_acceptance(&drafted), "ids_digest",
        digests ? json_string(v->ids_digest) : json_null(), "logits_digest",
        digests ? json_string(v->logits_digest) : json_null(), "classes", classes, "draft", report_draft(&drafted)));
}

/* Prints what was found, and gives the exit code for it. */
static int conclude(const verify_state *v)
{
    int code = OUTRIDER_OK;
    if (v->settings->json)
        code = print_json(v);
    else
        print_text(v);
    if (code) return code;
    if (v->divergences) {
        char what[160];
        compare_describe(&v->first, what, sizeof what);
        return console_fail(OUTRIDER_DIVERGED, "the drafted stream differs from the plain one: class %s, prompt '%s': %s",
                            v->first_class, v->first_prompt, what);
    }
    if (v->interrupted)
        return console_fail(OUTRIDER_CANCELLED, "interrupted after %s of %" PRId64 " tokens", console_count(v->tokens),
                            v->settings->tokens);
    return OUTRIDER_OK;
}

static int run(const command *self, int argc, char **argv)
{
    verify_settings s = {.tokens = 2000, .draft_max = OUTRIDER_MAX_DRAFT, .draft_length = OUTRIDER_DRAFT_DYNAMIC};
    operands found;
    prompt_set set = {NULL, 0, 0};
    verify_state v = {.settings = &s, .set = &set, .twin = {.raw = false}};
    int code;
    if (!options_parse(self, argc, argv, &s, &found, &code)) return code;
    const char *path = found.items[0];
    code = s.prompts ? prompt_set_read(s.prompts, &set) : prompt_set_beside(path, &set);
    if (!code) code = load_model(path, &s.model, false, &v.model);
    if (!code && !load_can_draft(&s.model, v.model))
        code = console_fail(OUTRIDER_USAGE, "%s brings no draft to verify: name one with --draft", path);
    if (!code && !(v.classes = calloc(set.n, sizeof *v.classes))) code = console_fail(OUTRIDER_NO_MEMORY, "not enough memory");
    v.twin.raw = s.raw;
    if (!code) code = compare_all(&v);
    if (!code) code = conclude(&v);
    free(v.classes);
    outrider_model_close(v.model);
    prompt_set_free(&set);
    return code;
}

static const option *const tables[] = {
    options, load_source_options, load_text_options, load_model_options, load_verbose_options, NULL};

const command command_verify = {
    "verify",
    "MODEL [options]",
    1,
    1,
    "prove that drafted and plain streams are the same",
    "Runs every prompt plain and drafted and compares token ids and logits, bit for bit. The tokens are spread over the "
    "prompts, past "
    "the ends of answers; the number compared is stated. Exit code 3, and the first position that differs, if one does.\n"
    "\n"
    "Example: outrider verify models/demo --tokens 27648",
    tables,
    run,
};
