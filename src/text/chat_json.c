#include "text/chat_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 17 }; /* enough for every double */

/* Digits and decimal exponent of a number in exponent form ("-d.ddde-dd" with the locale's point). */
static int read_digits(const char *text, char digits[DIGITS + 1])
{
    size_t n = 0;
    const char *c = text;
    for (; *c && *c != 'e'; c++)
        if (*c >= '0' && *c <= '9' && n < DIGITS) digits[n++] = *c;
    digits[n] = 0;
    return *c ? atoi(c + 1) : 0;
}

/* Adds one to the last digit of a number in exponent form; false when that would need another digit in front. */
static bool raise_last_digit(char *text)
{
    for (char *c = strchr(text, 'e'); c-- > text;) {
        if (*c < '0' || *c > '9') continue;
        if (*c < '9') {
            ++*c;
            return true;
        }
        *c = '0';
    }
    return false;
}

/* The shortest digits that read back as `value`; returns the exponent of the first one. At a power of two the numbers above lie twice as
 * far apart as those below, so that the next digits up may read back where the nearest do not. */
static int shortest_digits(double value, char digits[DIGITS + 1])
{
    char text[64];
    for (int n = 0; n < DIGITS; n++) {
        snprintf(text, sizeof text, "%.*e", n, value);
        if (strtod(text, NULL) == value) break;
        if (raise_last_digit(text) && strtod(text, NULL) == value) break;
    }
    const int exponent = read_digits(text, digits);
    size_t last = strlen(digits);
    while (last > 1 && digits[last - 1] == '0') digits[--last] = 0;
    return exponent;
}

bool chat_json_real(double value, bytes *out)
{
    if (isnan(value)) return bytes_add_text(out, "NaN");
    if (isinf(value)) return bytes_add_text(out, value < 0 ? "-Infinity" : "Infinity");
    if (signbit(value) && !bytes_add_text(out, "-")) return false;
    char digits[DIGITS + 1];
    const int exponent = shortest_digits(fabs(value), digits), n = (int)strlen(digits);
    if (exponent < -4 || exponent >= 16)
        return bytes_add(out, digits, 1) && (n == 1 || (bytes_add_text(out, ".") && bytes_add_text(out, digits + 1))) &&
               bytes_add_format(out, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
    if (exponent < 0) return bytes_add_format(out, "0.%.*s%s", -exponent - 1, "000", digits);
    if (n <= exponent + 1) return bytes_add_format(out, "%s%.*s.0", digits, exponent + 1 - n, "000000000000000");
    return bytes_add_format(out, "%.*s.%s", exponent + 1, digits, digits + exponent + 1);
}

static bool dump_string(const char *text, size_t size, bytes *out)
{
    static const char names[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    bool ok = bytes_add_text(out, "\"");
    size_t plain = 0; /* begin of what needs no escape */
    for (size_t i = 0; i < size && ok; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != '"' && c != '\\') continue;
        ok = bytes_add(out, text + plain, i - plain);
        plain = i + 1;
        const char *name = NULL;
        for (size_t k = 0; names[k] && !name; k += 2)
            if ((unsigned char)names[k] == c) name = &names[k + 1];
        if (ok) ok = name ? bytes_add_format(out, "\\%c", *name) : bytes_add_format(out, "\\u%04x", c);
    }
    return ok && bytes_add(out, text + plain, size - plain) && bytes_add_text(out, "\"");
}

static bool dump_array(const json_t *array, bytes *out)
{
    bool ok = bytes_add_text(out, "[");
    for (size_t i = 0; i < json_array_size(array) && ok; i++)
        ok = (!i || bytes_add_text(out, ", ")) && chat_json_dump(json_array_get(array, i), out);
    return ok && bytes_add_text(out, "]");
}

static bool dump_object(const json_t *object, bytes *out)
{
    json_t *walked = (json_t *)object; /* jansson's iterators are not const; nothing is changed */
    bool ok = bytes_add_text(out, "{");
    const void *first = json_object_iter(walked);
    for (void *at = json_object_iter(walked); at && ok; at = json_object_iter_next(walked, at)) {
        const char *key = json_object_iter_key(at);
        ok = (at == first || bytes_add_text(out, ", ")) && dump_string(key, strlen(key), out) && bytes_add_text(out, ": ") &&
             chat_json_dump(json_object_iter_value(at), out);
    }
    return ok && bytes_add_text(out, "}");
}

bool chat_json_dump(const json_t *value, bytes *out)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: return dump_object(value, out);
    case JSON_ARRAY: return dump_array(value, out);
    case JSON_STRING: return dump_string(json_string_value(value), json_string_length(value), out);
    case JSON_INTEGER: return bytes_add_format(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    case JSON_REAL: return chat_json_real(json_real_value(value), out);
    case JSON_TRUE: return bytes_add_text(out, "true");
    case JSON_FALSE: return bytes_add_text(out, "false");
    case JSON_NULL: break;
    }
    return bytes_add_text(out, "null");
}
