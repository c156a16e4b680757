#include "cli/bandwidth.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/pool.h"

enum { BLOCK = 1 << 20, WORKERS = 256, LINE = 64 };

/* What every processor this runs on loads at once. Eight sums keep enough loads in flight to occupy the memory. */
typedef uint64_t vector __attribute__((vector_size(16)));

/* What a worker has added up, on a cache line of its own. */
typedef struct sum {
    _Alignas(LINE) uint64_t value;
} sum;

struct bandwidth {
    pool *pool;
    char *data;
    size_t blocks;
    sum sums[WORKERS];
    volatile uint64_t result; /* keeps the sums alive */
};

static size_t choose_blocks(void)
{
    const uint64_t wanted = UINT64_C(512) << 20;
    long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t quarter = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / 4 : wanted;
    uint64_t size = quarter < wanted ? quarter : wanted;
    return size < BLOCK ? 1 : (size_t)(size / BLOCK);
}

static void fill(void *arg, size_t begin, size_t end, int worker)
{
    bandwidth *b = arg;
    (void)worker;
    memset(b->data + begin * BLOCK, 0x5a, (end - begin) * BLOCK);
}

static void read_blocks(void *arg, size_t begin, size_t end, int worker)
{
    bandwidth *b = arg;
    const vector *at = (const vector *)(b->data + begin * BLOCK), *stop = (const vector *)(b->data + end * BLOCK);
    vector s0 = {0}, s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
    for (; at < stop; at += 8) {
        s0 += at[0];
        s1 += at[1];
        s2 += at[2];
        s3 += at[3];
        s4 += at[4];
        s5 += at[5];
        s6 += at[6];
        s7 += at[7];
    }
    s0 += s1 + s2 + s3 + s4 + s5 + s6 + s7;
    b->sums[worker].value += s0[0] + s0[1];
}

outrider_status bandwidth_open(bandwidth **out, int threads, outrider_error *err)
{
    bandwidth *b = aligned_alloc(LINE, sizeof *b);
    if (!b) return error_memory(err, "measuring the bandwidth", sizeof *b);
    memset(b, 0, sizeof *b);
    b->blocks = choose_blocks();
    b->data = aligned_alloc(4096, b->blocks * BLOCK);
    outrider_status status = b->data ? pool_open(&b->pool, threads < WORKERS ? threads : WORKERS, err)
                                     : error_memory(err, "measuring the bandwidth", b->blocks * BLOCK);
    if (status) {
        free(b->data);
        free(b);
        return status;
    }
    pool_run(b->pool, b->blocks, 1, fill, b);
    *out = b;
    return OUTRIDER_OK;
}

void bandwidth_close(bandwidth *b)
{
    if (!b) return;
    pool_close(b->pool);
    free(b->data);
    free(b);
}

double bandwidth_measure(bandwidth *b)
{
    double start = clock_seconds();
    pool_run(b->pool, b->blocks, 4, read_blocks, b);
    double seconds = clock_seconds() - start;
    uint64_t all = 0;
    for (int i = 0; i < WORKERS; i++) all += b->sums[i].value;
    b->result = all;
    return (double)b->blocks * BLOCK / seconds / 1e9;
}
