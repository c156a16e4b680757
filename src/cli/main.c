/* outrider: the command. Finds the command that is named and runs it. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/interrupt.h"
#include "outrider.h"

static const command *const commands[] = {
    &command_run, &command_demo, &command_verify, &command_probe, &command_bench, &command_inspect, &command_tokenize,
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void print_usage(FILE *to)
{
    fprintf(to, "Usage: outrider COMMAND [arguments]\n\n"
                "Runs a pair of language models: the small one drafts, the big one verifies, and\n"
                "the output is the big one's own greedy stream, bit for bit.\n\nCommands:\n");
    for (int i = 0; i < COMMANDS; i++) fprintf(to, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fprintf(to, "  %-10s %s\n", "help", "show this text, or that of a command");
    fprintf(to, "\nOptions:\n  -h, --help     show this text; after a command: its own\n"
                "  -V, --version  show the version\n"
                "\nExit codes: 0 done, 1 failure, 2 wrong usage, 3 the streams differ, 4 a file is\n"
                "not what it should be, 5 not enough memory, 130 interrupted.\n");
}

static const command *find(const char *name)
{
    for (int i = 0; i < COMMANDS; i++)
        if (!strcmp(commands[i]->name, name)) return commands[i];
    return NULL;
}

static int unknown(const char *name)
{
    const command *best = commands[0];
    for (int i = 1; i < COMMANDS; i++)
        if (options_distance(name, commands[i]->name) < options_distance(name, best->name)) best = commands[i];
    return console_fail(OUTRIDER_USAGE, "unknown command '%s'; the nearest is '%s', and 'outrider help' lists all", name,
                        best->name);
}

static int help(int argc, char **argv)
{
    if (argc > 1) return console_fail(OUTRIDER_USAGE, "'outrider help' takes one command at most");
    if (argc == 0) {
        print_usage(stdout);
        return OUTRIDER_OK;
    }
    const command *c = find(argv[0]);
    if (!c) return unknown(argv[0]);
    options_help(c);
    return OUTRIDER_OK;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return OUTRIDER_USAGE;
    }
    const char *name = argv[1];
    if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
        printf("outrider %s\n", outrider_version());
        return OUTRIDER_OK;
    }
    if (!strcmp(name, "--help") || !strcmp(name, "-h")) return help(0, NULL);
    if (!strcmp(name, "help")) return help(argc - 2, argv + 2);
    if (name[0] == '-')
        return console_fail(OUTRIDER_USAGE,
                            "unknown option '%s'; options of a command come after its name, and 'outrider help' "
                            "lists the commands",
                            name);
    const command *c = find(name);
    return c ? c->run(c, argc - 2, argv + 2) : unknown(name);
}

int main(int argc, char **argv)
{
    console_open();
    interrupt_open();
    int code = dispatch(argc, argv);
    console_progress_end();
    int output = console_output_status();
    return code ? code : output;
}
