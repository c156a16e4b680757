#include "cli/bench_classes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/bandwidth.h"
#include "cli/chart.h"
#include "cli/console.h"
#include "cli/prompt.h"
#include "cli/report.h"
#include "cli/twin.h"

/* Ways to answer: plain, drafted as the session sees fit, and drafted with each fixed length. */
enum { WAY_PLAIN, WAY_DYNAMIC, WAY_FIXED, WAYS_MAX = WAY_FIXED + OUTRIDER_MAX_DRAFT + 1 };

/* What came of one class. */
typedef struct row {
    const char *name;
    double rates[WAYS_MAX]; /* tokens/s, medians over the rounds */
    report drafted;         /* of all rounds, as the session saw fit */
    int best;               /* fastest fixed way, 0 when none was measured */
} row;

typedef struct state {
    const bench_classes_settings *settings;
    const char *path;
    prompt_set set;
    outrider_model *model;
    twin twin;
    bandwidth *bandwidth;
    double best_bandwidth; /* GB/s */
    int ways, lengths[WAYS_MAX];
    double *rates; /* [class][way][round] */
    row *rows;     /* [class] */
    uint64_t asked, questions;
    FILE *csv, *svg;
    bool interrupted;
} state;

static double *rates_of(state *s, size_t class_index, int way)
{
    return s->rates + (class_index * (size_t)s->ways + (size_t)way) * (size_t)s->settings->rounds;
}

/* -- measuring -- */

static outrider_status ask(state *s, const char *prompt, int way, twin_answer *answer, outrider_error *err)
{
    twin_question q = {prompt, OUTRIDER_GENERATE_OPTIONS_INIT};
    q.options.max_tokens = s->settings->tokens;
    q.options.draft_length = way >= WAY_FIXED ? s->lengths[way] : OUTRIDER_DRAFT_DYNAMIC;
    outrider_status status = twin_ask(&s->twin, way == WAY_PLAIN ? TWIN_PLAIN : TWIN_DRAFTED, &q, NULL, NULL, answer, err);
    s->interrupted |= !status && answer->result.finish == OUTRIDER_FINISH_CANCELLED;
    return status;
}

static outrider_status differs(const state *s, size_t class_index, const char *prompt, outrider_error *err)
{
    return error_set(err, OUTRIDER_DIVERGED, "the drafted stream differs from the plain one: class %s, prompt '%s'",
                     s->set.classes[class_index].name, prompt);
}

/* One prompt in all ways, the other way round in every second round, so that whatever slows the machine down hits all alike. */
static outrider_status measure_prompt(state *s, size_t class_index, const char *prompt, int64_t round, report *sums,
                                      outrider_error *err)
{
    uint32_t *first = NULL;
    size_t n = 0;
    outrider_status status = OUTRIDER_OK;
    for (int i = 0; i < s->ways && !status; i++) {
        const int way = round % 2 ? s->ways - 1 - i : i;
        twin_answer answer;
        status = ask(s, prompt, way, &answer, err);
        if (status || s->interrupted) break;
        report_add(&sums[way], &answer.result);
        if (way == WAY_DYNAMIC) report_add(&s->rows[class_index].drafted, &answer.result);
        console_progress(s->set.classes[class_index].name, ++s->asked, s->questions, "answers");
        if (i == 0) {
            n = answer.n;
            first = malloc((n + 1) * sizeof *first);
            if (!first) status = error_memory(err, "an answer", (n + 1) * sizeof *first);
            if (first && n) memcpy(first, answer.ids, n * sizeof *first);
        } else if (n != answer.n || (n && memcmp(first, answer.ids, n * sizeof *first))) {
            status = differs(s, class_index, prompt, err);
        }
    }
    free(first);
    return status;
}

static outrider_status measure_round(state *s, int64_t round, outrider_error *err)
{
    outrider_status status = OUTRIDER_OK;
    for (size_t c = 0; c < s->set.n && !status && !s->interrupted; c++) {
        report sums[WAYS_MAX] = {{.answers = 0}};
        for (size_t i = 0; i < s->set.classes[c].n && !status && !s->interrupted; i++)
            status = measure_prompt(s, c, s->set.classes[c].prompts[i], round, sums, err);
        for (int way = 0; way < s->ways; way++) rates_of(s, c, way)[round] = report_decode_rate(&sums[way]);
    }
    if (status || s->interrupted) return status;
    double now = bandwidth_measure(s->bandwidth);
    if (now > s->best_bandwidth) s->best_bandwidth = now;
    return OUTRIDER_OK;
}

static void fill_row(state *s, size_t class_index)
{
    row *r = &s->rows[class_index];
    r->name = s->set.classes[class_index].name;
    for (int way = 0; way < s->ways; way++) {
        r->rates[way] = report_median(rates_of(s, class_index, way), (size_t)s->settings->rounds);
        if (way >= WAY_FIXED && (!r->best || r->rates[way] > r->rates[r->best])) r->best = way;
    }
}

/* Two answers warm both sides up and are not counted. */
static outrider_status measure_all(state *s, outrider_error *err)
{
    outrider_runtime_info runtime;
    twin_answer unused;
    outrider_model_get_runtime(s->model, &runtime);
    s->questions = s->set.total * (uint64_t)s->ways * (uint64_t)s->settings->rounds;
    outrider_status status = bandwidth_open(&s->bandwidth, runtime.threads, err);
    for (int way = WAY_PLAIN; way <= WAY_DYNAMIC && !status && !s->interrupted; way++)
        status = ask(s, s->set.classes[0].prompts[0], way, &unused, err);
    for (int64_t round = 0; round < s->settings->rounds && !status && !s->interrupted; round++)
        status = measure_round(s, round, err);
    console_progress_end();
    for (size_t c = 0; c < s->set.n && !status && !s->interrupted; c++) fill_row(s, c);
    return status;
}

/* -- what is printed -- */

static double ratio(const row *r, int way) { return report_ratio(r->rates[way], r->rates[WAY_PLAIN]); }

static json_t *json_row(const state *s, const row *r)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", report_text(r->name, strlen(r->name)),
                     "plain_tok_s", report_number(r->rates[WAY_PLAIN]), "drafted_tok_s", report_number(r->rates[WAY_DYNAMIC]),
                     "ratio", report_number(ratio(r, WAY_DYNAMIC)), "acceptance", report_acceptance(&r->drafted),
                     "mean_proposals", report_number(report_mean_draft(&r->drafted)), "tokens_per_verify",
                     report_number(report_tokens_a_verify(&r->drafted)), "best_fixed_length",
                     r->best ? json_integer(s->lengths[r->best]) : json_null(), "best_fixed_ratio",
                     r->best ? report_number(ratio(r, r->best)) : json_null());
}

static int print_json(const state *s)
{
    char name[128];
    outrider_runtime_info runtime;
    json_t *classes = json_array();
    outrider_model_get_runtime(s->model, &runtime);
    report_processor(name, sizeof name);
    for (size_t c = 0; c < s->set.n; c++) json_array_append_new(classes, json_row(s, &s->rows[c]));
    return report_print(json_pack("{s:s, s:o, s:s, s:i, s:o, s:I, s:I, s:o, s:o}", "version", outrider_version(), "processor",
                                  report_text(name, strlen(name)), "cpu", runtime.cpu, "threads", runtime.threads, "model",
                                  report_text(s->path, strlen(s->path)), "tokens", (json_int_t)s->settings->tokens, "rounds",
                                  (json_int_t)s->settings->rounds, "read_bandwidth_gbs", report_number(s->best_bandwidth),
                                  "classes", classes));
}

static void print_text(const state *s)
{
    char name[128];
    outrider_runtime_info runtime;
    outrider_model_get_runtime(s->model, &runtime);
    printf("Outrider %s, %s\n", outrider_version(), s->path);
    printf("  %-15s %s, %s, %d threads\n", "machine", report_processor(name, sizeof name), runtime.cpu, runtime.threads);
    printf("  %-15s %.1f GB/s\n\n", "read bandwidth", s->best_bandwidth);
    printf("  %-15s %9s %9s %7s %9s %6s %7s  %s\n", "", "plain", "drafted", "", "", "drafts", "tokens",
           s->ways > WAY_FIXED ? "best" : "");
    printf("  %-15s %9s %9s %7s %9s %6s %7s  %s\n", "class", "tokens/s", "tokens/s", "ratio", "accepted", "a step", "a step",
           s->ways > WAY_FIXED ? "fixed" : "");
    for (size_t c = 0; c < s->set.n; c++) {
        const row *r = &s->rows[c];
        const outrider_result *sum = &r->drafted.sum;
        char accepted[16] = "-", best[32] = "";
        if (sum->proposed)
            snprintf(accepted, sizeof accepted, "%.1f %%", 100.0 * (double)sum->accepted / (double)sum->proposed);
        if (r->best) snprintf(best, sizeof best, "%d: %.2fx", s->lengths[r->best], ratio(r, r->best));
        printf("  %-15.15s %9.1f %9.1f %6.2fx %9s %6.2f %7.2f  %s\n", r->name, r->rates[WAY_PLAIN], r->rates[WAY_DYNAMIC],
               ratio(r, WAY_DYNAMIC), accepted, report_mean_draft(&r->drafted), report_tokens_a_verify(&r->drafted), best);
    }
    printf("\nMedians of %s rounds, up to %s tokens an answer; a step: a pass of the verifier.\n",
           console_count((uint64_t)s->settings->rounds), console_count(s->settings->tokens));
}

/* Quoted, as a class may be named anything. */
static void print_csv(FILE *to, const state *s)
{
    fputs(
        "name,plain_tok_s,drafted_tok_s,ratio,acceptance,mean_proposals,tokens_per_verify,best_fixed_length,best_fixed_ratio\n",
        to);
    for (size_t c = 0; c < s->set.n; c++) {
        const row *r = &s->rows[c];
        fputc('"', to);
        for (const char *p = r->name; *p; p++) fprintf(to, *p == '"' ? "\"%c" : "%c", *p);
        fprintf(to, "\",%.4f,%.4f,%.4f,", r->rates[WAY_PLAIN], r->rates[WAY_DYNAMIC], ratio(r, WAY_DYNAMIC));
        if (r->drafted.sum.proposed)
            fprintf(to, "%.4f", report_ratio((double)r->drafted.sum.accepted, (double)r->drafted.sum.proposed));
        fprintf(to, ",%.4f,%.4f,", report_mean_draft(&r->drafted), report_tokens_a_verify(&r->drafted));
        if (r->best)
            fprintf(to, "%d,%.4f\n", s->lengths[r->best], ratio(r, r->best));
        else
            fputs(",\n", to);
    }
}

static int print_svg(FILE *to, const state *s)
{
    char about[160];
    outrider_runtime_info runtime;
    chart_group *groups = calloc(s->set.n, sizeof *groups);
    if (!groups) return console_fail(OUTRIDER_NO_MEMORY, "not enough memory");
    outrider_model_get_runtime(s->model, &runtime);
    snprintf(about, sizeof about, "Outrider %s; %s, %d threads, %.1f GB/s read; medians of %" PRId64 " rounds",
             outrider_version(), runtime.cpu, runtime.threads, s->best_bandwidth, s->settings->rounds);
    for (size_t c = 0; c < s->set.n; c++) {
        const row *r = &s->rows[c];
        groups[c] = (chart_group){r->name, {r->rates[WAY_PLAIN], r->rates[WAY_DYNAMIC]}, ""};
        snprintf(groups[c].note, sizeof groups[c].note, "%.2fx", ratio(r, WAY_DYNAMIC));
    }
    chart_svg(to, &(chart){.title = "Plain and drafted decoding",
                           .subtitle = about,
                           .x_label = "class of prompts",
                           .y_label = "tokens a second",
                           .series = {"plain", "drafted"},
                           .groups = groups,
                           .n = s->set.n});
    free(groups);
    return OUTRIDER_OK;
}

/* -- the whole -- */

/* A file that cannot be written is known before anything is measured. */
static int open_output(const char *path, FILE **file)
{
    if (!path || (*file = fopen(path, "w"))) return OUTRIDER_OK;
    return console_fail(OUTRIDER_FAILURE, "%s: %s", path, strerror(errno));
}

/* Closes it; `code` is the exit code so far. */
static int close_output(const char *path, FILE *file, int code)
{
    if (!file) return code;
    bool failed = ferror(file);
    if ((fclose(file) || failed) && !code) return console_fail(OUTRIDER_FAILURE, "%s: %s", path, strerror(errno));
    return code;
}

static int prepare(state *s, const model_settings *model)
{
    s->ways = WAY_FIXED;
    for (int n = 0; n <= OUTRIDER_MAX_DRAFT; n++)
        if (s->settings->lengths >> n & 1) s->lengths[s->ways++] = n;
    int code = s->settings->prompts ? prompt_set_read(s->settings->prompts, &s->set) : prompt_set_beside(s->path, &s->set);
    if (!code) code = open_output(s->settings->csv, &s->csv);
    if (!code) code = open_output(s->settings->svg, &s->svg);
    if (!code) code = load_model(s->path, model, false, &s->model);
    if (!code && !load_can_draft(model, s->model))
        code = console_fail(OUTRIDER_USAGE, "%s brings no draft: name one with --draft", s->path);
    if (code) return code;
    s->rates = calloc(s->set.n * (size_t)s->ways * (size_t)s->settings->rounds, sizeof *s->rates);
    s->rows = calloc(s->set.n, sizeof *s->rows);
    return s->rates && s->rows ? OUTRIDER_OK : console_fail(OUTRIDER_NO_MEMORY, "not enough memory");
}

static int print_all(state *s)
{
    int code = OUTRIDER_OK;
    if (s->csv) print_csv(s->csv, s);
    if (s->svg) code = print_svg(s->svg, s);
    if (!code && s->settings->json)
        code = print_json(s);
    else if (!code)
        print_text(s);
    return code;
}

int bench_classes(const char *path, const model_settings *model, const bench_classes_settings *settings)
{
    state s = {.settings = settings, .path = path};
    outrider_error err;
    int code = prepare(&s, model);
    if (!code) {
        s.twin.ids_only = true;
        if (twin_open(&s.twin, s.model, load_draft_kind(model), &err) || measure_all(&s, &err)) code = console_fail_with(&err);
        twin_close(&s.twin);
    }
    if (!code && s.interrupted) code = console_fail(OUTRIDER_CANCELLED, "interrupted");
    if (!code) code = print_all(&s);
    code = close_output(settings->csv, s.csv, code);
    code = close_output(settings->svg, s.svg, code);
    outrider_model_close(s.model);
    bandwidth_close(s.bandwidth);
    prompt_set_free(&s.set);
    free(s.rates);
    free(s.rows);
    return code;
}
