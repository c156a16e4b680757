/* The tokenizer for the Python tests: text_tool encode|encode-plain TOKENIZER.JSON. Input: records of a u32 length and
 * that many bytes of text. Output, for each: u32 count and that many u32 ids. encode-plain spells special tokens out.
 * All numbers are little endian. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "text/tokenizer.h"

static int fail(const char *what)
{
    fprintf(stderr, "text_tool: %s\n", what);
    return 1;
}

int main(int argc, char **argv)
{
    outrider_error err = {0};
    tokenizer *t = NULL;
    bytes text = {0};
    ids out = {0};
    uint32_t size;
    if (argc != 3 || (strcmp(argv[1], "encode") && strcmp(argv[1], "encode-plain")))
        return fail("usage: text_tool encode|encode-plain TOKENIZER.JSON");
    bool specials = strcmp(argv[1], "encode") == 0;
    if (tokenizer_open(&t, argv[2], &err)) return fail(err.message);
    while (fread(&size, 4, 1, stdin) == 1) {
        text.size = 0;
        out.size = 0;
        if (!bytes_reserve(&text, size)) return fail("not enough memory");
        if (fread(text.data, 1, size, stdin) != size) return fail("a record ends too early");
        if (tokenizer_encode(t, text.data, size, specials, &out, &err)) return fail(err.message);
        uint32_t n = (uint32_t)out.size;
        fwrite(&n, 4, 1, stdout);
        fwrite(out.data, 4, n, stdout);
    }
    bytes_free(&text);
    ids_free(&out);
    tokenizer_close(t);
    return ferror(stdin) || fflush(stdout) ? fail("input or output failed") : 0;
}
