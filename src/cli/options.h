/* The command line as tables: a command names the tables of its options, and parsing, --help and the messages about mistakes
 * all come from those. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum option_kind {
    OPTION_FLAG,         /* bool */
    OPTION_TEXT,         /* const char *, points into argv */
    OPTION_LIST,         /* option_list; may be given several times */
    OPTION_NUMBER,       /* int64_t within low..high */
    OPTION_DRAFT_LENGTH, /* int: auto, random, or a number 0..OUTRIDER_MAX_DRAFT, as outrider_generate_options takes it */
    OPTION_CONTEXT,      /* uint32_t: auto, or a number below OUTRIDER_CONTEXT_AUTO, as outrider_model_options takes it */
    OPTION_BYTES,        /* uint64_t, above 0: "1500000000", "800MB", "1.5GiB" */
    OPTION_SET           /* uint32_t: a set of numbers within low..high, bit n for n ("1-8", "1,2,17") */
} option_kind;

enum { OPTION_LIST_MAX = 16 };

typedef struct option_list {
    const char *items[OPTION_LIST_MAX];
    size_t n;
} option_list;

/* One option. A table is an array of these that ends with a nameless one. */
typedef struct option {
    const char *name;     /* without the dashes */
    char letter;          /* short form, 0: none */
    const char *argument; /* as --help shows it, NULL for a flag */
    const char *help;     /* NULL: another name of the option before it, which --help does not list */
    option_kind kind;
    size_t offset; /* of the value, in the command's settings */
    int64_t low, high;
} option;

typedef struct command command;
struct command {
    const char *name;
    const char *operands; /* as the usage line shows them */
    int operands_min, operands_max;
    const char *summary;                                    /* a line of the overview */
    const char *about;                                      /* text of --help; a line break starts a new line */
    const option *const *tables;                            /* ends with NULL */
    int (*run)(const command *self, int argc, char **argv); /* arguments after the command's name; returns the exit code */
};

enum { OPERANDS_MAX = 4 };

typedef struct operands {
    const char *items[OPERANDS_MAX];
    int n;
} operands;

/* Fills settings and operands. False: the command has nothing more to do and *status is its exit code (a mistake was named on
 * stderr, or --help was asked for and printed); else *status is 0. Options and operands may be mixed; "--" ends the options. */
bool options_parse(const command *c, int argc, char **argv, void *settings, operands *found, int *status);

/* The whole help of a command, on stdout. */
void options_help(const command *c);

/* The whole of `text` as a number within low..high: digits, with a minus sign if need be, and nothing else. */
bool options_number(const char *text, int64_t low, int64_t high, int64_t *value);

/* Token ids as "1,2,3". *ids is freed with free. False when `text` is something else or memory ran out. */
bool options_ids(const char *text, uint32_t **ids, size_t *n);

/* How many letters must be changed, added or removed to turn one word into the other. */
int options_distance(const char *a, const char *b);

#endif
