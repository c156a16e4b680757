/* outrider inspect: what is in a container, and what running it takes. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/console.h"
#include "outrider.h"

typedef struct inspect_settings {
    bool json;
} inspect_settings;

static const option options[] = {
    {"json", 0, NULL, "print one JSON object", OPTION_FLAG, offsetof(inspect_settings, json), 0, 0},
    {NULL, 0, NULL, NULL, OPTION_FLAG, 0, 0, 0},
};

static int run(const command *self, int argc, char **argv)
{
    inspect_settings s = {.json = false};
    operands found;
    outrider_error err;
    char *text;
    int code;
    if (!options_parse(self, argc, argv, &s, &found, &code)) return code;
    outrider_status status = outrider_inspect(found.items[0], s.json, console_progress_bytes, NULL, &text, &err);
    console_progress_end();
    if (status) return console_fail_with(&err);
    size_t size = strlen(text);
    fwrite(text, 1, size, stdout);
    if (!size || text[size - 1] != '\n') putchar('\n');
    outrider_free(text);
    return OUTRIDER_OK;
}

static const option *const tables[] = {options, NULL};

const command command_inspect = {
    "inspect",
    "FILE [options]",
    1,
    1,
    "show what is in a container, and check it",
    "Reads a container from end to end, checks it, and prints its shape, the sizes of its parts, how its weights are "
    "distributed, the "
    "memory that a run takes, and whether it is the file that MANIFEST.json beside it describes.",
    tables,
    run,
};
