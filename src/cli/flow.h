/* Running text on a terminal: broken between words at the width of the terminal, indented, some of it coloured. */
#ifndef CLI_FLOW_H
#define CLI_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct flow {
    FILE *out;
    int width, indent;
    const char *colour; /* escape sequence that begins marked text; NULL: marks do not show */
    int column;         /* where the next character goes, 0: the line is empty */
    int spaces;         /* read, not yet printed */
    size_t size;        /* of the word that has begun */
    char word[256];
    bool marks[256];
} flow;

void flow_open(flow *f, FILE *out, int width, int indent, const char *colour);
void flow_add(flow *f, const char *text, size_t size, bool marked);
void flow_end(flow *f); /* prints what is left, and a line end unless the line is empty */

#endif
