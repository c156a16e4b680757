#include "text/scan.h"

#include <string.h>

enum { ALPHABET = 0x144 }; /* code points of the byte alphabet are below */

typedef struct scan {
    const char *at, *end;
    const char *begin, *name, *field; /* for messages */
    bytes text;                       /* of a string with escapes */
    int16_t alphabet[ALPHABET];       /* code point -> byte, or -1 */
    outrider_error *err;
} scan;

/* A string's bytes, in the document or in scan.text. */
typedef struct piece {
    const char *data;
    size_t size;
} piece;

static outrider_status refuse(const scan *s, const char *expected)
{
    int n = 0;
    while (n < 24 && s->at + n < s->end && s->at[n] >= ' ' && s->at[n] < 0x7f) n++;
    if (s->at == s->end)
        return error_set(s->err, OUTRIDER_BAD_FILE, "%s: %s: expected %s, found the end", s->name, s->field, expected);
    return error_set(s->err, OUTRIDER_BAD_FILE, "%s: %s: expected %s, found %.*s at byte %zu of it", s->name, s->field,
                     expected, n, s->at, (size_t)(s->at - s->begin));
}

static void skip_space(scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\r' || *s->at == '\t')) s->at++;
}

/* Takes this character, after white space, or says that it is not there. */
static bool take(scan *s, char c)
{
    skip_space(s);
    if (s->at == s->end || *s->at != c) return false;
    s->at++;
    return true;
}

/* Passes over a string that begins here, without a look at what is in it. False where it doesn't end. */
static bool skip_string(scan *s)
{
    for (s->at++; s->at < s->end; s->at++) {
        if (*s->at == '\\') {
            if (++s->at == s->end) return false;
        } else if (*s->at == '"') {
            s->at++;
            return true;
        }
    }
    return false;
}

/* Passes over one value by counting brackets. What is between them is not checked. */
static bool skip_value(scan *s)
{
    size_t depth = 0;
    skip_space(s);
    const char *begin = s->at;
    while (s->at < s->end) {
        char c = *s->at;
        if (c == '"') {
            if (!skip_string(s)) return false;
            if (!depth) return true;
            continue;
        }
        if (c == ',' || c == '}' || c == ']' || c == ':') {
            if (!depth) return s->at > begin;
            if (c == '}' || c == ']') {
                s->at++;
                if (!--depth) return true;
                continue;
            }
        }
        depth += c == '{' || c == '[';
        s->at++;
    }
    return false;
}

/* Goes through the members of the object that begins here; `visit` stands before each value and passes over it. False
 * where the object is not one. */
static bool each_member(scan *s, bool (*visit)(scan *s, piece key, void *context), void *context)
{
    if (!take(s, '{')) return false;
    if (take(s, '}')) return true;
    do {
        skip_space(s);
        const char *key = s->at;
        if (s->at == s->end || *s->at != '"' || !skip_string(s)) return false;
        piece p = {key + 1, (size_t)(s->at - key) - 2};
        if (!take(s, ':')) return false;
        skip_space(s);
        if (!visit(s, p, context)) return false;
    } while (take(s, ','));
    return take(s, '}');
}

typedef struct cut {
    scan_span *vocab_span, *merges_span;
    bytes *rest;
    const char *copied; /* the document up to here is in `rest` */
    bool no_memory;
} cut;

static bool named(piece key, const char *name) { return key.size == strlen(name) && memcmp(key.data, name, key.size) == 0; }

static bool visit_model(scan *s, piece key, void *context)
{
    cut *c = context;
    scan_span *span = named(key, "vocab") ? c->vocab_span : named(key, "merges") ? c->merges_span : NULL;
    const char *begin = s->at;
    if (!skip_value(s)) return false;
    if (!span) return true;
    *span = (scan_span){begin, s->at};
    c->no_memory |= !bytes_add(c->rest, c->copied, (size_t)(begin - c->copied)) || !bytes_add_text(c->rest, "null");
    c->copied = s->at;
    return true;
}

static bool visit_top(scan *s, piece key, void *context)
{
    if (named(key, "model") && s->at < s->end && *s->at == '{') return each_member(s, visit_model, context);
    return skip_value(s);
}

bool scan_cut(const char *json, size_t size, scan_span *vocab_span, scan_span *merges_span, bytes *rest)
{
    scan s = {.at = json, .end = json + size};
    cut c = {vocab_span, merges_span, rest, json, false};
    *vocab_span = *merges_span = (scan_span){0};
    each_member(&s, visit_top, &c);
    return bytes_add(rest, c.copied, (size_t)(s.end - c.copied)) && !c.no_memory;
}

/* -- Strings ----------------------------------------------------------------------------------------------------- */

static bool four_digits(const char *p, const char *end, uint32_t *value)
{
    if (end - p < 4) return false;
    *value = 0;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        uint32_t digit = c >= '0' && c <= '9'                 ? (uint32_t)(c - '0')
                         : (c | 32) >= 'a' && (c | 32) <= 'f' ? (uint32_t)(c | 32) - 'a' + 10
                                                              : 16;
        if (digit > 15) return false;
        *value = *value << 4 | digit;
    }
    return true;
}

static size_t encode(uint32_t point, char *out)
{
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    size_t n = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; point >>= 6) out[i] = (char)(0x80 | (point & 0x3f));
    out[0] = (char)((0xf00u >> n & 0xf0) | point);
    return n;
}

/* Takes the escape at s->at (on its backslash) and writes its UTF-8; 0 if it is none. */
static size_t take_escape(scan *s, char *out)
{
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    if (s->end - s->at < 2) return 0;
    const char *p = s->at[1] ? strchr(letters, s->at[1]) : NULL;
    if (p) {
        out[0] = meant[p - letters];
        s->at += 2;
        return 1;
    }
    uint32_t point, low;
    if (s->at[1] != 'u' || !four_digits(s->at + 2, s->end, &point)) return 0;
    if (point >= 0xdc00 && point < 0xe000) return 0;
    size_t length = 6;
    if (point >= 0xd800 && point < 0xdc00) {
        if (s->end - s->at < 12 || s->at[6] != '\\' || s->at[7] != 'u' || !four_digits(s->at + 8, s->end, &low)) return 0;
        if (low < 0xdc00 || low > 0xdfff) return 0;
        point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
        length = 12;
    }
    s->at += length;
    return encode(point, out);
}

/* Takes a string, after white space. One without escapes is not copied. */
static outrider_status take_string(scan *s, piece *out)
{
    if (!take(s, '"')) return refuse(s, "a string");
    const char *begin = s->at;
    while (s->at < s->end && *s->at != '"' && *s->at != '\\' && (uint8_t)*s->at >= 0x20) s->at++;
    *out = (piece){begin, (size_t)(s->at - begin)};
    if (s->at < s->end && *s->at == '"') {
        s->at++;
        return OUTRIDER_OK;
    }
    s->text.size = 0;
    if (!bytes_add(&s->text, begin, out->size)) return error_memory(s->err, "a token", out->size);
    while (s->at < s->end && *s->at != '"') {
        char escaped[4];
        size_t n = 1;
        const char *from = s->at;
        if ((uint8_t)*s->at < 0x20) return refuse(s, "no control character in a string");
        if (*s->at == '\\') {
            n = take_escape(s, escaped);
            if (!n) return refuse(s, "an escape of JSON");
            from = escaped;
        } else {
            s->at++;
        }
        if (!bytes_add(&s->text, from, n)) return error_memory(s->err, "a token", s->text.size);
    }
    if (!take(s, '"')) return refuse(s, "the end of a string");
    *out = (piece){s->text.data ? s->text.data : "", s->text.size};
    return OUTRIDER_OK;
}

static outrider_status take_id(scan *s, uint32_t *id)
{
    skip_space(s);
    const char *begin = s->at;
    uint32_t value = 0;
    while (s->at < s->end && *s->at >= '0' && *s->at <= '9' && value < VOCAB_MAX_IDS)
        value = value * 10 + (uint32_t)(*s->at++ - '0');
    bool leading_zero = s->at - begin > 1 && *begin == '0';
    if (s->at == begin || leading_zero || value >= VOCAB_MAX_IDS) {
        s->at = begin;
        return refuse(s, "an id from 0 to 4194303");
    }
    *id = value;
    return OUTRIDER_OK;
}

/* -- The byte alphabet ------------------------------------------------------------------------------------------- */

/* The printable characters of Latin-1 are themselves, the other bytes follow from U+0100 on. */
static void fill_alphabet(int16_t alphabet[ALPHABET])
{
    int next = 0x100;
    memset(alphabet, 0xff, ALPHABET * sizeof *alphabet);
    for (int b = 0; b < 256; b++) {
        bool itself = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        alphabet[itself ? b : next++] = (int16_t)b;
    }
}

/* Appends the bytes that a string in the alphabet stands for; false for one that is not in it. `out` has room for the
 * string. */
static bool from_alphabet(const int16_t alphabet[ALPHABET], piece p, char *out, size_t *size)
{
    size_t n = 0;
    for (size_t i = 0; i < p.size;) {
        uint8_t c = (uint8_t)p.data[i++];
        uint32_t point = c;
        if (c >= 0x80) {
            if (c < 0xc2 || c > 0xc5 || i == p.size || ((uint8_t)p.data[i] & 0xc0) != 0x80) return false;
            point = (uint32_t)(c & 0x1f) << 6 | ((uint8_t)p.data[i++] & 0x3f);
        }
        if (point >= ALPHABET || alphabet[point] < 0) return false;
        out[n++] = (char)alphabet[point];
    }
    *size = n;
    return true;
}

/* -- The members ------------------------------------------------------------------------------------------------- */

static outrider_status add_token(scan *s, piece token, bytes *buffer, vocab *v)
{
    uint32_t id = 0;
    size_t size = token.size;
    if (!size) return refuse(s, "a token that is not empty");
    if (size > VOCAB_MAX_TOKEN) return refuse(s, "a token of at most 1048576 bytes");
    buffer->size = 0;
    if (!bytes_reserve(buffer, size)) return error_memory(s->err, "a token", size);
    bool plain = from_alphabet(s->alphabet, token, buffer->data, &size);
    if (!plain) memcpy(buffer->data, token.data, size);
    if (!take(s, ':')) return refuse(s, "a colon");
    outrider_status status = take_id(s, &id);
    if (status) return status;
    if (vocab_kind(v, id) != TOKEN_NONE) return refuse(s, "another id for each token (the one before this was there already)");
    if (plain && vocab_find(v, buffer->data, size) != UINT32_MAX)
        return refuse(s, "each token once (the one before this was there already)");
    if (!vocab_set(v, id, buffer->data, size, plain ? TOKEN_PLAIN : TOKEN_FOREIGN))
        return error_memory(s->err, "the vocabulary", v->text.size);
    return OUTRIDER_OK;
}

outrider_status scan_vocab(scan_span span, const char *name, vocab *v, outrider_error *err)
{
    scan s = {.at = span.begin, .end = span.end, .begin = span.begin, .name = name, .field = "model.vocab", .err = err};
    fill_alphabet(s.alphabet);
    if (!take(&s, '{')) return refuse(&s, "an object of ids");
    if (take(&s, '}')) return OUTRIDER_OK;
    bytes buffer = {0};
    outrider_status status;
    do {
        piece token;
        status = take_string(&s, &token);
        if (!status) status = add_token(&s, token, &buffer, v);
    } while (!status && take(&s, ','));
    if (!status && (!take(&s, '}') || s.at != s.end)) status = refuse(&s, "a comma or the end of the object");
    bytes_free(&buffer);
    bytes_free(&s.text);
    return status;
}

/* Takes one half of a merge and appends its bytes; in the old notation both halves are in one string. */
static outrider_status take_half(scan *s, piece half, bytes *buffer)
{
    size_t size;
    if (!half.size || half.size > VOCAB_MAX_TOKEN) return refuse(s, "two tokens in each merge");
    if (!bytes_reserve(buffer, half.size)) return error_memory(s->err, "a merge", half.size);
    if (!from_alphabet(s->alphabet, half, buffer->data + buffer->size, &size))
        return refuse(s, "merges in the byte alphabet (the one before this is not)");
    buffer->size += size;
    return OUTRIDER_OK;
}

/* Takes one merge: the bytes of both halves one behind the other in *buffer, the first `*left` of them the left
 * half's. */
static outrider_status take_merge(scan *s, bytes *buffer, size_t *left)
{
    piece p;
    outrider_status status;
    buffer->size = 0;
    if (take(s, '[')) {
        if ((status = take_string(s, &p)) || (status = take_half(s, p, buffer))) return status;
        *left = buffer->size;
        if (!take(s, ',')) return refuse(s, "two tokens in each merge");
        if ((status = take_string(s, &p)) || (status = take_half(s, p, buffer))) return status;
        return take(s, ']') ? OUTRIDER_OK : refuse(s, "two tokens in each merge");
    }
    if ((status = take_string(s, &p))) return status;
    const char *space = memchr(p.data, ' ', p.size);
    if (!space) return refuse(s, "a space in each merge");
    size_t n = (size_t)(space - p.data);
    if ((status = take_half(s, (piece){p.data, n}, buffer))) return status;
    *left = buffer->size;
    return take_half(s, (piece){space + 1, p.size - n - 1}, buffer);
}

outrider_status scan_merges(scan_span span, const char *name, const vocab *v, bpe *b, outrider_error *err)
{
    scan s = {.at = span.begin, .end = span.end, .begin = span.begin, .name = name, .field = "model.merges", .err = err};
    fill_alphabet(s.alphabet);
    if (!take(&s, '[')) return refuse(&s, "an array of merges");
    if (take(&s, ']')) return OUTRIDER_OK;
    bytes buffer = {0};
    outrider_status status;
    uint32_t rank = 0;
    do {
        size_t left = 0;
        status = take_merge(&s, &buffer, &left);
        if (status) break;
        uint32_t l = vocab_find(v, buffer.data, left), r = vocab_find(v, buffer.data + left, buffer.size - left);
        uint32_t both = vocab_find(v, buffer.data, buffer.size);
        if (l == UINT32_MAX || r == UINT32_MAX || both == UINT32_MAX)
            status =
                refuse(&s, "merges of tokens of the vocabulary (of the one before this, a half or the whole is not there)");
        else if (!bpe_add(b, l, r, rank++, both))
            status = error_memory(err, "the merges", b->n_slots * sizeof *b->slots);
    } while (!status && take(&s, ','));
    if (!status && (!take(&s, ']') || s.at != s.end)) status = refuse(&s, "a comma or the end of the array");
    bytes_free(&buffer);
    bytes_free(&s.text);
    return status;
}
