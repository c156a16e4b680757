/* Any bytes, cut anywhere, through the decoder and the stop strings: every delta is UTF-8, and the joined deltas equal what a whole
 * decode and a search in it give.
 *
 * The input: a byte with the number of stop strings (0..3), for each its length and its bytes; a seed for the cuts; the text. */
#include <string.h>

#include "base/error.h"
#include "text/decoder.h"
#include "text/stop.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORDS = 3, WORD = 16 };

typedef struct input {
    char words[WORDS][WORD];
    const char *strings[WORDS];
    size_t n;
    uint32_t seed;
    const char *text;
    size_t size;
} input;

static uint8_t take(const uint8_t **data, size_t *size)
{
    if (!*size) return 0;
    --*size;
    return *(*data)++;
}

static void read_input(input *in, const uint8_t *data, size_t size)
{
    *in = (input){.n = take(&data, &size) % (WORDS + 1)};
    for (size_t i = 0; i < in->n; i++) {
        const size_t length = take(&data, &size) % WORD;
        for (size_t k = 0; k < length; k++) in->words[i][k] = (char)take(&data, &size);
        in->strings[i] = in->words[i];
    }
    in->seed = 1u + take(&data, &size);
    in->text = (const char *)data;
    in->size = size;
}

static size_t next_piece(input *in, size_t left)
{
    in->seed = in->seed * 1664525u + 1013904223u;
    const size_t piece = (in->seed >> 24) % 7;
    return piece < left ? piece : left;
}

/* Decodes at once, by the definition: at each place the longest run that is a character, or a beginning of one, or one byte. */
static void decode_whole(const char *text, size_t size, bytes *out)
{
    for (size_t at = 0; at < size;) {
        const uint8_t *p = (const uint8_t *)text + at;
        const size_t left = size - at;
        size_t need = p[0] < 0x80   ? 1
                      : p[0] < 0xC2 ? 0
                      : p[0] < 0xE0 ? 2
                      : p[0] < 0xF0 ? 3
                      : p[0] < 0xF5 ? 4
                                    : 0,
               got = need > 0;
        while (got && got < need && got < left && (p[got] & 0xC0) == 0x80) {
            if (got == 1) {
                const uint32_t second = (uint32_t)p[0] << 8 | p[1];
                if (second < 0xE0A0 && p[0] == 0xE0) break;
                if (second >= 0xEDA0 && p[0] == 0xED) break;
                if (second < 0xF090 && p[0] == 0xF0) break;
                if (second >= 0xF490 && p[0] == 0xF4) break;
            }
            got++;
        }
        ensure(need && got == need ? bytes_add(out, p, need) : bytes_add_text(out, "\xEF\xBF\xBD"));
        at += got ? got : 1;
    }
}

/* Where the text ends, and the stop string that ends it: the first place, there the shortest, of those alike the first. */
static size_t find_stop(const input *in, const bytes *text, int *matched)
{
    *matched = -1;
    for (size_t at = 0; at < text->size; at++) {
        for (size_t i = 0; i < in->n; i++) {
            const size_t length = strlen(in->words[i]);
            if (length > text->size - at || memcmp(text->data + at, in->words[i], length) != 0) continue;
            if (*matched < 0 || length < strlen(in->words[*matched])) *matched = (int)i;
        }
        if (*matched >= 0) return at;
    }
    return text->size;
}

static void ensure_utf8(const bytes *text)
{
    bytes again = {0};
    decode_whole(text->data, text->size, &again);
    ensure(again.size == text->size && (!again.size || memcmp(again.data, text->data, again.size) == 0));
    bytes_free(&again);
}

/* Pushes the text in pieces; what is shown is joined. */
static void stream(input *in, stop_matcher *m, bytes *joined)
{
    text_decoder d = {0};
    bytes raw = {0}, shown = {0};
    for (size_t at = 0, end = 0; !end;) {
        const size_t piece = next_piece(in, in->size - at);
        raw.size = shown.size = 0;
        ensure(text_decoder_push(&d, in->text + at, piece, &raw));
        at += piece;
        end = at == in->size;
        if (end) ensure(text_decoder_flush(&d, &raw));
        ensure_utf8(&raw);
        ensure(stop_push(m, raw.data, raw.size, &shown));
        if (end) ensure(stop_flush(m, &shown));
        ensure_utf8(&shown);
        ensure(bytes_add(joined, shown.data, shown.size));
    }
    bytes_free(&raw);
    bytes_free(&shown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in;
    stop_matcher m;
    outrider_error err;
    read_input(&in, data, size);
    if (stop_open(&m, in.strings, in.n, &err)) {
        ensure(err.status == OUTRIDER_USAGE && strncmp(err.message, "stop string ", 12) == 0);
        return 0;
    }
    bytes whole = {0}, joined = {0};
    int matched;
    decode_whole(in.text, in.size, &whole);
    const size_t end = find_stop(&in, &whole, &matched);
    stream(&in, &m, &joined);
    ensure(m.matched == matched && joined.size == end && (!end || memcmp(joined.data, whole.data, end) == 0));
    bytes_free(&whole);
    bytes_free(&joined);
    stop_close(&m);
    return 0;
}
