#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

outrider_status error_set(outrider_error *err, outrider_status status, const char *format, ...)
{
    if (!err) return status;
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    for (char *c = err->message; *c; c++)
        if (*c == '\n' || *c == '\r') *c = ' ';
    err->status = status;
    return status;
}

outrider_status error_memory(outrider_error *err, const char *what, size_t bytes)
{
    return error_set(err, OUTRIDER_NO_MEMORY, "not enough memory: %zu bytes for %s", bytes, what);
}

_Noreturn void ensure_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "outrider: internal error: %s does not hold (%s:%d)\n", condition, file, line);
    abort();
}
