#include "text/nfc.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/error.h"

enum { LONGEST_DECOMPOSITION = 18 }; /* code points of one character, in any form of Unicode; NFD needs 4 */

static const utf8proc_option_t options = UTF8PROC_STABLE | UTF8PROC_COMPOSE;

bool nfc_may_change(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if ((uint8_t)text[i] >= 0xcc) return true; /* the lead byte of U+0300 */
    return false;
}

static bool reserve(nfc_work *work, size_t points)
{
    if (points <= work->capacity) return true;
    size_t capacity = points + points / 2;
    if (capacity > SIZE_MAX / sizeof *work->points) return false;
    int32_t *p = realloc(work->points, capacity * sizeof *p);
    if (!p) return false;
    work->points = p;
    work->capacity = capacity;
    return true;
}

static int class_of(int32_t point) { return utf8proc_get_property(point)->combining_class; }

/* Puts a run of combining marks into the order of their classes, keeping the order within a class. Counting sort: a
 * text may be nothing but marks, and sorting by exchange would then take quadratic time. */
static bool order_marks(int32_t *marks, size_t n)
{
    bool ordered = true;
    for (size_t i = 1; i < n && ordered; i++) ordered = class_of(marks[i - 1]) <= class_of(marks[i]);
    if (ordered) return true;
    if (n <= 16) {
        for (size_t i = 1; i < n; i++)
            for (size_t k = i; k && class_of(marks[k - 1]) > class_of(marks[k]); k--) {
                int32_t swap = marks[k];
                marks[k] = marks[k - 1];
                marks[k - 1] = swap;
            }
        return true;
    }
    int32_t *copy = malloc(n * sizeof *copy);
    if (!copy) return false;
    memcpy(copy, marks, n * sizeof *copy);
    size_t start[257] = {0};
    for (size_t i = 0; i < n; i++) start[class_of(copy[i]) + 1]++;
    for (size_t c = 1; c < 257; c++) start[c] += start[c - 1];
    for (size_t i = 0; i < n; i++) marks[start[class_of(copy[i])]++] = copy[i];
    free(copy);
    return true;
}

static bool order(int32_t *points, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t begin = i;
        while (i < n && class_of(points[i])) i++;
        if (i - begin > 1 && !order_marks(points + begin, i - begin)) return false;
    }
    return true;
}

/* Characters that stay as they are and part what is before from what is behind:
 *  - what came after Unicode 9 and takes part in normalisation, up to Unicode 17: marks with a class, and blocks with
 *    compositions. The reference, and so the ids that models were trained with, knows Unicode 9, where there is nothing to
 *    reorder or compose about them;
 *  - U+11A7, one before the first trailing consonant of Hangul, which utf8proc drops after a syllable. */
static const struct {
    int32_t first, last;
} inert[] = {
    {0x7fd, 0x7fd},     {0x897, 0x89f},     {0x8ca, 0x8d3},     {0x9fe, 0x9fe},     {0xc3c, 0xc3c},     {0xd3b, 0xd3c},
    {0xeba, 0xeba},     {0xece, 0xece},     {0x11a7, 0x11a7},   {0x1715, 0x1715},   {0x1abf, 0x1aff},   {0x1df6, 0x1dfa},
    {0xa82c, 0xa82c},   {0x105c0, 0x105ff}, {0x10d00, 0x10d8f}, {0x10e80, 0x10eff}, {0x10f30, 0x10fdf}, {0x11070, 0x11070},
    {0x1133b, 0x1133b}, {0x11380, 0x113ff}, {0x1145e, 0x1145e}, {0x11800, 0x1184f}, {0x11900, 0x11aaf}, {0x11d00, 0x11daf},
    {0x11f00, 0x11f5f}, {0x16100, 0x1613f}, {0x16d40, 0x16d7f}, {0x16ff0, 0x16ff1}, {0x1e030, 0x1e14f}, {0x1e290, 0x1e6ff},
};

static bool is_inert(int32_t point)
{
    size_t low = 0, high = sizeof inert / sizeof *inert;
    if (point < inert[0].first) return false;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (point > inert[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < sizeof inert / sizeof *inert && point >= inert[low].first;
}

/* Orders and composes work->points[0..n) and appends them as UTF-8. */
static bool compose(nfc_work *work, size_t n, bytes *out)
{
    if (!order(work->points, n)) return false;
    utf8proc_ssize_t composed = utf8proc_normalize_utf32(work->points, (utf8proc_ssize_t)n, options);
    ensure(composed >= 0 && (size_t)composed <= n);
    for (size_t i = 0; i < (size_t)composed; i++) {
        utf8proc_uint8_t encoded[4];
        utf8proc_ssize_t length = utf8proc_encode_char(work->points[i], encoded);
        if (!bytes_add(out, encoded, (size_t)length)) return false;
    }
    return true;
}

/* Decomposes, orders, composes. utf8proc_map would do all three, but its ordering is quadratic. */
bool nfc_add(nfc_work *work, const char *text, size_t size, bytes *out)
{
    size_t n = 0, length;
    for (size_t i = 0; i < size; i += length) {
        utf8proc_int32_t point;
        int last_boundary = 0;
        utf8proc_ssize_t got = utf8proc_iterate((const utf8proc_uint8_t *)text + i, (utf8proc_ssize_t)(size - i), &point);
        ensure(got > 0);
        length = (size_t)got;
        if (is_inert(point)) {
            if (n && !compose(work, n, out)) return false;
            if (!bytes_add(out, text + i, length)) return false;
            n = 0;
            continue;
        }
        if (!reserve(work, n + LONGEST_DECOMPOSITION)) return false;
        utf8proc_ssize_t made =
            utf8proc_decompose_char(point, work->points + n, LONGEST_DECOMPOSITION, options, &last_boundary);
        ensure(made >= 0 && made <= LONGEST_DECOMPOSITION);
        n += (size_t)made;
    }
    return !n || compose(work, n, out);
}
