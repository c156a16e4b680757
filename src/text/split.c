#define PCRE2_CODE_UNIT_WIDTH 8

#include "text/split.h"

#include <ctype.h>
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

/* Unicode's White_Space, which is \s in Oniguruma. PCRE2's \s has U+180E as well. */
#define SPACES "\\x09-\\x0d\\x20\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"

enum { PATTERN_LIMIT = 65536 };

struct split {
    pcre2_code *code;
};

struct split_cursor {
    const split *split;
    pcre2_match_data *match;
    const char *text;
    size_t size, at;   /* at: where the next piece begins */
    size_t begin, end; /* the match that is handed out next; both are size when none is left */
};

/* Bytes of printable ASCII at the front of a zero-terminated text, at most `limit`, to show in a message. */
static int shown(const char *text, int limit)
{
    int n = 0;
    while (n < limit && text[n] >= ' ' && text[n] < 0x7f) n++;
    return n;
}

static outrider_status refuse(const char *where, const char *expected, const char *pattern, size_t at, outrider_error *err)
{
    return error_set(err, OUTRIDER_BAD_FILE, "%s: expected %s, found \"%.*s\" at byte %zu", where, expected,
                     shown(pattern + at, 8), pattern + at, at);
}

/* One escape: \s and \S become sets; those that the two engines read alike stay; the rest is refused. */
static outrider_status translate_escape(bytes *out, const char *p, size_t at, bool in_class, const char *where,
                                        outrider_error *err)
{
    char c = p[at + 1];
    bool ok;
    if (c == 's') {
        ok = bytes_add_text(out, in_class ? SPACES : "[" SPACES "]");
    } else if (c == 'S' && !in_class) {
        ok = bytes_add_text(out, "[^" SPACES "]");
    } else if (c > ' ' && c < 0x7f && (isalnum((unsigned char)c) ? strchr("rntfpPdDx", c) != NULL : c != '_')) {
        ok = bytes_add(out, p + at, 2);
    } else {
        return refuse(where, "only the escapes \\s \\S \\d \\D \\p \\P \\r \\n \\t \\f \\x and escaped punctuation", p, at,
                      err);
    }
    return ok ? OUTRIDER_OK : error_memory(err, "a pattern", 8);
}

/* A repetition that the engines read differently: Oniguruma takes {,m} for {0,m}, and the + of {n,m}+ for another
 * repetition. */
static bool odd_repetition(const char *p, size_t at, size_t size)
{
    size_t i = at + 1;
    if (i < size && p[i] == ',') return true;
    while (i < size && ((p[i] >= '0' && p[i] <= '9') || p[i] == ',')) i++;
    return i > at + 1 && i + 1 < size && p[i] == '}' && p[i + 1] == '+';
}

/* Copies the braces of \p{..} or \x{..}, whose escape ends before *i. */
static bool copy_braces(bytes *out, const char *p, size_t size, size_t *i)
{
    if (*i + 1 >= size || p[*i + 1] != '{') return true;
    do {
        if (!bytes_add(out, &p[++*i], 1)) return false;
    } while (*i + 1 < size && p[*i] != '}');
    return true;
}

/* Oniguruma's pattern as PCRE2's. In classes, Oniguruma knows nested classes and &&, which PCRE2 would take as
 * letters. */
static outrider_status translate(bytes *out, const char *p, size_t size, const char *where, outrider_error *err)
{
    bool in_class = false;
    for (size_t i = 0; i < size; i++) {
        if (p[i] == '\\') {
            if (i + 1 == size) return refuse(where, "a character after the backslash", p, i, err);
            outrider_status s = translate_escape(out, p, i, in_class, where, err);
            if (s) return s;
            i++;
            if (strchr("pPx", p[i]) && !copy_braces(out, p, size, &i)) return error_memory(err, "a pattern", size);
            continue;
        }
        if (in_class && p[i] == '[') return refuse(where, "no class inside a class", p, i, err);
        if (in_class && p[i] == '&' && i + 1 < size && p[i + 1] == '&') return refuse(where, "no && in a class", p, i, err);
        if (!in_class && p[i] == '{' && odd_repetition(p, i, size)) return refuse(where, "no {,m} and no {n,m}+", p, i, err);
        if (!bytes_add(out, &p[i], 1)) return error_memory(err, "a pattern", size);
        if (p[i] == '[') {
            in_class = true;
            if (i + 1 < size && p[i + 1] == '^' && !bytes_add(out, &p[++i], 1)) return error_memory(err, "a pattern", size);
            if (i + 1 < size && p[i + 1] == ']') return refuse(where, "no ] at the start of a class", p, i + 1, err);
        } else if (p[i] == ']') {
            in_class = false;
        }
    }
    return OUTRIDER_OK;
}

static outrider_status compile(split *s, const bytes *text, const char *where, outrider_error *err)
{
    int code = 0;
    PCRE2_SIZE at = 0;
    PCRE2_UCHAR why[120] = "not enough memory";
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (!context) return error_memory(err, "a pattern", text->size);
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    s->code = pcre2_compile((PCRE2_SPTR)text->data, text->size,
                            PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &code, &at, context);
    pcre2_compile_context_free(context);
    if (s->code) {
        pcre2_jit_compile(s->code, PCRE2_JIT_COMPLETE); /* where there is no JIT, pcre2_match does without */
        return OUTRIDER_OK;
    }
    pcre2_get_error_message(code, why, sizeof why);
    return error_set(err, OUTRIDER_BAD_FILE, "%s: expected a regular expression, found one with a fault: %s", where,
                     (const char *)why);
}

outrider_status split_open(split **out, const char *pattern, size_t size, const char *where, outrider_error *err)
{
    if (size > PATTERN_LIMIT)
        return error_set(err, OUTRIDER_BAD_FILE, "%s: expected at most %d bytes, found %zu", where, PATTERN_LIMIT, size);
    bytes text = {0};
    split *made = calloc(1, sizeof *made);
    outrider_status s = made && bytes_add_text(&text, "") ? OUTRIDER_OK : error_memory(err, "a pattern", size);
    if (!s) s = translate(&text, pattern, size, where, err);
    if (!s) s = compile(made, &text, where, err);
    bytes_free(&text);
    if (s)
        free(made);
    else
        *out = made;
    return s;
}

void split_close(split *s)
{
    if (!s) return;
    pcre2_code_free(s->code);
    free(s);
}

split_cursor *split_cursor_new(const split *s)
{
    split_cursor *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->split = s;
    c->match = pcre2_match_data_create(1, NULL);
    if (c->match) return c;
    free(c);
    return NULL;
}

void split_cursor_free(split_cursor *c)
{
    if (!c) return;
    pcre2_match_data_free(c->match);
    free(c);
}

void split_start(split_cursor *c, const char *text, size_t size)
{
    c->text = text;
    c->size = size;
    c->at = c->begin = c->end = 0;
}

/* Finds the next match that is not empty, from c->at on. */
static outrider_status find(split_cursor *c, outrider_error *err)
{
    uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
    PCRE2_SPTR text = (PCRE2_SPTR)c->text;
    int n = pcre2_match(c->split->code, text, c->size, c->at, options, c->match, NULL);
    if (n == PCRE2_ERROR_JIT_STACKLIMIT)
        n = pcre2_match(c->split->code, text, c->size, c->at, options | PCRE2_NO_JIT, c->match, NULL);
    if (n == PCRE2_ERROR_NOMATCH) {
        c->begin = c->end = c->size;
        return OUTRIDER_OK;
    }
    PCRE2_SIZE *where = pcre2_get_ovector_pointer(c->match);
    if (n >= 0 && where[0] >= c->at && where[1] > where[0]) {
        c->begin = where[0];
        c->end = where[1];
        return OUTRIDER_OK;
    }
    PCRE2_UCHAR why[120] = "a match that is not one";
    if (n < 0) pcre2_get_error_message(n, why, sizeof why);
    return error_set(err, OUTRIDER_FAILURE, "the tokenizer's split pattern failed at byte %zu of a text: %s", c->at,
                     (const char *)why);
}

outrider_status split_next(split_cursor *c, const char **piece, size_t *size, outrider_error *err)
{
    if (c->at < c->size && c->at >= c->end) {
        outrider_status s = find(c, err);
        if (s) return s;
    }
    size_t end = c->at < c->begin ? c->begin : c->end;
    *piece = c->text + c->at;
    *size = end - c->at;
    c->at = end;
    return OUTRIDER_OK;
}
