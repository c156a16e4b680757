#include "cli/flow.h"

#include <string.h>

void flow_open(flow *f, FILE *out, int width, int indent, const char *colour)
{
    *f = (flow){.out = out, .width = width, .indent = indent, .colour = colour};
}

static void start_line(flow *f)
{
    if (f->column) return;
    fprintf(f->out, "%*s", f->indent, "");
    f->column = f->indent;
}

/* Prints the spaces and the word that wait, on a new line if they would stand out of this one. */
static void print_word(flow *f)
{
    int columns = 0;
    bool marked = false;
    for (size_t i = 0; i < f->size; i++) columns += (f->word[i] & 0xc0) != 0x80;
    if (f->column && f->column + f->spaces + columns > f->width) {
        putc('\n', f->out);
        f->column = f->spaces = 0;
    }
    start_line(f);
    fprintf(f->out, "%*s", f->spaces, "");
    for (size_t i = 0; i < f->size; i++) {
        if (f->colour && f->marks[i] != marked) fputs(f->marks[i] ? f->colour : "\033[0m", f->out);
        marked = f->marks[i];
        putc(f->word[i], f->out);
    }
    if (f->colour && marked) fputs("\033[0m", f->out);
    f->column += f->spaces + columns;
    f->spaces = 0;
    f->size = 0;
}

void flow_add(flow *f, const char *text, size_t size, bool marked)
{
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (c == '\n') {
            if (f->size) print_word(f);
            putc('\n', f->out);
            f->column = f->spaces = 0;
        } else if ((unsigned char)c <= ' ' || c == 127) { /* what would move the cursor or worse is a space */
            if (f->size) print_word(f);
            f->spaces++;
        } else {
            if (f->size == sizeof f->word) print_word(f);
            f->marks[f->size] = marked;
            f->word[f->size++] = c;
        }
    }
}

void flow_end(flow *f)
{
    if (f->size) print_word(f);
    if (f->column) putc('\n', f->out);
    f->column = f->spaces = 0;
}
