/* A pool of threads for loops whose parts are independent. Threads split output rows, heads and fixed chunks, never a sum,
 * so the number of threads cannot change a result. */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include "base/error.h"

typedef struct pool pool;

/* `threads` workers in all, the calling thread among them (1..256). */
outrider_status pool_open(pool **out, int threads, outrider_error *err);
void pool_close(pool *p);
int pool_threads(const pool *p);

/* Calls job(arg, begin, end, worker) over [0, n) cut in parts of `grain` (the last may be shorter), each part once, and returns
 * when all are done. worker in 0..threads-1 names the scratch that a part may use. n <= grain runs on the caller at once.
 * Workers spin a little between calls and park when none follows. One pool_run at a time per pool. */
void pool_run(pool *p, size_t n, size_t grain, void (*job)(void *arg, size_t begin, size_t end, int worker), void *arg);

#endif
