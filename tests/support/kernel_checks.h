/* Comparisons of a kernel table with the plain C, bit for bit, on random and extreme data, every odd size and guard
 * pages. They need no test framework, so that they also run where none is installed. */
#ifndef SUPPORT_KERNEL_CHECKS_H
#define SUPPORT_KERNEL_CHECKS_H

#include "kernels/kernels.h"

/* How much a check does: BRIEF leaves out the widest matrices and the longest contexts in all but a few cases (for
 * emulated and planted runs). */
typedef enum check_depth { CHECK_BRIEF, CHECK_FULL } check_depth;

typedef struct kernel_check {
    const char *name; /* the function of the table that it is about */
    bool (*run)(const kernel_table *table, check_depth depth);
} kernel_check;

extern const kernel_check kernel_checks[];
extern const size_t kernel_check_count;

/* The check stops at its first difference and, unless quiet, prints it to stderr. */
extern bool kernel_check_quiet;

/* Compares a table with the values of tools/oracle.py in the file that tests/kernels/make_vectors.py wrote. */
bool kernel_check_vectors(const kernel_table *table, const char *path);

/* A copy of `table` whose function `name` goes wrong: every few calls it flips one bit of what it wrote. One planted
 * table at a time. */
void kernel_plant(kernel_table *planted, const kernel_table *table, const char *name);

/* Prints ns and cycles a tile superblock and GB/s of the matrix kernels. */
void kernel_bench(const kernel_table *table);

/* -- Shared by the files of the checks ----------------------------------------------------------------------------- */

/* Prints (unless quiet) and returns false. */
bool check_failed(const kernel_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Index of the first value that differs in its bits, n when none does. Two NaN count as equal: their payloads are no
 * part of the contract. */
size_t first_difference(const float *a, const float *b, size_t n);

/* A generator with a fixed start, one stream a check. */
typedef struct rng {
    uint64_t state;
} rng;
uint32_t rng_next(rng *r);
int rng_int(rng *r, int low, int high); /* both included */
float rng_unit(rng *r);                 /* [0, 1) */
float rng_bell(rng *r);                 /* roughly normal, never beyond +-6 */

/* Kinds of float vectors. */
typedef enum fill {
    FILL_BELL,
    FILL_ZERO,
    FILL_NEGATIVE_ZERO,
    FILL_DENORMAL,
    FILL_HUGE,
    FILL_BELOW_LIMIT,
    FILL_ABOVE_LIMIT,
    FILL_EQUAL,
    FILL_ALTERNATING,
    FILL_SPREAD,
    FILL_HALVES,
    FILLS
} fill;
void fill_floats(float *x, size_t n, fill kind, rng *r);

/* A five-value matrix before it is packed: planes with rubbish in the unused bits of each row's last byte. */
typedef struct five_source {
    size_t rows, cols, plane_bytes;
    uint8_t *planes; /* [rows][3][plane_bytes]: bp, bn, br */
    int16_t *levels; /* [rows][2] */
    float *scale;    /* [rows] */
} five_source;

typedef enum five_kind {
    FIVE_RANDOM,
    FIVE_ALL_HIGH,
    FIVE_ALL_LOW,
    FIVE_ALL_MINUS_HIGH,
    FIVE_ALTERNATING,
    FIVE_ZERO,
    FIVE_KINDS
} five_kind;

void five_source_make(five_source *s, size_t rows, size_t cols, five_kind kind, rng *r);
void five_source_free(five_source *s);

/* Packs for a table. `place` gives the memory of codes (aligned to 64), levels and scale: number 0, 1, 2. */
void five_source_pack(const five_source *s, const kernel_table *table, five_matrix *m,
                      void *(*place)(int number, size_t size, size_t align));

/* Bytes of memory on the heap, zeroed; ends the process when there is none. Aligned to 64. */
void *check_alloc(size_t size);

#endif
