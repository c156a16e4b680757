/* Bar charts as SVG. */
#ifndef CLI_CHART_H
#define CLI_CHART_H

#include <stddef.h>
#include <stdio.h>

enum { CHART_SERIES = 2 };

typedef struct chart_group {
    const char *name;
    double values[CHART_SERIES]; /* finite, not below 0 */
    char note[32];               /* a second line below the name */
} chart_group;

typedef struct chart {
    const char *title, *subtitle, *x_label, *y_label;
    const char *series[CHART_SERIES];
    const chart_group *groups;
    size_t n;
} chart;

/* One group of bars for each name, a bar for each series. Texts are UTF-8. */
void chart_svg(FILE *to, const chart *c);

#endif
