/* The checks of the functions that are no matrix kernels; kernel_checks lists them. */
#ifndef SUPPORT_KERNEL_CHECK_VECTOR_H
#define SUPPORT_KERNEL_CHECK_VECTOR_H

#include "kernel_checks.h"

bool check_rmsnorm(const kernel_table *table, check_depth depth);
bool check_rope(const kernel_table *table, check_depth depth);
bool check_to_half(const kernel_table *table, check_depth depth);
bool check_attend(const kernel_table *table, check_depth depth);
bool check_swiglu(const kernel_table *table, check_depth depth);
bool check_add(const kernel_table *table, check_depth depth);
bool check_argmax(const kernel_table *table, check_depth depth);

#endif
