#include "cli/console.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"

/* Exit code of what a person interrupted, as shells count it. */
enum { EXIT_INTERRUPTED = 130 };

static bool terminal[2], coloured[2]; /* of stdout and stderr */
static volatile sig_atomic_t bar_shown;
static double bar_time;
static bool output_failed;
static int output_status;

static int stream_index(FILE *stream) { return stream == stderr; }

void console_open(void)
{
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
    bool wanted = !(no_colour && *no_colour) && term && strcmp(term, "dumb");
    for (int i = 0; i < 2; i++) {
        terminal[i] = isatty(i + 1) == 1;
        coloured[i] = terminal[i] && wanted;
    }
    signal(SIGPIPE, SIG_IGN);
}

bool console_terminal(FILE *stream) { return terminal[stream_index(stream)]; }

bool console_colour(FILE *stream) { return coloured[stream_index(stream)]; }

int console_width(void)
{
    struct winsize size;
    if (terminal[0] && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col >= 20) return size.ws_col;
    return 80;
}

/* Writes the line; what would not print as one line (a path may hold anything) becomes a question mark. */
static void print_error(const char *format, va_list args)
{
    char line[1024];
    vsnprintf(line, sizeof line, format, args);
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127) *c = '?';
    console_progress_end();
    fflush(stdout);
    fprintf(stderr, "outrider: %s\n", line);
}

void console_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_error(format, args);
    va_end(args);
}

int console_exit_code(outrider_status status) { return status == OUTRIDER_CANCELLED ? EXIT_INTERRUPTED : (int)status; }

int console_fail(outrider_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_error(format, args);
    va_end(args);
    return console_exit_code(status);
}

int console_fail_with(const outrider_error *err) { return console_fail(err->status, "%s", err->message); }

void console_progress(const char *what, uint64_t done, uint64_t total, const char *unit)
{
    enum { BAR = 24 };
    double now = clock_seconds();
    if (!terminal[1] || (bar_shown && now - bar_time < 0.1 && done < total)) return;
    bar_time = now;
    double part = total ? (double)done / (double)total : 1;
    int full = (int)((part > 1 ? 1 : part) * BAR);
    char bar[BAR + 1];
    memset(bar, ' ', BAR);
    memset(bar, '=', (size_t)full);
    bar[BAR] = 0;
    bar_shown = 1;
    if (*unit)
        fprintf(stderr, "\r%-22.22s [%s] %s of %s %s\033[K", what, bar, console_count(done), console_count(total), unit);
    else
        fprintf(stderr, "\r%-22.22s [%s] %s of %s\033[K", what, bar, console_bytes(done), console_bytes(total));
    fflush(stderr);
}

void console_progress_end(void)
{
    if (!bar_shown) return;
    bar_shown = 0;
    fputs("\r\033[K", stderr);
    fflush(stderr);
}

void console_progress_bytes(void *user, const char *what, uint64_t done, uint64_t total)
{
    (void)user;
    console_progress(what, done, total, "");
}

void console_abandon(void)
{
    static const char reset[] = "\033[0m\n", clear[] = "\r\033[K";
    ssize_t n = 0;
    if (bar_shown) n = write(STDERR_FILENO, clear, sizeof clear - 1);
    if (coloured[0]) n = write(STDOUT_FILENO, reset, sizeof reset - 1);
    (void)n;
}

bool console_flush(void)
{
    if (output_failed) return false;
    errno = 0;
    if (!fflush(stdout) && !ferror(stdout)) return true;
    output_failed = true;
    if (errno != EPIPE) output_status = console_fail(OUTRIDER_FAILURE, "standard output: %s", strerror(errno));
    return false;
}

int console_output_status(void)
{
    console_flush();
    return output_status;
}

static char *number_buffer(size_t *size)
{
    static char buffers[8][32];
    static int next;
    next = (next + 1) % 8;
    *size = sizeof buffers[0];
    return buffers[next];
}

const char *console_count(uint64_t n)
{
    size_t size;
    char *text = number_buffer(&size), digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, n);
    char *out = text;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0) *out++ = ',';
        *out++ = digits[i];
    }
    *out = 0;
    return text;
}

const char *console_bytes(uint64_t n)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    size_t size;
    char *text = number_buffer(&size);
    double value = (double)n;
    int unit = 0;
    for (; value >= 999.5 && unit < 4; unit++) value /= 1000;
    snprintf(text, size, "%.*f %s", unit && value < 99.95 ? 1 : 0, value, units[unit]);
    return text;
}

const char *console_binary(uint64_t n)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    size_t size;
    char *text = number_buffer(&size);
    double value = (double)n;
    int unit = 0;
    for (; value >= 1024 && unit < 4; unit++) value /= 1024;
    snprintf(text, size, "%.*f %s", unit ? 2 : 0, value, units[unit]);
    return text;
}
