#include "text/stop.h"

#include <string.h>

#include "text/decoder.h"

/* A stop string that is not UTF-8 could end a text inside a character, or never be met: refused. It is when decoding changes it. */
static outrider_status check_utf8(const char *text, size_t index, outrider_error *err)
{
    text_decoder d = {0};
    bytes decoded = {0};
    const size_t size = strlen(text);
    outrider_status status = OUTRIDER_OK;
    if (!text_decoder_push(&d, text, size, &decoded) || !text_decoder_flush(&d, &decoded))
        status = error_memory(err, "a stop string", size);
    else if (decoded.size != size || memcmp(decoded.data, text, size) != 0)
        status = error_set(err, OUTRIDER_USAGE, "stop string %zu: expected UTF-8, found other bytes", index);
    bytes_free(&decoded);
    return status;
}

outrider_status stop_open(stop_matcher *m, const char *const *strings, size_t n, outrider_error *err)
{
    *m = (stop_matcher){.matched = -1};
    if (n > STOP_MAX) return error_set(err, OUTRIDER_USAGE, "stop: expected at most %d strings, found %zu", STOP_MAX, n);
    for (size_t i = 0; i < n; i++) {
        if (!strings[i] || !strings[i][0])
            return error_set(err, OUTRIDER_USAGE, "stop string %zu: expected text, found none", i);
        const outrider_status status = check_utf8(strings[i], i, err);
        if (status) return status;
    }
    m->strings = strings;
    m->n = n;
    return OUTRIDER_OK;
}

void stop_close(stop_matcher *m) { bytes_free(&m->held); }

/* What the stop strings make of the text from one position on: whether a match begins there (the index of the one that ends first, or
 * -1), and whether more text could still make one. */
static int match_at(const stop_matcher *m, const char *text, size_t size, bool *open)
{
    int found = -1;
    size_t found_size = 0;
    *open = false;
    for (size_t i = 0; i < m->n; i++) {
        if (m->strings[i][0] != text[0]) continue;
        const size_t length = strlen(m->strings[i]);
        if (memcmp(text, m->strings[i], length < size ? length : size) != 0) continue;
        if (length > size)
            *open = true;
        else if (found < 0 || length < found_size) {
            found = (int)i;
            found_size = length;
        }
    }
    return found;
}

/* Appends the text before the first match, or before the first position where one may still come, and keeps the rest; `last` says that
 * nothing comes any more. A match further on waits while one that begins before it may still come: cuts between pushes make no difference. */
static bool settle(stop_matcher *m, bool last, bytes *out)
{
    size_t at = 0;
    int found = -1;
    for (; at < m->held.size; at++) {
        bool open;
        found = match_at(m, m->held.data + at, m->held.size - at, &open);
        if (found >= 0 || (open && !last)) break;
    }
    if (!bytes_add(out, m->held.data, at)) return false;
    m->matched = found;
    m->held.size = found >= 0 ? 0 : m->held.size - at;
    if (m->held.size) memmove(m->held.data, m->held.data + at, m->held.size);
    return true;
}

bool stop_push(stop_matcher *m, const char *text, size_t size, bytes *out)
{
    if (m->matched >= 0) return true;
    if (!m->n) return bytes_add(out, text, size);
    return bytes_add(&m->held, text, size) && settle(m, false, out);
}

bool stop_flush(stop_matcher *m, bytes *out) { return m->matched >= 0 || settle(m, true, out); }
