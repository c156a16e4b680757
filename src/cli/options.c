#include "cli/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/console.h"
#include "outrider.h"

enum { HELP_COLUMN = 29, HELP_WIDTH = 80 };

/* What every command understands beside its own tables. */
static const option help_option = {"help", 'h', NULL, "show this text", OPTION_FLAG, 0, 0, 0};

bool options_number(const char *text, int64_t low, int64_t high, int64_t *value)
{
    const char *digits = text + (*text == '-');
    if (!*digits || strspn(digits, "0123456789") != strlen(digits)) return false;
    errno = 0;
    long long n = strtoll(text, NULL, 10);
    if (errno || n < low || n > high) return false;
    *value = n;
    return true;
}

bool options_ids(const char *text, uint32_t **ids, size_t *n)
{
    size_t most = 1;
    for (const char *c = text; *c; c++) most += *c == ',';
    uint32_t *list = malloc(most * sizeof *list);
    char *copy = strdup(text), *rest = copy;
    size_t count = 0;
    bool ok = list && copy;
    while (ok && rest) {
        int64_t id;
        char *part = strsep(&rest, ",");
        ok = options_number(part, 0, UINT32_MAX, &id);
        if (ok) list[count++] = (uint32_t)id;
    }
    free(copy);
    if (!ok) {
        free(list);
        return false;
    }
    *ids = list;
    *n = count;
    return true;
}

/* "1-8" or "1,2,4-6" as a set of bits. */
static bool parse_set(const char *text, int64_t low, int64_t high, uint32_t *set)
{
    char copy[128], *rest = copy;
    if (strlen(text) >= sizeof copy) return false;
    strcpy(copy, text);
    uint32_t found = 0;
    while (rest) {
        char *part = strsep(&rest, ","), *dash = strchr(part, '-');
        int64_t first, last;
        if (dash) *dash = 0;
        if (!options_number(part, low, high, &first)) return false;
        last = first;
        if (dash && !options_number(dash + 1, first, high, &last)) return false;
        for (int64_t n = first; n <= last; n++) found |= UINT32_C(1) << n;
    }
    *set = found;
    return true;
}

static bool parse_context(const char *text, uint32_t *context)
{
    int64_t n = OUTRIDER_CONTEXT_AUTO;
    if (strcmp(text, "auto") && !options_number(text, 1, OUTRIDER_CONTEXT_AUTO - 1, &n)) return false;
    *context = (uint32_t)n;
    return true;
}

/* Digits, a fraction of up to nine more where a unit follows, and the unit; what is not a whole byte is dropped. */
static bool parse_bytes(const char *text, uint64_t *value)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } units[] = {
        {"", 1},
        {"KB", 1000},
        {"MB", 1000000},
        {"GB", 1000000000},
        {"K", UINT64_C(1) << 10},
        {"M", UINT64_C(1) << 20},
        {"G", UINT64_C(1) << 30},
        {"KiB", UINT64_C(1) << 10},
        {"MiB", UINT64_C(1) << 20},
        {"GiB", UINT64_C(1) << 30},
    };
    enum { UNITS = sizeof units / sizeof *units };
    static const char digits[] = "0123456789";
    size_t whole = strspn(text, digits), part = 0;
    const char *unit = text + whole;
    uint64_t fraction = 0, scale = 1;
    if (!whole) return false;
    if (*unit == '.') {
        part = strspn(++unit, digits);
        if (!part || part > 9) return false;
        for (const char *end = unit + part; unit < end; unit++) {
            fraction = 10 * fraction + (uint64_t)(*unit - '0');
            scale *= 10;
        }
    }
    int i = 0;
    while (i < UNITS && strcmp(units[i].name, unit)) i++;
    if (i == UNITS || (part && units[i].bytes == 1)) return false;
    errno = 0;
    unsigned long long n = strtoull(text, NULL, 10);
    if (errno || n > INT64_MAX / units[i].bytes) return false;
    uint64_t found = n * units[i].bytes + fraction * units[i].bytes / scale;
    if (found) *value = found;
    return found > 0;
}

static bool parse_draft_length(const char *text, int *length)
{
    int64_t n;
    if (!strcmp(text, "auto")) {
        *length = OUTRIDER_DRAFT_DYNAMIC;
    } else if (!strcmp(text, "random")) {
        *length = OUTRIDER_DRAFT_RANDOM;
    } else {
        if (!options_number(text, 0, OUTRIDER_MAX_DRAFT, &n)) return false;
        *length = (int)n;
    }
    return true;
}

int options_distance(const char *a, const char *b)
{
    enum { LONGEST = 64 };
    size_t n = strlen(b);
    int row[LONGEST + 1];
    if (n > LONGEST) return LONGEST;
    for (size_t j = 0; j <= n; j++) row[j] = (int)j;
    for (size_t i = 0; a[i]; i++) {
        int diagonal = row[0];
        row[0] = (int)i + 1;
        for (size_t j = 1; j <= n; j++) {
            int changed = diagonal + (a[i] != b[j - 1]), least = row[j] < row[j - 1] ? row[j] : row[j - 1];
            diagonal = row[j];
            row[j] = changed <= least ? changed : least + 1;
        }
    }
    return row[n];
}

/* The option of the tables whose name is nearest to `name`; one that begins with it is nearer than any other. */
static const option *nearest(const command *c, const char *name)
{
    const option *best = &help_option;
    int least = options_distance(name, best->name);
    for (const option *const *table = c->tables; *table; table++)
        for (const option *o = *table; o->name; o++) {
            int distance = strlen(name) > 1 && !strncmp(o->name, name, strlen(name)) ? 0 : options_distance(name, o->name);
            if (distance < least) {
                least = distance;
                best = o;
            }
        }
    return best;
}

static const option *find_name(const command *c, const char *name, size_t size)
{
    if (size == strlen(help_option.name) && !strncmp(name, help_option.name, size)) return &help_option;
    for (const option *const *table = c->tables; *table; table++)
        for (const option *o = *table; o->name; o++)
            if (strlen(o->name) == size && !strncmp(o->name, name, size)) return o;
    return NULL;
}

static const option *find_letter(const command *c, char letter)
{
    if (letter == help_option.letter) return &help_option;
    for (const option *const *table = c->tables; *table; table++)
        for (const option *o = *table; o->name; o++)
            if (o->letter == letter) return o;
    return NULL;
}

/* Stores the value of an option; what is wrong with it is said on stderr. */
static bool store(const option *o, const char *value, void *settings)
{
    void *at = (char *)settings + o->offset;
    switch (o->kind) {
    case OPTION_FLAG: *(bool *)at = true; return true;
    case OPTION_TEXT: *(const char **)at = value; return true;
    case OPTION_LIST: {
        option_list *list = at;
        if (list->n == OPTION_LIST_MAX) {
            console_error("--%s: given more than %d times", o->name, OPTION_LIST_MAX);
            return false;
        }
        list->items[list->n++] = value;
        return true;
    }
    case OPTION_NUMBER:
        if (options_number(value, o->low, o->high, at)) return true;
        console_error("--%s: '%s' is not a number within %" PRId64 " to %" PRId64, o->name, value, o->low, o->high);
        return false;
    case OPTION_DRAFT_LENGTH:
        if (parse_draft_length(value, at)) return true;
        console_error("--%s: '%s' is not auto, random or a number within 0 to %d", o->name, value, OUTRIDER_MAX_DRAFT);
        return false;
    case OPTION_CONTEXT:
        if (parse_context(value, at)) return true;
        console_error("--%s: '%s' is not auto or a number within 1 to %" PRIu32, o->name, value,
                      (uint32_t)OUTRIDER_CONTEXT_AUTO - 1);
        return false;
    case OPTION_BYTES:
        if (parse_bytes(value, at)) return true;
        console_error("--%s: '%s' is not a size such as 1500000000, 800MB or 1.5GiB", o->name, value);
        return false;
    case OPTION_SET:
        if (parse_set(value, o->low, o->high, at)) return true;
        console_error("--%s: '%s' is not a list of numbers within %" PRId64 " to %" PRId64 ", such as 1-8 or 1,2,4", o->name,
                      value, o->low, o->high);
        return false;
    }
    return false;
}

/* Where a walk over the arguments stands. */
typedef struct walk {
    const command *command;
    int argc, at;
    char **argv;
    void *settings;
    bool help;
} walk;

/* Takes one option whose value may stand behind it (`attached`, NULL if not) or be the next argument. */
static bool take(walk *w, const option *o, const char *attached)
{
    if (o == &help_option) w->help = true;
    if (!o->argument) {
        if (attached) {
            console_error("--%s takes no value", o->name);
            return false;
        }
        return o == &help_option || store(o, NULL, w->settings);
    }
    if (!attached) {
        if (w->at == w->argc) {
            console_error("--%s needs a value: %s", o->name, o->argument);
            return false;
        }
        attached = w->argv[w->at++];
    }
    return store(o, attached, w->settings);
}

/* --name, --name VALUE, --name=VALUE */
static bool take_long(walk *w, const char *text)
{
    const char *equals = strchr(text, '=');
    size_t size = equals ? (size_t)(equals - text) : strlen(text);
    const option *o = find_name(w->command, text, size);
    if (o) return take(w, o, equals ? equals + 1 : NULL);
    char name[64];
    snprintf(name, sizeof name, "%.*s", size < sizeof name ? (int)size : (int)sizeof name - 1, text);
    console_error("unknown option '--%s' of 'outrider %s'; the nearest is '--%s'", name, w->command->name,
                  nearest(w->command, name)->name);
    return false;
}

/* -x, -x VALUE, -xVALUE, and flags together: -xy */
static bool take_short(walk *w, const char *letters)
{
    for (; *letters; letters++) {
        const option *o = find_letter(w->command, *letters);
        if (!o) {
            char letter[2] = {*letters, 0};
            console_error("unknown option '-%s' of 'outrider %s'; 'outrider help %s' lists them", letter, w->command->name,
                          w->command->name);
            return false;
        }
        if (o->argument) return take(w, o, letters[1] ? letters + 1 : NULL);
        if (!take(w, o, NULL)) return false;
    }
    return true;
}

bool options_parse(const command *c, int argc, char **argv, void *settings, operands *found, int *status)
{
    walk w = {c, argc, 0, argv, settings, false};
    bool open = true;
    *found = (operands){.n = 0};
    *status = OUTRIDER_USAGE;
    while (w.at < argc) {
        const char *text = argv[w.at++];
        if (open && !strcmp(text, "--")) {
            open = false;
        } else if (open && text[0] == '-' && text[1] == '-') {
            if (!take_long(&w, text + 2)) return false;
        } else if (open && text[0] == '-' && text[1]) {
            if (!take_short(&w, text + 1)) return false;
        } else if (found->n == c->operands_max) {
            console_error("'outrider %s' does not expect '%s' (usage: outrider %s %s)", c->name, text, c->name, c->operands);
            return false;
        } else {
            found->items[found->n++] = text;
        }
        if (w.help) {
            options_help(c);
            *status = OUTRIDER_OK;
            return false;
        }
    }
    if (found->n < c->operands_min) {
        console_error("'outrider %s' needs more arguments (usage: outrider %s %s)", c->name, c->name, c->operands);
        return false;
    }
    *status = OUTRIDER_OK;
    return true;
}

/* Prints `text` from `column` on, broken at spaces before HELP_WIDTH; later lines begin at `indent`. */
static void print_wrapped(const char *text, int column, int indent)
{
    while (*text) {
        size_t word = strcspn(text, " \n");
        if (column > indent && column + 1 + (int)word > HELP_WIDTH) {
            printf("\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            putchar(' ');
            column++;
        }
        printf("%.*s", (int)word, text);
        column += (int)word;
        text += word;
        if (*text == '\n') {
            printf("\n%*s", text[1] && text[1] != '\n' ? indent : 0, "");
            column = indent;
        }
        if (*text) text++;
    }
    putchar('\n');
}

static void print_option(const option *o)
{
    char left[64];
    int n = o->letter ? snprintf(left, sizeof left, "  -%c, ", o->letter) : snprintf(left, sizeof left, "      ");
    n += snprintf(left + n, sizeof left - (size_t)n, "--%s%s%s", o->name, o->argument ? " " : "",
                  o->argument ? o->argument : "");
    if (n < HELP_COLUMN - 1)
        printf("%-*s", HELP_COLUMN, left);
    else
        printf("%s\n%*s", left, HELP_COLUMN, "");
    print_wrapped(o->help, HELP_COLUMN, HELP_COLUMN);
}

void options_help(const command *c)
{
    printf("Usage: outrider %s %s\n\n", c->name, c->operands);
    print_wrapped(c->about, 0, 0);
    printf("\nOptions:\n");
    for (const option *const *table = c->tables; *table; table++)
        for (const option *o = *table; o->name; o++)
            if (o->help) print_option(o);
    print_option(&help_option);
}
