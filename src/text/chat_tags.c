/* A Jinja template taken apart into tags, the way Jinja2 does it with trim_blocks and lstrip_blocks. */
#include <string.h>

#include "text/chat_known.h"

typedef struct reader {
    const char *at, *end;
    bytes *tags;
    bool ok; /* false when memory ran out */
} reader;

typedef enum token_kind { TOKEN_NONE, TOKEN_WORD, TOKEN_STRING, TOKEN_PLUS, TOKEN_OTHER } token_kind;

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

static void put(reader *r, const char *data, size_t size) { r->ok = r->ok && bytes_add(r->tags, data, size); }

static void put_quoted(reader *r, char c)
{
    if (c == '\'') put(r, "\\", 1);
    put(r, &c, 1);
}

static bool ends_with(const reader *r, const char *text)
{
    const size_t size = strlen(text);
    return r->tags->size >= size && memcmp(r->tags->data + r->tags->size - size, text, size) == 0;
}

/* A string literal, between single quotes and with newlines as they are. A string added to a string is one string. */
static bool read_string(reader *r, token_kind last, token_kind before)
{
    const char quote = *r->at++;
    if (last == TOKEN_PLUS && before == TOKEN_STRING && r->ok)
        r->tags->size -= 2; /* the plus and the quote before it */
    else
        put(r, "'", 1);
    for (; r->at < r->end && *r->at != quote; r->at++) {
        char c = *r->at;
        if (c == '\\') {
            if (++r->at == r->end) return false;
            c = *r->at;
            if (c == 'n')
                c = '\n';
            else if (c != '\\' && c != '\'' && c != '"')
                return false;
        }
        put_quoted(r, c);
    }
    if (r->at == r->end) return false;
    r->at++;
    put(r, "'", 1);
    return true;
}

/* x['name'] is x.name. */
static void join_subscript(reader *r)
{
    if (!r->ok || !ends_with(r, "']")) return;
    size_t begin = r->tags->size - 2;
    while (begin && is_word(r->tags->data[begin - 1])) begin--;
    if (begin < 3 || memcmp(r->tags->data + begin - 2, "['", 2) != 0) return;
    const char before = r->tags->data[begin - 3];
    if (!is_word(before) && before != ']') return;
    const size_t size = r->tags->size - 2 - begin;
    r->tags->data[begin - 2] = '.';
    memmove(r->tags->data + begin - 1, r->tags->data + begin, size);
    r->tags->size = begin - 1 + size;
}

/* What stands in a tag, up to its end ("%}" or "}}", perhaps with a sign before it). */
static bool read_inside(reader *r, const char *close, char *sign)
{
    token_kind last = TOKEN_NONE, before = TOKEN_NONE;
    while (r->at < r->end) {
        const char c = *r->at;
        const size_t left = (size_t)(r->end - r->at);
        const bool is_sign = c == '-' || (c == '+' && close[0] == '%'); /* "+}}" is none */
        *sign = is_sign && left > 2 && memcmp(r->at + 1, close, 2) == 0 ? c : 0;
        if (*sign || (left > 1 && memcmp(r->at, close, 2) == 0)) {
            r->at += *sign ? 3 : 2;
            return true;
        }
        token_kind kind = TOKEN_OTHER;
        if (is_space(c)) {
            r->at++;
            continue;
        }
        if (c == '\'' || c == '"') {
            kind = TOKEN_STRING;
            if (!read_string(r, last, before)) return false;
        } else if (is_word(c)) {
            kind = TOKEN_WORD;
            if (last == TOKEN_WORD) put(r, " ", 1);
            for (; r->at < r->end && is_word(*r->at); r->at++) put(r, r->at, 1);
        } else {
            if (c == '+') kind = TOKEN_PLUS;
            /* "= =" is not "==". */
            if (c == '=' && is_space(r->at[-1]) && last == TOKEN_OTHER) put(r, " ", 1);
            put(r, r->at++, 1);
            join_subscript(r);
        }
        before = last;
        last = kind;
    }
    return false;
}

/* The text before a tag, as far as Jinja2 leaves it: an output like any other. */
static void read_text(reader *r, const char *begin, const char *end, bool line_start)
{
    const bool tag = end < r->end;
    const char sign = tag && r->end - end > 2 ? end[2] : 0;
    if (tag && sign == '-') {
        while (end > begin && is_space(end[-1])) end--;
    } else if (tag && sign != '+' && end[1] != '{') {
        const char *line = end;
        while (line > begin && (line[-1] == ' ' || line[-1] == '\t')) line--;
        if (line > begin ? line[-1] == '\n' : line_start) end = line;
    }
    if (begin == end) return;
    put(r, "='", 2);
    for (const char *c = begin; c < end; c++) put_quoted(r, *c);
    put(r, "'", 2);
}

/* A tag from its "{" on; *line_start: whether it took the newline behind it. */
static bool read_tag(reader *r, bool *line_start)
{
    const char kind = r->at[1];
    char sign = 0;
    r->at += 2;
    if (kind == '#') {
        const char *close = memmem(r->at, (size_t)(r->end - r->at), "#}", 2);
        if (!close) return false;
        if (close > r->at) sign = close[-1];
        r->at = close + 2;
    } else {
        if (r->at < r->end && (*r->at == '-' || *r->at == '+')) r->at++;
        put(r, kind == '%' ? "%" : "=", 1);
        if (!read_inside(r, kind == '%' ? "%}" : "}}", &sign)) return false;
        put(r, "", 1);
    }
    const char *after = r->at;
    if (sign == '-')
        while (r->at < r->end && is_space(*r->at)) r->at++;
    else if (sign != '+' && kind != '{' && r->at < r->end && *r->at == '\n')
        r->at++;
    *line_start = r->at > after && r->at[-1] == '\n';
    return true;
}

bool chat_tags(const char *text, size_t size, bytes *tags)
{
    if (size && text[size - 1] == '\n') size--; /* Jinja2 does not keep it */
    reader r = {text, text + size, tags, true};
    bool line_start = true;
    while (r.at < r.end && r.ok) {
        const char *begin = r.at;
        while (r.at < r.end && !(*r.at == '{' && r.at + 1 < r.end && strchr("{%#", r.at[1]) && r.at[1])) r.at++;
        read_text(&r, begin, r.at, line_start);
        if (r.at < r.end && !read_tag(&r, &line_start)) {
            put(&r, "", 1);
            put(&r, "?", 2);
            break;
        }
    }
    return r.ok;
}
