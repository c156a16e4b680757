/* Calls a fuzz target once for each file that the arguments name, folders taken with all files in them, and once with nothing. */
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int inputs;

static void replay_file(const char *path, size_t size)
{
    /* Exactly as large as the input, so that a read past its end is seen under AddressSanitizer. */
    uint8_t *data = malloc(size ? size : 1);
    FILE *f = fopen(path, "rb");
    if (!data || !f || fread(data, 1, size, f) != size) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(1);
    }
    fclose(f);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    inputs++;
}

static void replay(const char *path)
{
    struct stat info;
    if (stat(path, &info)) return;
    if (!S_ISDIR(info.st_mode)) {
        replay_file(path, (size_t)info.st_size);
        return;
    }
    DIR *dir = opendir(path);
    if (!dir) return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        char below[PATH_MAX];
        if (entry->d_name[0] == '.') continue;
        if (snprintf(below, sizeof below, "%s/%s", path, entry->d_name) < (int)sizeof below) replay(below);
    }
    closedir(dir);
}

int main(int argc, char **argv)
{
    uint8_t none[1] = {0};
    LLVMFuzzerTestOneInput(none, 0);
    for (int i = 1; i < argc; i++) replay(argv[i]);
    printf("%d inputs\n", inputs);
    return 0;
}
