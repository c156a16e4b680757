/* What the files of the x86 kernels share among themselves. */
#ifndef KERNELS_X86_H
#define KERNELS_X86_H

#include "kernels/kernels.h"

/* The AVX2 kernels that are not matrix kernels (avx2_vector.c, avx2_attend.c); AVX-512 machines use them too. */
void avx2_fill_vectors(kernel_table *table);
void avx2_attend(const attention *a);

#endif
