/* outrider bench --classes: what drafting is worth on this machine, class by class of prompts. */
#ifndef CLI_BENCH_CLASSES_H
#define CLI_BENCH_CLASSES_H

#include "cli/load.h"

typedef struct bench_classes_settings {
    const char *prompts, *csv, *svg; /* NULL: those beside the model; none; none */
    uint32_t lengths;                /* fixed draft lengths to measure too, bit n for n */
    uint32_t tokens;
    int64_t rounds;
    bool json;
} bench_classes_settings;

/* Loads, measures and prints. Returns the exit code. */
int bench_classes(const char *path, const model_settings *model, const bench_classes_settings *settings);

#endif
