/* Small helpers of the tests: the instruction sets this processor has, and calls of the library that must succeed. */
#ifndef TESTS_SUPPORT_CHECK_H
#define TESTS_SUPPORT_CHECK_H

#include <stddef.h>

#include "outrider.h"

/* Names for outrider_model_options.cpu_mask of the sets that this processor runs, "ref" first; *n of them. */
const char *const *check_masks(size_t *n);

/* Fails the test with the error's line unless status is OUTRIDER_OK. */
void check_ok(outrider_status status, const outrider_error *err);

outrider_model *check_open(const char *path, const char *draft, bool text, const char *mask, int threads);
outrider_session *check_session(outrider_model *model, outrider_role role, bool digests);

/* SHA-256 of a logits row of the last eval, 64 hex digits. */
void check_row_digest(const outrider_session *session, size_t row, size_t vocab, char hex[65]);

#endif
