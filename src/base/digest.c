#include "base/digest.h"

#include <openssl/evp.h>
#include <stdlib.h>

#include "base/error.h"

struct digest {
    EVP_MD_CTX *running, *copy;
};

digest *digest_open(void)
{
    digest *d = calloc(1, sizeof *d);
    if (!d) return NULL;
    d->running = EVP_MD_CTX_new();
    d->copy = EVP_MD_CTX_new();
    if (!d->running || !d->copy) {
        digest_close(d);
        return NULL;
    }
    digest_reset(d);
    return d;
}

void digest_reset(digest *d) { ensure(EVP_DigestInit_ex(d->running, EVP_sha256(), NULL) == 1); }

void digest_add(digest *d, const void *data, size_t size) { ensure(EVP_DigestUpdate(d->running, data, size) == 1); }

static void hex_of(const unsigned char *raw, char hex[65])
{
    for (int i = 0; i < 32; i++) {
        hex[2 * i] = "0123456789abcdef"[raw[i] >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[raw[i] & 15];
    }
    hex[64] = 0;
}

void digest_hex(const digest *d, char hex[65])
{
    unsigned char raw[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    ensure(EVP_MD_CTX_copy_ex(d->copy, d->running) == 1);
    ensure(EVP_DigestFinal_ex(d->copy, raw, &n) == 1 && n == 32);
    hex_of(raw, hex);
}

void digest_close(digest *d)
{
    if (!d) return;
    EVP_MD_CTX_free(d->running);
    EVP_MD_CTX_free(d->copy);
    free(d);
}

void digest_of(const void *data, size_t size, char hex[65])
{
    unsigned char raw[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    ensure(EVP_Digest(data, size, raw, &n, EVP_sha256(), NULL) == 1 && n == 32);
    hex_of(raw, hex);
}
