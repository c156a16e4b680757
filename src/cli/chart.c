#include "cli/chart.h"

#include <math.h>

enum { LEFT = 80, TOP = 96, PLOT = 260, BOTTOM = 84, GROUP = 116, BAR = 40, NARROWEST = 600 };

static const char *const colours[CHART_SERIES] = {"#9aa5b1", "#1f6feb"};

/* A text element; `attributes` places it. */
static void text(FILE *to, double x, double y, const char *attributes, const char *content)
{
    fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes);
    for (; *content; content++) {
        switch (*content) {
        case '<': fputs("&lt;", to); break;
        case '>': fputs("&gt;", to); break;
        case '&': fputs("&amp;", to); break;
        default: fputc((unsigned char)*content < ' ' ? ' ' : *content, to); /* controls have no place in XML */
        }
    }
    fputs("</text>\n", to);
}

/* The distance of grid lines: 1, 2 or 5 times a power of ten, so that a handful of them reach `most`. */
static double grid_step(double most)
{
    double power = pow(10, floor(log10(most / 5)));
    double times = most / 5 / power;
    return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

static void grid(FILE *to, double width, double step, double top)
{
    char label[32];
    for (int i = 0; i * step <= top * 1.001; i++) {
        double y = TOP + PLOT - PLOT * i * step / top;
        fprintf(to, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", LEFT, y, width - 20, y,
                i ? "#e5e8eb" : "#57606a");
        snprintf(label, sizeof label, "%g", i * step);
        text(to, LEFT - 8, y + 4, "text-anchor=\"end\" font-size=\"12\"", label);
    }
}

static void group(FILE *to, const chart *c, size_t i, double middle, double top)
{
    const chart_group *g = &c->groups[i];
    char value[32];
    for (int s = 0; s < CHART_SERIES; s++) {
        double height = PLOT * g->values[s] / top, x = middle + (s - CHART_SERIES / 2.0) * BAR;
        fprintf(to, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%.1f\" fill=\"%s\"/>\n", x + 1, TOP + PLOT - height,
                BAR - 2, height, colours[s]);
        snprintf(value, sizeof value, g->values[s] < 9.995 ? "%.2f" : g->values[s] < 99.95 ? "%.1f" : "%.0f", g->values[s]);
        text(to, x + BAR / 2.0, TOP + PLOT - height - 5, "text-anchor=\"middle\" font-size=\"11\"", value);
    }
    text(to, middle, TOP + PLOT + 18, "text-anchor=\"middle\" font-size=\"12\"", g->name);
    text(to, middle, TOP + PLOT + 35, "text-anchor=\"middle\" font-size=\"12\" font-weight=\"bold\"", g->note);
}

static void legend(FILE *to, const chart *c)
{
    for (int s = 0; s < CHART_SERIES; s++) {
        fprintf(to, "<rect x=\"%d\" y=\"62\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", LEFT + s * 110, colours[s]);
        text(to, LEFT + s * 110 + 18, 72, "font-size=\"12\"", c->series[s]);
    }
}

void chart_svg(FILE *to, const chart *c)
{
    double most = 0, width = LEFT + 20 + GROUP * (double)c->n;
    for (size_t i = 0; i < c->n; i++)
        for (int s = 0; s < CHART_SERIES; s++) most = c->groups[i].values[s] > most ? c->groups[i].values[s] : most;
    if (width < NARROWEST) width = NARROWEST;
    if (most <= 0) most = 1;
    double step = grid_step(most), top = step * ceil(most * 1.05 / step),
           share = (width - LEFT - 20) / (double)(c->n ? c->n : 1);
    char turned[128];
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%d\" viewBox=\"0 0 %.0f %d\" "
            "font-family=\"sans-serif\" fill=\"#1f2328\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
            width, TOP + PLOT + BOTTOM, width, TOP + PLOT + BOTTOM);
    text(to, 20, 28, "font-size=\"18\" font-weight=\"bold\"", c->title);
    text(to, 20, 47, "font-size=\"12\" fill=\"#57606a\"", c->subtitle);
    legend(to, c);
    grid(to, width, step, top);
    for (size_t i = 0; i < c->n; i++) group(to, c, i, LEFT + share * ((double)i + 0.5), top);
    text(to, LEFT + (width - LEFT - 20) / 2, TOP + PLOT + 66, "text-anchor=\"middle\" font-size=\"13\"", c->x_label);
    snprintf(turned, sizeof turned, "text-anchor=\"middle\" font-size=\"13\" transform=\"rotate(-90 24 %.1f)\"",
             TOP + PLOT / 2.0);
    text(to, 24, TOP + PLOT / 2.0, turned, c->y_label);
    fputs("</svg>\n", to);
}
