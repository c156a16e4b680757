/* Text that a command works on: given, in a file, or on standard input; and the sets of prompts that demo and verify run. */
#ifndef CLI_PROMPT_H
#define CLI_PROMPT_H

#include "base/bytes.h"
#include "cli/options.h"

typedef struct prompt_settings {
    const char *text, *file;
} prompt_settings;

/* Reads what -p, -f or standard input give, bytes as they are. Returns the exit code, having reported the mistake; nothing is
 * left in *out then. */
int prompt_read(const prompt_settings *settings, bytes *out);

/* Drops one line end from the end, as a file or `echo` leaves there. */
void prompt_trim(bytes *text);

/* -- sets -- */

typedef struct prompt_class {
    char *name;
    char **prompts;
    size_t n;
} prompt_class;

typedef struct prompt_set {
    prompt_class *classes;
    size_t n;
    size_t total; /* prompts in all */
} prompt_set;

/* Reads a set: a JSON object of class: [prompts], a JSON list, or plain text with one prompt a line. Exit code as above. */
int prompt_set_read(const char *path, prompt_set *set);

/* prompts.json beside a model (a container or a folder); the built-in set when there is none. */
int prompt_set_beside(const char *model_path, prompt_set *set);

void prompt_set_free(prompt_set *set);

/* Prompt i of the order 0..total-1 that takes one of each class in turn. */
void prompt_set_item(const prompt_set *set, size_t i, size_t *class_index, const char **text);

#endif
