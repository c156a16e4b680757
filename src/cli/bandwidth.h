/* How fast this machine reads memory with all threads: the limit that plain decoding runs into. */
#ifndef CLI_BANDWIDTH_H
#define CLI_BANDWIDTH_H

#include "outrider.h"

typedef struct bandwidth bandwidth;

/* A buffer far larger than the caches (512 MB, or a quarter of the memory that is there if that is less), written once by the
 * threads that will read it. */
outrider_status bandwidth_open(bandwidth **out, int threads, outrider_error *err);
void bandwidth_close(bandwidth *b);

/* Reads the buffer once from end to end; GB/s (1e9 bytes). */
double bandwidth_measure(bandwidth *b);

#endif
