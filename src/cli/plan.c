#include "cli/plan.h"

#include "cli/console.h"

/* Every part has weights, so a plan without any of the draft's is one without a draft. */
static bool has_draft(const outrider_memory_plan *plan) { return plan->weights[OUTRIDER_DRAFT] > 0; }

static void print_line(FILE *to, const char *name, uint64_t n)
{
    fprintf(to, "  %-36s %16s %13s\n", name, console_count(n), console_binary(n));
}

void plan_print(FILE *to, const outrider_memory_plan *plan)
{
    static const char *const names[2] = {"verifier", "draft"};
    char name[64];
    fprintf(to, "memory plan\n");
    for (int i = 0; i < (has_draft(plan) ? 2 : 1); i++) {
        snprintf(name, sizeof name, "%s: weights", names[i]);
        print_line(to, name, plan->weights[i]);
        snprintf(name, sizeof name, "%s: KV cache of %s tokens", names[i], console_count(plan->context));
        print_line(to, name, plan->kv[i]);
        snprintf(name, sizeof name, "%s: scratch", names[i]);
        print_line(to, name, plan->scratch[i]);
    }
    print_line(to, "tokenizer and chat template", plan->text);
    print_line(to, "process, and what loading takes", plan->process);
    print_line(to, "total", plan->total);
}

/* {"verifier": n, "draft": n or null} */
static json_t *by_part(const outrider_memory_plan *plan, const uint64_t values[2])
{
    return json_pack("{s:I, s:o}", "verifier", (json_int_t)values[0], "draft",
                     has_draft(plan) ? json_integer((json_int_t)values[1]) : json_null());
}

json_t *plan_json(const outrider_memory_plan *plan)
{
    return json_pack("{s:I, s:o, s:o, s:o, s:I, s:I, s:I}", "context", (json_int_t)plan->context, "weights",
                     by_part(plan, plan->weights), "kv", by_part(plan, plan->kv), "scratch", by_part(plan, plan->scratch),
                     "text", (json_int_t)plan->text, "process", (json_int_t)plan->process, "total", (json_int_t)plan->total);
}
