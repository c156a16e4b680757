#include "base/cpu.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

static const char *const isa_names[CPU_ISAS] = {"ref", "avx2", "avx512", "neon", "dotprod"};

const char *cpu_isa_name(cpu_isa isa)
{
    ensure(isa >= 0 && isa < CPU_ISAS);
    return isa_names[isa];
}

#if defined(__x86_64__)

/* Clang before 15 does not know the name "f16c", so that bit is asked for directly (leaf 1, ECX bit 29). That the operating system
 * saves the wide registers is part of what "avx2" means. */
static bool x86_has_f16c(void)
{
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx >> 29 & 1);
}

static bool x86_has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") && x86_has_f16c();
}

static bool x86_has_avx512(void)
{
    return x86_has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni");
}

bool cpu_has(cpu_isa isa)
{
    __builtin_cpu_init();
    switch (isa) {
    case CPU_REF: return true;
    case CPU_AVX2: return x86_has_avx2();
    case CPU_AVX512: return x86_has_avx512();
    default: return false;
    }
}

#elif defined(__aarch64__)

/* Bits of AT_HWCAP, as the kernel's asm/hwcap.h numbers them. */
enum { HWCAP_ARM_ASIMD = 1 << 1, HWCAP_ARM_FPHP = 1 << 9, HWCAP_ARM_ASIMDHP = 1 << 10, HWCAP_ARM_ASIMDDP = 1 << 20 };

bool cpu_has(cpu_isa isa)
{
    unsigned long caps = getauxval(AT_HWCAP);
    /* The dotprod kernels are compiled for the half-precision instructions too. */
    unsigned long dotprod = HWCAP_ARM_ASIMD | HWCAP_ARM_FPHP | HWCAP_ARM_ASIMDHP | HWCAP_ARM_ASIMDDP;
    switch (isa) {
    case CPU_REF: return true;
    case CPU_NEON: return (caps & HWCAP_ARM_ASIMD) != 0;
    case CPU_DOTPROD: return (caps & dotprod) == dotprod;
    default: return false;
    }
}

#else

bool cpu_has(cpu_isa isa) { return isa == CPU_REF; }

#endif

outrider_status cpu_choose(const char *name, cpu_isa *isa, outrider_error *err)
{
    int highest = CPU_ISAS - 1;
    if (name && strcmp(name, "auto")) {
        for (highest = CPU_ISAS - 1; highest >= 0; highest--)
            if (!strcmp(name, isa_names[highest])) break;
        if (highest < 0)
            return error_set(err, OUTRIDER_USAGE, "unknown instruction set \"%s\" (auto, ref, avx2, avx512, neon, dotprod)",
                             name);
        if (!cpu_has((cpu_isa)highest))
            return error_set(err, OUTRIDER_USAGE, "this processor does not run the instruction set \"%s\"", name);
    }
    /* The order of the enum is the order of preference: the sets of one architecture ascend. */
    while (!cpu_has((cpu_isa)highest)) highest--;
    *isa = (cpu_isa)highest;
    return OUTRIDER_OK;
}

/* -- cgroup quota ---------------------------------------------------------------------------------------------------- */

/* Processors, rounded up, that `quota_us` of run time in each `period_us` stand for. */
static int quota_cpus(long long quota_us, long long period_us)
{
    if (quota_us <= 0 || period_us <= 0) return INT_MAX;
    long long n = quota_us / period_us + (quota_us % period_us != 0);
    return n > INT_MAX ? INT_MAX : (int)n;
}

/* First line of DIR/NAME in `line`, without the newline; false when it cannot be read. */
static bool read_line(const char *dir, const char *name, char *line, size_t size)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path) return false;
    FILE *f = fopen(path, "r");
    if (!f) return false;
    bool ok = fgets(line, (int)size, f) != NULL;
    fclose(f);
    if (ok) line[strcspn(line, "\n")] = 0;
    return ok;
}

/* What one group's own files say: v2 `cpu.max` is "QUOTA PERIOD" or "max PERIOD", v1 has one number a file, -1 for no limit. */
static int group_quota(const char *dir)
{
    char line[128], *end;
    if (read_line(dir, "cpu.max", line, sizeof line)) {
        long long quota = strtoll(line, &end, 10);
        if (end == line || *end != ' ') return INT_MAX;
        return quota_cpus(quota, strtoll(end, NULL, 10));
    }
    if (!read_line(dir, "cpu.cfs_quota_us", line, sizeof line)) return INT_MAX;
    long long quota = strtoll(line, NULL, 10);
    if (!read_line(dir, "cpu.cfs_period_us", line, sizeof line)) return INT_MAX;
    return quota_cpus(quota, strtoll(line, NULL, 10));
}

/* Smallest quota of the group MOUNT/GROUP and of all groups above it, down to the mount itself. A group that is not visible
 * below the mount (a container sees its own group as the root) counts as unlimited; the groups above it are still asked. */
static int tree_quota(const char *mount, const char *group)
{
    char dir[PATH_MAX];
    int n = snprintf(dir, sizeof dir, "%s%s", mount, group);
    if (n < 0 || n >= (int)sizeof dir) return INT_MAX;
    size_t root = strlen(mount);
    int least = INT_MAX;
    for (;;) {
        int own = group_quota(dir);
        if (own < least) least = own;
        char *slash = strrchr(dir + root, '/');
        if (!slash) return least;
        *slash = 0;
    }
}

/* Whether the comma-separated list of v1 controllers names "cpu". */
static bool names_cpu(const char *list)
{
    for (const char *c = list; c; c = strchr(c, ',')) {
        if (*c == ',') c++;
        size_t n = strcspn(c, ",");
        if (n == 3 && !memcmp(c, "cpu", 3)) return true;
    }
    return false;
}

/* Lines of /proc/self/cgroup are ID:CONTROLLERS:PATH; the v2 line has id 0 and no controllers. v2 is mounted at the root or, on
 * hybrid systems, at ROOT/unified; the v1 controller under its list of names or as ROOT/cpu. */
int cpu_quota(const char *cgroup_root, const char *proc_self_cgroup)
{
    FILE *f = fopen(proc_self_cgroup, "r");
    if (!f) return INT_MAX;
    int least = INT_MAX;
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, f) > 0) {
        line[strcspn(line, "\n")] = 0;
        char *list = strchr(line, ':');
        char *group = list ? strchr(list + 1, ':') : NULL;
        if (!group) continue;
        *list++ = 0;
        *group++ = 0;
        if (!strcmp(group, "/")) group = "";
        const char *mounts[2] = {list, "cpu"};
        if (!*list) {
            mounts[0] = "";
            mounts[1] = "unified";
        } else if (!names_cpu(list)) {
            continue;
        }
        for (int i = 0; i < 2; i++) {
            char mount[PATH_MAX];
            int n = snprintf(mount, sizeof mount, "%s%s%s", cgroup_root, *mounts[i] ? "/" : "", mounts[i]);
            if (n < 0 || n >= (int)sizeof mount) continue;
            int own = tree_quota(mount, group);
            if (own < least) least = own;
        }
    }
    free(line);
    fclose(f);
    return least;
}

/* Processors in the affinity mask. The mask's size grows until the kernel accepts it. */
static int affinity_count(void)
{
    for (int bits = 1024; bits <= 1 << 20; bits *= 2) {
        cpu_set_t *set = CPU_ALLOC(bits);
        if (!set) break;
        int n = sched_getaffinity(0, CPU_ALLOC_SIZE(bits), set) == 0 ? CPU_COUNT_S(CPU_ALLOC_SIZE(bits), set) : 0;
        CPU_FREE(set);
        if (n > 0) return n;
    }
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 && n < INT_MAX ? (int)n : 1;
}

int cpu_available(void)
{
    int affinity = affinity_count();
    int quota = cpu_quota("/sys/fs/cgroup", "/proc/self/cgroup");
    int n = quota < affinity ? quota : affinity;
    return n < 1 ? 1 : n;
}
