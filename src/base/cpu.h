/* What the processor can do, and the mask that a user may lay over it. */
#ifndef BASE_CPU_H
#define BASE_CPU_H

#include "base/error.h"

/* Instruction sets that kernels are written for. REF is plain C and always there. */
typedef enum cpu_isa { CPU_REF, CPU_AVX2, CPU_AVX512, CPU_NEON, CPU_DOTPROD, CPU_ISAS } cpu_isa;

const char *cpu_isa_name(cpu_isa isa); /* "ref", "avx2", "avx512", "neon", "dotprod" */

/* Whether this processor (and its operating system) runs that set. AVX2 means AVX2 + FMA + F16C; AVX512 means F, BW, VL, VBMI,
 * VNNI on top of that. */
bool cpu_has(cpu_isa isa);

/* The best set this processor runs; `name` ("auto" or NULL: no limit) names the highest one allowed, as --cpu-mask does.
 * An unknown name, or one this processor lacks, is a usage error. */
outrider_status cpu_choose(const char *name, cpu_isa *isa, outrider_error *err);

/* Processors this process may use: affinity mask and cgroup quota (v1 and v2), rounded up, at least 1. */
int cpu_available(void);

/* The part of cpu_available that reads files: processors that the cgroup quota allows, rounded up, INT_MAX when there is none.
 * `cgroup_root` is where cgroups are mounted, `proc_self_cgroup` the file that names this process's groups. */
int cpu_quota(const char *cgroup_root, const char *proc_self_cgroup);

#endif
