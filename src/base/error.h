/* Errors of the world travel as an outrider_status plus one line in an outrider_error; errors of ours assert. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include "outrider.h"

/* Writes status and message (printf style, cut to fit, newlines turned into spaces) into err unless it is NULL.
 * Returns status, so that `return error_set(err, ...)` is the way out. */
outrider_status error_set(outrider_error *err, outrider_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a failed allocation of `bytes` bytes for `what`. */
outrider_status error_memory(outrider_error *err, const char *what, size_t bytes);

/* An assertion that stays in release builds: a broken invariant of our own ends the process with file and line. */
#define ensure(condition) ((condition) ? (void)0 : ensure_failed(#condition, __FILE__, __LINE__))
_Noreturn void ensure_failed(const char *condition, const char *file, int line);

#endif
