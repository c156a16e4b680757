#include "cli/prompt.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/console.h"

static int read_stream(FILE *f, const char *name, bytes *out)
{
    char part[1 << 14];
    size_t n;
    while ((n = fread(part, 1, sizeof part, f)) > 0)
        if (!bytes_add(out, part, n)) {
            bytes_free(out);
            return console_fail(OUTRIDER_NO_MEMORY, "%s: not enough memory", name);
        }
    if (!ferror(f)) return OUTRIDER_OK;
    bytes_free(out);
    return console_fail(OUTRIDER_FAILURE, "%s: %s", name, strerror(errno));
}

static int read_file(const char *path, bytes *out)
{
    FILE *f = fopen(path, "rb");
    if (!f) return console_fail(OUTRIDER_FAILURE, "%s: %s", path, strerror(errno));
    int status = read_stream(f, path, out);
    fclose(f);
    return status;
}

int prompt_read(const prompt_settings *settings, bytes *out)
{
    *out = (bytes){0};
    if (settings->text && settings->file) return console_fail(OUTRIDER_USAGE, "--prompt and --file exclude each other");
    if (settings->text) {
        if (bytes_add_text(out, settings->text)) return OUTRIDER_OK;
        return console_fail(OUTRIDER_NO_MEMORY, "not enough memory for the prompt");
    }
    if (settings->file && strcmp(settings->file, "-")) return read_file(settings->file, out);
    if (!settings->file && isatty(STDIN_FILENO))
        return console_fail(OUTRIDER_USAGE, "no text: give it with -p TEXT or -f FILE, or pipe it to standard input");
    return read_stream(stdin, "standard input", out);
}

void prompt_trim(bytes *text)
{
    if (text->size && text->data[text->size - 1] == '\n') text->size--;
    if (text->size && text->data[text->size - 1] == '\r') text->size--;
    if (text->data) text->data[text->size] = 0;
}

/* -- sets -- */

/* What demo and verify ask a model that brings no prompts. */
static const struct {
    const char *name, *prompts[3];
} built_in[] = {
    {"counting",
     {"Count from 1 to 40, separated by commas.", "List the letters of the alphabet, one per line.",
      "Write the 7 times table, one per line."}},
    {"factual",
     {"What is the capital of France?", "List the planets of the solar system with one fact about each.",
      "What is the boiling point of water at sea level, and why does it fall with height?"}},
    {"prose",
     {"Write a short story about a lighthouse keeper who finds a message in a bottle.",
      "Describe an old railway station on a rainy evening.",
      "Continue this story: The letter had no stamp and no name on it."}},
    {"conversational",
     {"Explain simply why the sky is blue.", "I cannot fall asleep before two in the morning. What can I do?",
      "Explain to a child why we have seasons."}},
    {"code",
     {"Write a Python function that returns the longest word of a list.", "Write a binary search in C.",
      "Write a SQL query that finds the three customers with the largest orders."}},
};

static char *copy_text(const char *text, size_t size)
{
    char *copy = malloc(size + 1);
    if (!copy) return NULL;
    memcpy(copy, text, size);
    copy[size] = 0;
    return copy;
}

/* Adds a class without prompts; NULL when memory ran out. */
static prompt_class *add_class(prompt_set *set, const char *name)
{
    prompt_class *classes = realloc(set->classes, (set->n + 1) * sizeof *classes);
    if (!classes) return NULL;
    set->classes = classes;
    prompt_class *c = &classes[set->n];
    *c = (prompt_class){copy_text(name, strlen(name)), NULL, 0};
    if (!c->name) return NULL;
    set->n++;
    return c;
}

static bool add_prompt(prompt_set *set, prompt_class *c, const char *text, size_t size)
{
    char **prompts = realloc(c->prompts, (c->n + 1) * sizeof *prompts);
    if (!prompts) return false;
    c->prompts = prompts;
    prompts[c->n] = copy_text(text, size);
    if (!prompts[c->n]) return false;
    c->n++;
    set->total++;
    return true;
}

static bool set_built_in(prompt_set *set)
{
    for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++) {
        prompt_class *c = add_class(set, built_in[i].name);
        for (size_t j = 0; j < 3; j++)
            if (!c || !add_prompt(set, c, built_in[i].prompts[j], strlen(built_in[i].prompts[j]))) return false;
    }
    return true;
}

/* Adds the strings of a JSON list as one class. */
static int add_list(prompt_set *set, const char *path, const char *name, const json_t *list)
{
    if (!json_is_array(list) || !json_array_size(list))
        return console_fail(OUTRIDER_BAD_FILE, "%s: %s: expected a list of prompts", path, name);
    prompt_class *c = add_class(set, name);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        if (!json_string_length(item)) return console_fail(OUTRIDER_BAD_FILE, "%s: %s: item %zu: expected text", path, name, i);
        if (!c || !add_prompt(set, c, json_string_value(item), json_string_length(item)))
            return console_fail(OUTRIDER_NO_MEMORY, "%s: not enough memory", path);
    }
    return OUTRIDER_OK;
}

static int set_json(prompt_set *set, const char *path, json_t *root)
{
    if (json_is_array(root)) return add_list(set, path, "prompts", root);
    const char *name;
    json_t *list;
    int status = OUTRIDER_OK;
    json_object_foreach(root, name, list) if (!status) status = add_list(set, path, name, list);
    return status;
}

/* One prompt a line; empty lines are skipped. */
static int set_lines(prompt_set *set, const char *path, const bytes *text)
{
    if (memchr(text->data, 0, text->size))
        return console_fail(OUTRIDER_BAD_FILE, "%s: holds a zero byte, so it is no text", path);
    prompt_class *c = NULL;
    for (const char *line = text->data; *line;) {
        size_t size = strcspn(line, "\n"), kept = size && line[size - 1] == '\r' ? size - 1 : size;
        if (kept) {
            if (!c) c = add_class(set, "prompts");
            if (!c || !add_prompt(set, c, line, kept)) return console_fail(OUTRIDER_NO_MEMORY, "%s: not enough memory", path);
        }
        line += size + (line[size] == '\n');
    }
    return OUTRIDER_OK;
}

int prompt_set_read(const char *path, prompt_set *set)
{
    bytes text;
    prompt_settings from = {NULL, path};
    *set = (prompt_set){NULL, 0, 0};
    int status = prompt_read(&from, &text);
    if (status) return status;
    const char *dot = strrchr(path, '.');
    size_t blank = text.size ? strspn(text.data, " \t\r\n") : 0;
    bool named_json = dot && !strcmp(dot, ".json"),
         looks_json = text.size && strchr("[{", text.data[blank]) && text.data[blank];
    json_error_t why;
    json_t *root =
        named_json || looks_json ? json_loadb(text.data ? text.data : "", text.size, JSON_REJECT_DUPLICATES, &why) : NULL;
    if (root && (json_is_object(root) || json_is_array(root)))
        status = set_json(set, path, root);
    else if (named_json)
        status = console_fail(OUTRIDER_BAD_FILE, "%s: line %d: %s", path, root ? 1 : why.line,
                              root ? "expected an object or a list" : why.text);
    else if (text.size)
        status = set_lines(set, path, &text);
    if (!status && !set->total) status = console_fail(OUTRIDER_BAD_FILE, "%s: holds no prompt", path);
    json_decref(root);
    bytes_free(&text);
    if (status) prompt_set_free(set);
    return status;
}

int prompt_set_beside(const char *model_path, prompt_set *set)
{
    struct stat about;
    bytes path = {0};
    const char *slash = strrchr(model_path, '/');
    bool folder = !stat(model_path, &about) && S_ISDIR(about.st_mode);
    size_t size = folder ? strlen(model_path) : slash ? (size_t)(slash - model_path) : 0;
    *set = (prompt_set){NULL, 0, 0};
    int status = OUTRIDER_OK;
    if (!bytes_add(&path, model_path, size) || !bytes_add_text(&path, folder || slash ? "/prompts.json" : "prompts.json"))
        status = console_fail(OUTRIDER_NO_MEMORY, "not enough memory");
    else if (!access(path.data, F_OK))
        status = prompt_set_read(path.data, set);
    else if (!set_built_in(set))
        status = console_fail(OUTRIDER_NO_MEMORY, "not enough memory");
    bytes_free(&path);
    if (status) prompt_set_free(set);
    return status;
}

void prompt_set_free(prompt_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        for (size_t j = 0; j < set->classes[i].n; j++) free(set->classes[i].prompts[j]);
        free(set->classes[i].prompts);
        free(set->classes[i].name);
    }
    free(set->classes);
    *set = (prompt_set){NULL, 0, 0};
}

void prompt_set_item(const prompt_set *set, size_t i, size_t *class_index, const char **text)
{
    for (size_t round = 0;; round++)
        for (size_t c = 0; c < set->n; c++)
            if (round < set->classes[c].n && !i--) {
                *class_index = c;
                *text = set->classes[c].prompts[round];
                return;
            }
}
