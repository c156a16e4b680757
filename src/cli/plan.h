/* The memory plan, as text and as JSON. */
#ifndef CLI_PLAN_H
#define CLI_PLAN_H

#include <jansson.h>
#include <stdio.h>

#include "outrider.h"

/* A table of bytes; the lines of a draft are left out where there is none. */
void plan_print(FILE *to, const outrider_memory_plan *plan);

/* The same numbers; NULL when memory ran out. */
json_t *plan_json(const outrider_memory_plan *plan);

#endif
