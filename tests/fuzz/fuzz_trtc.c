/* Any bytes as a TRTC container: refused with a message, or opened with every pointer inside the bytes and every plane
 * readable. */
#include <stdlib.h>
#include <string.h>

#include "file/trtc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile float sink_float;
static volatile int sink_byte;

/* Touches the first and last byte of what a tensor says it has. */
static void touch(const tensor *t)
{
    size_t rows = (size_t)t->rows, plane = rows * t->row_stride;
    ensure(t->rows >= 1 && t->cols >= 1 && t->name[0]);
    if (t->f32) sink_float = trtc_f32(t->f32, 0) + trtc_f32(t->f32, (size_t)t->cols - 1);
    if (t->bp) sink_byte = t->bp[0] + t->bn[0] + t->br[0] + t->bp[plane - 1] + t->bn[plane - 1] + t->br[plane - 1];
    if (t->s_lo) sink_float = trtc_f32(t->s_lo, rows - 1) + trtc_f32(t->s_hi, rows - 1);
    if (t->bias) sink_float = trtc_f32(t->bias, rows - 1);
    if (t->weights) sink_byte = t->weights[0] + t->weights[plane - 1];
    if (t->scale) sink_float = trtc_f32(t->scale, rows - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trtc_file f;
    outrider_error err = {0};
    outrider_status s = trtc_open_memory(&f, data, size, "fuzz", &err);
    if (s) {
        ensure(err.status == s && strncmp(err.message, "fuzz: ", 6) == 0 && !f.tensors);
        return 0;
    }
    size_t at = 60;
    for (size_t i = 0; i < f.n_tensors; at += f.tensors[i++].file_bytes) {
        ensure(f.tensors[i].file_offset == at);
        ensure(trtc_find(&f, f.tensors[i].name) == &f.tensors[i]);
        touch(&f.tensors[i]);
    }
    ensure(at == size);
    s = trtc_check_all(&f, &err);
    ensure(s == OUTRIDER_OK || s == OUTRIDER_BAD_FILE);
    trtc_close(&f);
    return 0;
}
