#include "cli/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "cli/console.h"

double report_ratio(double a, double b) { return b > 0 ? a / b : 0; }

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double report_median(double *values, size_t n)
{
    if (!n) return 0;
    qsort(values, n, sizeof *values, ascending);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

const char *report_processor(char *name, size_t size)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    snprintf(name, size, "unknown");
    while (f && fgets(line, sizeof line, f)) {
        char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !value) continue;
        value[strcspn(value, "\n")] = 0;
        snprintf(name, size, "%s", value + 1 + strspn(value + 1, " \t"));
        break;
    }
    if (f) fclose(f);
    return name;
}

void report_add(report *r, const outrider_result *one)
{
    outrider_result *sum = &r->sum;
    r->answers += one->tokens > 0;
    sum->finish = one->finish;
    sum->stop_index = one->stop_index;
    sum->prompt_tokens += one->prompt_tokens;
    sum->tokens += one->tokens;
    sum->proposed += one->proposed;
    sum->accepted += one->accepted;
    sum->verifies += one->verifies;
    sum->drafted_steps += one->drafted_steps;
    sum->length_switches += one->length_switches;
    for (int i = 0; i < OUTRIDER_MAX_DRAFT; i++) {
        sum->proposed_at[i] += one->proposed_at[i];
        sum->accepted_at[i] += one->accepted_at[i];
    }
    for (int i = 0; i <= OUTRIDER_MAX_ROWS; i++) sum->widths[i] += one->widths[i];
    sum->prefill_seconds += one->prefill_seconds;
    sum->decode_seconds += one->decode_seconds;
    sum->draft_seconds += one->draft_seconds;
    sum->verify_seconds += one->verify_seconds;
}

uint64_t report_decoded(const report *r) { return r->sum.tokens - r->answers; }

double report_decode_rate(const report *r) { return report_ratio((double)report_decoded(r), r->sum.decode_seconds); }

double report_tokens_a_verify(const report *r) { return report_ratio((double)report_decoded(r), (double)r->sum.verifies); }

double report_mean_draft(const report *r) { return report_ratio((double)r->sum.proposed, (double)r->sum.verifies); }

static const char *plural(uint64_t n) { return n == 1 ? "" : "s"; }

void report_closing(FILE *to, const report *r)
{
    const outrider_result *s = &r->sum;
    fprintf(to, "prompt %s token%s, %.1f tokens/s; answer %s token%s, %.1f tokens/s", console_count(s->prompt_tokens),
            plural(s->prompt_tokens), report_ratio((double)s->prompt_tokens, s->prefill_seconds), console_count(s->tokens),
            plural(s->tokens), report_decode_rate(r));
    if (s->proposed)
        fprintf(to, "; accepted %.1f %% of %s drafted, %.2f tokens a verify, mean draft length %.2f",
                100 * report_ratio((double)s->accepted, (double)s->proposed), console_count(s->proposed),
                report_tokens_a_verify(r), report_mean_draft(r));
    else
        fprintf(to, "; nothing drafted");
    if (s->finish == OUTRIDER_FINISH_CONTEXT) fprintf(to, "; the context is full");
    if (s->finish == OUTRIDER_FINISH_CANCELLED) fprintf(to, "; cancelled");
    fprintf(to, "\n");
}

const char *report_finish(outrider_finish finish)
{
    switch (finish) {
    case OUTRIDER_FINISH_END: return "end";
    case OUTRIDER_FINISH_STOP: return "stop";
    case OUTRIDER_FINISH_LENGTH: return "length";
    case OUTRIDER_FINISH_CONTEXT: return "context";
    case OUTRIDER_FINISH_CANCELLED: return "cancelled";
    }
    return "unknown";
}

json_t *report_number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

/* Bytes of the UTF-8 character at the start of `s`, 0 when there is none. */
static size_t character_size(const unsigned char *s, size_t size)
{
    static const struct {
        unsigned char mask, lead, low, high; /* low, high: limits of the second byte */
        size_t size;
    } kinds[] = {{0x80, 0x00, 0, 0, 1},       {0xff, 0xe0, 0xa0, 0xbf, 3}, {0xff, 0xed, 0x80, 0x9f, 3},
                 {0xff, 0xf0, 0x90, 0xbf, 4}, {0xff, 0xf4, 0x80, 0x8f, 4}, {0xe0, 0xc0, 0x80, 0xbf, 2},
                 {0xf0, 0xe0, 0x80, 0xbf, 3}, {0xf8, 0xf0, 0x80, 0xbf, 4}};
    if (s[0] == 0xc0 || s[0] == 0xc1 || s[0] > 0xf4) return 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if ((s[0] & kinds[i].mask) != kinds[i].lead) continue;
        if (kinds[i].size > size) return 0;
        if (kinds[i].size > 1 && (s[1] < kinds[i].low || s[1] > kinds[i].high)) return 0;
        for (size_t j = 2; j < kinds[i].size; j++)
            if ((s[j] & 0xc0) != 0x80) return 0;
        return kinds[i].size;
    }
    return 0;
}

json_t *report_text(const char *text, size_t size)
{
    bytes clean = {0};
    bool ok = bytes_reserve(&clean, size);
    for (size_t i = 0; ok && i < size;) {
        size_t n = character_size((const unsigned char *)text + i, size - i);
        ok = n ? bytes_add(&clean, text + i, n) : bytes_add_text(&clean, "\xef\xbf\xbd");
        i += n ? n : 1;
    }
    json_t *value = ok ? json_stringn(clean.data, clean.size) : NULL;
    bytes_free(&clean);
    return value;
}

json_t *report_ids(const uint32_t *ids, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(list, json_integer(ids[i]));
    return list;
}

json_t *report_acceptance(const report *r)
{
    return r->sum.proposed ? report_number((double)r->sum.accepted / (double)r->sum.proposed) : json_null();
}

json_t *report_draft(const report *r)
{
    const outrider_result *s = &r->sum;
    json_t *positions = json_array(), *widths = json_array();
    for (int i = 0; i < OUTRIDER_MAX_DRAFT && s->proposed_at[i]; i++)
        json_array_append_new(positions, json_pack("{s:i, s:I, s:I}", "position", i + 1, "proposed",
                                                   (json_int_t)s->proposed_at[i], "accepted", (json_int_t)s->accepted_at[i]));
    for (int i = 1; i <= OUTRIDER_MAX_ROWS; i++)
        if (s->widths[i])
            json_array_append_new(widths, json_pack("{s:i, s:I}", "width", i, "verifies", (json_int_t)s->widths[i]));
    return json_pack("{s:I, s:I, s:o, s:I, s:o, s:o, s:I, s:I, s:o, s:o}", "proposed", (json_int_t)s->proposed, "accepted",
                     (json_int_t)s->accepted, "acceptance", report_acceptance(r), "verifies", (json_int_t)s->verifies,
                     "tokens_per_verify", report_number(report_tokens_a_verify(r)), "mean_length",
                     report_number(report_mean_draft(r)), "steps", (json_int_t)s->drafted_steps, "switches",
                     (json_int_t)s->length_switches, "by_position", positions, "widths", widths);
}

json_t *report_timings(const report *r)
{
    const outrider_result *s = &r->sum;
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "prefill_s", report_number(s->prefill_seconds), "prefill_tok_s",
                     report_number(report_ratio((double)s->prompt_tokens, s->prefill_seconds)), "decode_s",
                     report_number(s->decode_seconds), "tok_s", report_number(report_decode_rate(r)), "draft_s",
                     report_number(s->draft_seconds), "verify_s", report_number(s->verify_seconds));
}

int report_print(json_t *root)
{
    char *text = root ? json_dumps(root, JSON_REAL_PRECISION(8)) : NULL;
    json_decref(root);
    if (!text) return console_fail(OUTRIDER_NO_MEMORY, "not enough memory for the JSON text");
    puts(text);
    free(text);
    return OUTRIDER_OK;
}
