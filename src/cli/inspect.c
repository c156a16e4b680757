/* outrider inspect: what is in a container, and what running it takes. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/load.h"
#include "cli/plan.h"
#include "cli/report.h"

typedef struct inspect_settings {
    model_settings model;
    bool plan, json;
} inspect_settings;

static const option options[] = {
    {"plan", 0, NULL, "print only the memory plan of a run; the options below are those of the run", OPTION_FLAG,
     offsetof(inspect_settings, plan), 0, 0},
    {"json", 0, NULL, "print one JSON object", OPTION_FLAG, offsetof(inspect_settings, json), 0, 0},
    {NULL, 0, NULL, NULL, OPTION_FLAG, 0, 0, 0},
};

static int print_plan(const char *path, const inspect_settings *s)
{
    outrider_memory_plan plan;
    int code = load_plan(path, &s->model, &plan);
    if (code) return code;
    if (s->json) return report_print(plan_json(&plan));
    plan_print(stdout, &plan);
    return OUTRIDER_OK;
}

static int print_container(const char *path, bool json)
{
    outrider_error err;
    char *text = NULL;
    outrider_status status = outrider_inspect(path, json, console_progress_bytes, NULL, &text, &err);
    console_progress_end();
    if (text) {
        size_t size = strlen(text);
        fwrite(text, 1, size, stdout);
        if (!size || text[size - 1] != '\n') putchar('\n');
        outrider_free(text);
    }
    return status ? console_fail_with(&err) : OUTRIDER_OK;
}

static int run(const command *self, int argc, char **argv)
{
    inspect_settings s = {.json = false};
    operands found;
    int code;
    if (!options_parse(self, argc, argv, &s, &found, &code)) return code;
    const model_settings *m = &s.model;
    if (s.plan) return print_plan(found.items[0], &s);
    if (m->source || m->ngram || m->no_draft || m->context || m->threads || m->cpu_mask || m->memory)
        return console_fail(OUTRIDER_USAGE, "options of a run have no place here without --plan");
    return print_container(found.items[0], s.json);
}

static const option *const tables[] = {options, load_source_options, load_model_options, NULL};

const command command_inspect = {
    "inspect",
    "MODEL [options]",
    1,
    1,
    "show what is in a container, and check it",
    "Reads a container from end to end, checks it, and prints its shape, the sizes of its parts, how its weights are "
    "distributed, the memory that a run takes, and whether it is the file that MANIFEST.json beside it describes; when it is "
    "not, the exit code is 4. Of a pair, the verifier is read.\n"
    "\n"
    "With --plan it prints what 'outrider run' takes with the same options, part by part, and reads no more than that needs; "
    "when that is more than --memory, the exit code is 5.\n"
    "\n"
    "Example: outrider inspect models/demo --plan --memory 1GiB -c auto",
    tables,
    run,
};
