/* outrider demo: the pair at work, class by class, and the proof that drafting changes nothing but the time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/flow.h"
#include "cli/load.h"
#include "cli/prompt.h"
#include "cli/report.h"
#include "cli/twin.h"

typedef struct demo_settings {
    model_settings model;
    const char *prompts;
    bool quick;
    int64_t tokens, rounds;
    int draft_length;
} demo_settings;

static const option options[] = {
    {"quick", 0, NULL, "one prompt a class instead of all", OPTION_FLAG, offsetof(demo_settings, quick), 0, 0},
    {"tokens", 'n', "N", "tokens of an answer at most (default 64)", OPTION_NUMBER, offsetof(demo_settings, tokens), 2,
     INT32_MAX},
    {"rounds", 0, "N", "times each prompt is measured, plain and drafted in turn (default 2)", OPTION_NUMBER,
     offsetof(demo_settings, rounds), 1, 100},
    {"prompts", 0, "FILE", "prompts, as for 'outrider verify' (default: prompts.json beside the model, or a built-in set)",
     OPTION_TEXT, offsetof(demo_settings, prompts), 0, 0},
    {"draft-length", 0, "N", "tokens to draft a step in what is measured: auto (default), random, or a number 0 to 16",
     OPTION_DRAFT_LENGTH, offsetof(demo_settings, draft_length), 0, 0},
    {NULL, 0, NULL, NULL, OPTION_FLAG, 0, 0, 0},
};

/* On a terminal wider than this, lines would be too long to read. */
enum { WIDEST = 80, INDENT = 4 };

/* The answers that are shown are drafted with this length, so that one sees what drafts do, whether or not they pay off here. */
enum { SHOWN_LENGTH = 4 };

static const char GREEN[] = "\033[32m", RED[] = "\033[31m", BOLD[] = "\033[1m", PLAIN[] = "\033[0m";

typedef struct class_result {
    report plain, drafted;
    bool differs;
} class_result;

typedef struct demo_state {
    const demo_settings *settings;
    const prompt_set *set;
    outrider_model *model;
    twin twin;
    class_result *classes;     /* [set->n] */
    uint64_t asked, questions; /* prompts measured, and how many will be */
    uint64_t tokens, divergences;
    bool colour, interrupted;
} demo_state;

static const char *paint(const demo_state *d, const char *colour) { return d->colour ? colour : ""; }

/* -- the answer that is shown -- */

/* Shows text as it becomes final. A callback's ids are those of one step: all but the last are accepted proposals. Their
 * bytes wait in `bytes` until the text, which may come later (half a character is held back), has passed over them. */
typedef struct show {
    flow flow;
    const outrider_model *model;
    bytes bytes, marks; /* of tokens whose text has not come yet: their bytes, and for each 1 if it was drafted */
    bool matched;       /* the text has been the tokens' bytes so far; where it is not, marks would be guesses */
} show;

static void queue_id(show *s, uint32_t id, bool accepted)
{
    char *text;
    size_t size;
    if (outrider_detokenize(s->model, &id, 1, OUTRIDER_SPECIALS, &text, &size, NULL)) {
        s->matched = false;
        return;
    }
    s->matched = bytes_add(&s->bytes, text, size) && s->matched;
    for (size_t i = 0; i < size; i++) s->matched = bytes_add(&s->marks, accepted ? "\1" : "\0", 1) && s->matched;
    outrider_free(text);
}

static bool show_text(void *user, const char *text, size_t size, const uint32_t *ids, size_t n_ids)
{
    show *s = user;
    if (s->flow.colour)
        for (size_t i = 0; i < n_ids && s->matched; i++) queue_id(s, ids[i], i + 1 < n_ids);
    s->matched = s->matched && size <= s->bytes.size && (!size || !memcmp(s->bytes.data, text, size));
    for (size_t i = 0; i < size; i++) flow_add(&s->flow, text + i, 1, s->flow.colour && s->matched && s->marks.data[i]);
    if (s->flow.colour && s->matched && size) {
        s->bytes.size -= size;
        s->marks.size -= size;
        memmove(s->bytes.data, s->bytes.data + size, s->bytes.size);
        memmove(s->marks.data, s->marks.data + size, s->marks.size);
    }
    return console_flush();
}

/* Where and what of a difference, at once, whatever else is printed later. */
static outrider_status report_difference(demo_state *d, size_t class_index, const char *prompt,
                                         const compare_difference *difference, outrider_error *err)
{
    char what[160];
    compare_describe(difference, what, sizeof what);
    console_error("the drafted stream differs from the plain one: class %s, prompt '%s': %s", d->set->classes[class_index].name,
                  prompt, what);
    d->classes[class_index].differs = true;
    d->divergences++;
    twin_close(&d->twin); /* digests begin anew */
    return twin_open(&d->twin, d->model, load_draft_kind(&d->settings->model), err);
}

static twin_question question(const demo_state *d, const char *prompt)
{
    twin_question q = {prompt, OUTRIDER_GENERATE_OPTIONS_INIT};
    q.options.max_tokens = (uint32_t)d->settings->tokens;
    q.options.draft_length = d->settings->draft_length;
    return q;
}

static void print_shown(const outrider_result *r)
{
    report one = {.answers = 0};
    report_add(&one, r);
    printf("  (%s tokens", console_count(r->tokens));
    if (r->proposed)
        printf(", %s of %s drafted ones accepted, %.2f tokens a verify", console_count(r->accepted), console_count(r->proposed),
               report_tokens_a_verify(&one));
    printf(")\n");
}

/* Shows how the pair answers the first prompt of a class. Nothing is measured here, so printing costs neither side any time
 * and what the first passes cost extra is not counted. The plain side answers as well, unseen. */
static outrider_status show_answer(demo_state *d, size_t class_index, outrider_error *err)
{
    const prompt_class *c = &d->set->classes[class_index];
    int width = console_width() < WIDEST ? console_width() : WIDEST;
    show s = {.model = d->model, .matched = true};
    twin_question q = question(d, c->prompts[0]);
    twin_answer plain, drafted;
    compare_difference difference;
    q.options.draft_length = SHOWN_LENGTH;
    printf("\n%s%s%s\n", paint(d, BOLD), c->name, paint(d, PLAIN));
    flow_open(&s.flow, stdout, width, INDENT - 2, NULL);
    flow_add(&s.flow, "> ", 2, false);
    flow_add(&s.flow, c->prompts[0], strlen(c->prompts[0]), false);
    flow_end(&s.flow);
    flow_open(&s.flow, stdout, width, INDENT, d->colour ? GREEN : NULL);
    outrider_status status = twin_ask(&d->twin, TWIN_DRAFTED, &q, show_text, &s, &drafted, err);
    flow_end(&s.flow);
    bytes_free(&s.bytes);
    bytes_free(&s.marks);
    if (!status) print_shown(&drafted.result);
    if (!console_flush()) d->interrupted = true;
    if (!status) status = twin_ask(&d->twin, TWIN_PLAIN, &q, NULL, NULL, &plain, err);
    if (status) return status;
    d->interrupted = d->interrupted || drafted.result.finish == OUTRIDER_FINISH_CANCELLED ||
                     plain.result.finish == OUTRIDER_FINISH_CANCELLED;
    if (d->interrupted || twin_same(&plain, &drafted, &difference)) return OUTRIDER_OK;
    return report_difference(d, class_index, c->prompts[0], &difference, err);
}

/* -- the measurement -- */

/* One prompt, plain and drafted in turn; which comes first changes, so that whatever slows the machine down hits both alike. */
static outrider_status measure(demo_state *d, size_t class_index, const char *prompt, outrider_error *err)
{
    class_result *c = &d->classes[class_index];
    twin_question q = question(d, prompt);
    for (int64_t round = 0; round < d->settings->rounds; round++) {
        twin_answer answers[2];
        compare_difference difference;
        for (int i = 0; i < 2; i++) {
            twin_side side = (i + (int)(d->asked & 1)) % 2 ? TWIN_DRAFTED : TWIN_PLAIN;
            outrider_status status = twin_ask(&d->twin, side, &q, NULL, NULL, &answers[side], err);
            if (status) return status;
            if (answers[side].result.finish == OUTRIDER_FINISH_CANCELLED) {
                d->interrupted = true;
                return OUTRIDER_OK;
            }
        }
        report_add(&c->plain, &answers[TWIN_PLAIN].result);
        report_add(&c->drafted, &answers[TWIN_DRAFTED].result);
        d->tokens += answers[TWIN_PLAIN].n;
        d->asked++;
        console_progress("measuring", d->asked, d->questions, "answers, plain and drafted");
        if (!twin_same(&answers[TWIN_PLAIN], &answers[TWIN_DRAFTED], &difference)) {
            outrider_status status = report_difference(d, class_index, prompt, &difference, err);
            if (status) return status;
        }
    }
    return OUTRIDER_OK;
}

static int run_all(demo_state *d)
{
    outrider_error err;
    size_t prompts = d->settings->quick ? d->set->n : d->set->total;
    d->questions = prompts * (uint64_t)d->settings->rounds;
    outrider_status status = twin_open(&d->twin, d->model, load_draft_kind(&d->settings->model), &err);
    for (size_t i = 0; !status && !d->interrupted && i < d->set->n; i++) status = show_answer(d, i, &err);
    for (size_t i = 0; !status && !d->interrupted && i < prompts; i++) {
        size_t class_index;
        const char *prompt;
        prompt_set_item(d->set, i, &class_index, &prompt);
        status = measure(d, class_index, prompt, &err);
    }
    console_progress_end();
    twin_close(&d->twin);
    return status ? console_fail_with(&err) : OUTRIDER_OK;
}

static void print_part(const outrider_model *model, outrider_part part, const char *name)
{
    outrider_model_info m;
    if (outrider_model_get_info(model, part, &m, NULL)) return;
    printf("  %-9s %s, %u layers, hidden %u, vocabulary %s, %s\n", name, m.family, m.layers, m.hidden, console_count(m.vocab),
           console_bytes(m.file_bytes));
}

static void print_head(const demo_state *d, const char *path)
{
    outrider_runtime_info runtime;
    outrider_model_get_runtime(d->model, &runtime);
    printf("%sOutrider %s%s: the pair in %s\n", paint(d, BOLD), outrider_version(), paint(d, PLAIN), path);
    print_part(d->model, OUTRIDER_VERIFIER, "verifier");
    print_part(d->model, OUTRIDER_DRAFT, "draft");
    if (load_draft_kind(&d->settings->model) != OUTRIDER_DRAFT_KIND_MODEL)
        printf("  %-9s lookup in the text so far\n", "n-grams");
    printf("  %-9s %s, %d threads, loaded in %.2f s\n", "running", runtime.cpu, runtime.threads, runtime.load_seconds);
    if (d->colour)
        printf("  %-9s up to %d tokens drafted a step; accepted ones are %sgreen%s\n", "shown", SHOWN_LENGTH, GREEN, PLAIN);
}

static void print_row(const demo_state *d, const char *name, const report *plain, const report *drafted, bool differs)
{
    char accepted[16] = "-";
    if (drafted->sum.proposed)
        snprintf(accepted, sizeof accepted, "%.1f %%", 100.0 * (double)drafted->sum.accepted / (double)drafted->sum.proposed);
    printf("  %-15.15s %9.1f %9.1f %7.2fx %10s %9.2f   %s%s%s\n", name, report_decode_rate(plain), report_decode_rate(drafted),
           report_ratio(report_decode_rate(drafted), report_decode_rate(plain)), accepted, report_tokens_a_verify(drafted),
           paint(d, differs ? RED : GREEN), differs ? "NO" : "yes", paint(d, PLAIN));
}

static void print_table(const demo_state *d)
{
    report plain = {.answers = 0}, drafted = {.answers = 0};
    bool differs = false, idle = false;
    printf("\n%s  %-15s %9s %9s %8s %10s %9s   %s%s\n", paint(d, BOLD), "", "plain", "drafted", "", "", "tokens", "",
           paint(d, PLAIN));
    printf("%s  %-15s %9s %9s %8s %10s %9s   %s%s\n", paint(d, BOLD), "class", "tokens/s", "tokens/s", "ratio", "accepted",
           "a verify", "same", paint(d, PLAIN));
    for (size_t i = 0; i < d->set->n; i++) {
        class_result *c = &d->classes[i];
        uint64_t answers[2] = {plain.answers + c->plain.answers, drafted.answers + c->drafted.answers};
        print_row(d, d->set->classes[i].name, &c->plain, &c->drafted, c->differs);
        report_add(&plain, &c->plain.sum);
        report_add(&drafted, &c->drafted.sum);
        plain.answers = answers[0];
        drafted.answers = answers[1];
        differs |= c->differs;
        idle |= !c->drafted.sum.proposed;
    }
    print_row(d, "all", &plain, &drafted, differs);
    if (idle && d->settings->draft_length == OUTRIDER_DRAFT_DYNAMIC)
        printf("  accepted '-': drafting was found not to pay off on this machine, and left be\n");
}

/* The table and the verdict; the exit code. */
static int conclude(const demo_state *d)
{
    if (!console_flush()) return OUTRIDER_OK;
    if (d->interrupted) return console_fail(OUTRIDER_CANCELLED, "interrupted");
    print_table(d);
    if (d->divergences) {
        printf("\n%sDrafted and plain streams differ%s: %s tokens, %s divergences\n", paint(d, RED), paint(d, PLAIN),
               console_count(d->tokens), console_count(d->divergences));
        return OUTRIDER_DIVERGED;
    }
    printf("\nDrafted and plain streams are %sthe same%s: %s tokens, 0 divergences\n", paint(d, GREEN), paint(d, PLAIN),
           console_count(d->tokens));
    printf("('same': token ids and logits are equal, bit for bit)\n");
    return OUTRIDER_OK;
}

static int run(const command *self, int argc, char **argv)
{
    demo_settings s = {.tokens = 64, .rounds = 2, .draft_length = OUTRIDER_DRAFT_DYNAMIC};
    operands found;
    prompt_set set = {NULL, 0, 0};
    demo_state d = {.settings = &s, .set = &set, .colour = console_colour(stdout)};
    int code;
    if (!options_parse(self, argc, argv, &s, &found, &code)) return code;
    const char *path = found.n ? found.items[0] : load_demo_path();
    if (!path)
        return console_fail(OUTRIDER_USAGE, "no models/demo here, nor beside the program; name a model: outrider demo MODEL");
    code = s.prompts ? prompt_set_read(s.prompts, &set) : prompt_set_beside(path, &set);
    if (!code) code = load_model(path, &s.model, false, &d.model);
    if (!code && !load_can_draft(&s.model, d.model))
        code = console_fail(OUTRIDER_USAGE, "%s brings no draft: name one with --draft", path);
    if (!code && !(d.classes = calloc(set.n, sizeof *d.classes))) code = console_fail(OUTRIDER_NO_MEMORY, "not enough memory");
    if (!code) {
        print_head(&d, path);
        code = run_all(&d);
    }
    if (!code) code = conclude(&d);
    free(d.classes);
    outrider_model_close(d.model);
    prompt_set_free(&set);
    return code;
}

static const option *const tables[] = {
    options, load_source_options, load_text_options, load_model_options, load_verbose_options, NULL};

const command command_demo = {
    "demo",
    "[MODEL] [options]",
    0,
    1,
    "show a pair at work, and that drafting changes nothing but the time",
    "Answers prompts of several classes, drafted and plain, and compares: tokens a second, how many drafted tokens were "
    "accepted, and "
    "whether both streams are the same bit for bit. Without MODEL the pair that comes with the source is used (models/demo). "
    "On a terminal, accepted tokens are green. Exit code 3 if the streams differ.",
    tables,
    run,
};
