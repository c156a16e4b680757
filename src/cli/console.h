/* The terminal: one-line errors, progress bars, colour; and numbers for people. */
#ifndef CLI_CONSOLE_H
#define CLI_CONSOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "outrider.h"

/* Looks at the streams once, before anything else here is used. Broken pipes become write errors from then on. */
void console_open(void);

/* Colour goes to a terminal that wants it: NO_COLOR is not set and TERM is not dumb. */
bool console_colour(FILE *stream);
bool console_terminal(FILE *stream);
int console_width(void); /* columns of the terminal at stdout, 80 when there is none */

/* "outrider: MESSAGE" on one line of stderr. */
void console_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same; returns the exit code of a status. */
int console_fail(outrider_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
int console_fail_with(const outrider_error *err);
int console_exit_code(outrider_status status);

/* A bar on stderr, on a terminal only; drawn at most ten times a second. `unit` is printed after the counts ("tokens");
 * "" shows bytes. */
void console_progress(const char *what, uint64_t done, uint64_t total, const char *unit);
void console_progress_end(void);                                                          /* removes the bar */
void console_progress_bytes(void *user, const char *what, uint64_t done, uint64_t total); /* an outrider_progress */

/* For a signal handler that is about to end the process: leaves the terminal as it should be. */
void console_abandon(void);

/* What was written to stdout has arrived: true. A reader that went away is a reason to stop and no error; anything else is
 * reported once, and console_output_status then says so. */
bool console_flush(void);
int console_output_status(void); /* flushes; the exit code of a command that did everything else right */

/* Numbers as text, in one of eight static buffers used in turn: 27,648; 3.9 GB; 3.63 GiB. */
const char *console_count(uint64_t n);
const char *console_bytes(uint64_t n);
const char *console_binary(uint64_t n);

#endif
