#include "kernels/kernels.h"

#include "base/error.h"

void kernels_fill(kernel_table *table, cpu_isa isa)
{
    ensure(cpu_has(isa));
    kernels_ref(table);
#if defined(__x86_64__)
    if (isa >= CPU_AVX2) kernels_avx2(table);
    if (isa >= CPU_AVX512) kernels_avx512(table);
#elif defined(__aarch64__)
    if (isa >= CPU_NEON) kernels_neon(table);
    if (isa >= CPU_DOTPROD) kernels_dotprod(table);
#endif
    table->isa = isa;
}

static size_t padded(size_t n) { return (n + 63) / 64 * 64; }

size_t activations_bytes(size_t rows, size_t cols)
{
    const size_t blocks = (cols + SUPERBLOCK - 1) / SUPERBLOCK * rows;
    return padded(blocks * SUPERBLOCK) + padded(blocks * GROUPS * sizeof(float)) + padded(blocks * 8 * sizeof(int16_t));
}

void activations_place(activations *a, size_t rows, size_t cols, void *buffer)
{
    a->rows = rows;
    a->superblocks = (cols + SUPERBLOCK - 1) / SUPERBLOCK;
    const size_t blocks = a->superblocks * rows;
    uint8_t *at = buffer;
    a->q = (int8_t *)at;
    at += padded(blocks * SUPERBLOCK);
    a->d = (float *)at;
    at += padded(blocks * GROUPS * sizeof(float));
    a->sums = (int16_t *)at;
}
