/* Any bytes as a tokenizer.json: refused with a message, or loaded, and then texts go through and come back. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_round_trip(const tokenizer *t, const char *text, size_t size, bool specials)
{
    ids list = {0};
    bytes back = {0};
    outrider_error err = {0};
    outrider_status s = tokenizer_encode(t, text, size, specials, &list, &err);
    ensure(s == OUTRIDER_OK || (s == OUTRIDER_FAILURE && list.size == 0)); /* a pattern may run into its limits */
    for (size_t i = 0; i < list.size; i++) {
        size_t n;
        const char *token = tokenizer_bytes(t, list.data[i], &n);
        ensure(n && token[n] == 0 && list.data[i] < tokenizer_size(t));
        bytes_add(&back, token, n);
    }
    if (!s) ensure(back.size == size && memcmp(back.data, text, size) == 0);
    bytes_free(&back);
    ids_free(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] =
        "Hello  world, don't <|im_end|> 2026\r\n\n \xff\xe6\xad caf\xc3\xa9 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    tokenizer *t = NULL;
    outrider_error err = {0};
    outrider_status s = tokenizer_open_memory(&t, (const char *)data, size, "fuzz", &err);
    if (s) {
        ensure(err.status == s && strncmp(err.message, "fuzz: ", 6) == 0 && !t);
        return 0;
    }
    check_round_trip(t, text, sizeof text - 1, false);
    check_round_trip(t, text, sizeof text - 1, true);
    ensure(tokenizer_same(t, t, &err) == OUTRIDER_OK);
    tokenizer_close(t);
    return 0;
}
