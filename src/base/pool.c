/* One loop at a time is published by raising `epoch`; workers take parts from an atomic counter until none is left and count themselves out.
 * Waiting is a short spin (a forward pass publishes several hundred loops a second, and a wake-up by futex costs more than
 * most of them) and then a condition variable, so that an idle server's workers sleep. */
#include "base/pool.h"

#include <pthread.h>
#include <stdatomic.h>
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
    _Atomic size_t next;
    _Atomic int running;      /* workers that have not finished the current epoch */
    _Atomic unsigned epoch;   /* raised once a loop */
    _Atomic bool quit;

    pthread_mutex_t lock;
    pthread_cond_t wake;      /* epoch was raised */
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

static void take_parts(pool *p, int worker)
{
    for (;;) {
        const size_t begin = atomic_fetch_add_explicit(&p->next, p->grain, memory_order_relaxed);
        if (begin >= p->n) return;
        const size_t end = p->n - begin < p->grain ? p->n : begin + p->grain;
        p->job(p->arg, begin, end, worker);
    }
}

/* Waits until the epoch differs from `seen`: spins first, then parks. */
static unsigned wait_epoch(pool *p, unsigned seen)
{
    const double start = clock_seconds();
    for (int i = 0;; i++) {
        const unsigned now = atomic_load_explicit(&p->epoch, memory_order_acquire);
        if (now != seen) return now;
        relax();
        if (i % 64 == 63 && clock_seconds() - start > SPIN_SECONDS) break;
    }
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->parked, 1);
    unsigned now;
    while ((now = atomic_load(&p->epoch)) == seen) pthread_cond_wait(&p->wake, &p->lock);
    atomic_fetch_sub(&p->parked, 1);
    pthread_mutex_unlock(&p->lock);
    return now;
}

static void raise_epoch(pool *p)
{
    atomic_fetch_add(&p->epoch, 1);
    if (atomic_load(&p->parked) == 0) return;
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

static void *worker_main(void *arg)
{
    worker *w = arg;
    pool *p = w->pool;
    unsigned seen = 0;
    for (;;) {
        seen = wait_epoch(p, seen);
        if (atomic_load(&p->quit)) return NULL;
        take_parts(p, w->index);
        atomic_fetch_sub_explicit(&p->running, 1, memory_order_release);
    }
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
    raise_epoch(p);
    for (int i = 1; i <= p->started; i++) pthread_join(p->workers[i].thread, NULL);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    free(p->workers);
    free(p);
}

int pool_threads(const pool *p) { return p->threads; }

void pool_run(pool *p, size_t n, size_t grain, void (*job)(void *, size_t, size_t, int), void *arg)
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
    atomic_store_explicit(&p->next, 0, memory_order_relaxed);
    atomic_store_explicit(&p->running, p->threads - 1, memory_order_relaxed);
    raise_epoch(p);
    take_parts(p, 0);
    /* The others are inside their last part now, or not awake yet: with more runnable threads than processors a pure spin could keep
     * the very thread that it waits for from running, so it yields after a while. */
    for (int i = 0; atomic_load_explicit(&p->running, memory_order_acquire) != 0; i++) {
        relax();
        if (i >= 4096) sched_yield();
    }
}
