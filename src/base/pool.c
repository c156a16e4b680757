/* One loop at a time is published in `ticket`: the number of parts that nobody has claimed yet, below a count of loops. Caller and workers claim
 * parts by lowering it and count finished ones in `done`; the loop is over when all are done. So the caller waits for parts, never for threads: a
 * worker that is not on a processor just now (a busy machine, a CPU quota) costs nothing unless it sleeps in the middle of a part.
 * A claim also keeps the loop alive, which is why a worker may read job and arg after it: they change only when all parts are done.
 *
 * Waiting is a short spin (a forward pass publishes several hundred loops a second, and a wake-up by futex costs more than most of
 * them) and then a condition variable, so that an idle server's workers sleep. */
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* How long a waiting thread spins before it parks: longer than the serial gaps between the loops of one forward pass (tens of
 * microseconds), far shorter than what a person would notice on an idle machine. */
static const double SPIN_SECONDS = 200e-6;

typedef struct worker {
    struct pool *pool;
    pthread_t thread;
    int index;
} worker;

struct pool {
    int threads;
    worker *workers; /* threads - 1 of them; the caller is worker 0 */
    int started;

    void (*job)(void *, size_t, size_t, int);
    void *arg;
    size_t n, grain;
    _Atomic uint64_t ticket; /* loops published << 32 | parts left to claim */
    _Atomic uint32_t done;   /* parts finished */
    _Atomic bool quit;

    pthread_mutex_t lock;
    pthread_cond_t wake; /* parts were published, or quit was set */
    _Atomic int parked;
};

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static inline uint32_t parts_left(uint64_t ticket) { return (uint32_t)ticket; }

/* Claims parts and does them until none is left. */
static void take_parts(pool *p, int worker)
{
    uint64_t ticket = atomic_load_explicit(&p->ticket, memory_order_acquire);
    while (parts_left(ticket)) {
        if (!atomic_compare_exchange_weak_explicit(&p->ticket, &ticket, ticket - 1, memory_order_acq_rel, memory_order_acquire))
            continue;
        const size_t parts = (p->n + p->grain - 1) / p->grain;
        const size_t begin = (parts - parts_left(ticket)) * p->grain;
        const size_t end = p->n - begin < p->grain ? p->n : begin + p->grain;
        p->job(p->arg, begin, end, worker);
        atomic_fetch_add_explicit(&p->done, 1, memory_order_release);
        ticket = atomic_load_explicit(&p->ticket, memory_order_acquire);
    }
}

/* Waits until there are parts to claim, or the end: spins first, then parks. False at the end. */
static bool wait_for_parts(pool *p)
{
    const double start = clock_seconds();
    for (int i = 0;; i++) {
        if (parts_left(atomic_load_explicit(&p->ticket, memory_order_acquire))) return true;
        if (atomic_load_explicit(&p->quit, memory_order_relaxed)) return false;
        relax();
        if (i % 64 == 63 && clock_seconds() - start > SPIN_SECONDS) break;
    }
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->parked, 1);
    while (!parts_left(atomic_load(&p->ticket)) && !atomic_load(&p->quit)) pthread_cond_wait(&p->wake, &p->lock);
    atomic_fetch_sub(&p->parked, 1);
    pthread_mutex_unlock(&p->lock);
    return !atomic_load(&p->quit);
}

static void wake_parked(pool *p)
{
    if (atomic_load(&p->parked) == 0) return;
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

static void *worker_main(void *arg)
{
    worker *w = arg;
    while (wait_for_parts(w->pool)) take_parts(w->pool, w->index);
    return NULL;
}

outrider_status pool_open(pool **out, int threads, outrider_error *err)
{
    ensure(threads >= 1 && threads <= 256);
    pool *p = calloc(1, sizeof *p);
    worker *workers = calloc((size_t)threads, sizeof *workers);
    if (!p || !workers) {
        free(p);
        free(workers);
        return error_memory(err, "threads", (size_t)threads * sizeof *workers);
    }
    p->threads = threads;
    p->workers = workers;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    for (int i = 1; i < threads; i++) {
        workers[i].pool = p;
        workers[i].index = i;
        const int failed = pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]);
        if (failed) {
            pool_close(p);
            return error_set(err, OUTRIDER_FAILURE, "cannot start thread %d of %d: %s", i + 1, threads, strerror(failed));
        }
        p->started++;
    }
    *out = p;
    return OUTRIDER_OK;
}

void pool_close(pool *p)
{
    if (!p) return;
    atomic_store(&p->quit, true);
    wake_parked(p);
    for (int i = 1; i <= p->started; i++) pthread_join(p->workers[i].thread, NULL);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    free(p->workers);
    free(p);
}

int pool_threads(const pool *p) { return p->threads; }

void pool_run(pool *p, size_t n, size_t grain, void (*job)(void *arg, size_t begin, size_t end, int worker), void *arg)
{
    if (n == 0) return;
    if (p->threads == 1 || n <= grain) {
        job(arg, 0, n, 0);
        return;
    }
    p->job = job;
    p->arg = arg;
    p->n = n;
    p->grain = grain ? grain : 1;
    const size_t parts = (n + p->grain - 1) / p->grain;
    ensure(parts <= UINT32_MAX);
    atomic_store_explicit(&p->done, 0, memory_order_relaxed);
    const uint64_t loops = (atomic_load_explicit(&p->ticket, memory_order_relaxed) >> 32) + 1;
    atomic_store(&p->ticket, loops << 32 | parts);
    wake_parked(p);
    take_parts(p, 0);
    /* What is left is in other threads' hands. With more runnable threads than processors a pure spin could keep the very thread
     * that it waits for from running, so it yields after a while. */
    for (int i = 0; atomic_load_explicit(&p->done, memory_order_acquire) != parts; i++) {
        relax();
        if (i >= 1024) sched_yield();
    }
}
