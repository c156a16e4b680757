/* SHA-256 (FIPS 180-4), from libcrypto. */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

typedef struct digest digest;

digest *digest_open(void); /* NULL when memory ran out */
void digest_reset(digest *d);
void digest_add(digest *d, const void *data, size_t size);
/* The digest of all that was added so far, as 64 hex digits and a zero; more may be added afterwards. */
void digest_hex(const digest *d, char hex[65]);
void digest_close(digest *d);

/* Of one buffer. */
void digest_of(const void *data, size_t size, char hex[65]);

#endif
