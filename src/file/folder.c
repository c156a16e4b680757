#include "file/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"

#define PAIR_MODEL "verifier.trtc"
#define PAIR_DRAFT "draft.trtc"

void model_paths_free(model_paths *paths)
{
    free(paths->model);
    free(paths->draft);
    free(paths->dir);
    *paths = (model_paths){0};
}

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* "dir/name", owned by the caller; NULL when memory ran out. */
static char *join(const char *dir, const char *name)
{
    char *path = NULL;
    const char *slash = dir[0] && dir[strlen(dir) - 1] == '/' ? "" : "/";
    return asprintf(&path, "%s%s%s", dir, slash, name) < 0 ? NULL : path;
}

/* The folder of a file: what stands before the last slash, "." when there is none, "/" for the root. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash) return strdup(".");
    while (slash > path && slash[-1] == '/') slash--;
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

/* The folder's path without slashes at its end. */
static char *trimmed(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    return strndup(path, n);
}

static bool is_container(const char *name)
{
    size_t n = strlen(name);
    return n > 5 && name[0] != '.' && strcmp(name + n - 5, ".trtc") == 0;
}

static int compare_names(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

static int keep_containers(const struct dirent *entry) { return is_container(entry->d_name); }

/* Names of the containers in dir, sorted and joined by ", " (cut after ten), and how many there are. The first one's
 * path goes to *only. Things that are no regular files do not count. */
static outrider_status list_containers(const char *dir, bytes *names, int *count, char **only, outrider_error *err)
{
    struct dirent **entries = NULL;
    int n = scandir(dir, &entries, keep_containers, compare_names);
    if (n < 0) return error_set(err, OUTRIDER_FAILURE, "%s: cannot be read: %s", dir, strerror(errno));
    bool ok = true;
    *count = 0;
    for (int i = 0; i < n; i++) {
        char *path = ok ? join(dir, entries[i]->d_name) : NULL;
        ok = ok && path;
        if (ok && is_file(path)) {
            ++*count;
            if (*count <= 10) ok = bytes_add_format(names, "%s%s", *count > 1 ? ", " : "", entries[i]->d_name);
            if (*count == 11) ok = bytes_add_text(names, ", ...");
            if (*count == 1) {
                *only = path;
                path = NULL;
            }
        }
        free(path);
        free(entries[i]);
    }
    free(entries);
    return ok ? OUTRIDER_OK : error_memory(err, "a folder's names", 4096);
}

/* The one container of a folder that is not a pair. */
static outrider_status resolve_single(const char *dir, char **model, outrider_error *err)
{
    bytes names = {0};
    int count = 0;
    char *only = NULL;
    outrider_status s = list_containers(dir, &names, &count, &only, err);
    if (!s && count == 0)
        s = error_set(err, OUTRIDER_USAGE, "%s: holds no *.trtc file", dir);
    else if (!s && count > 1)
        s = error_set(err, OUTRIDER_USAGE,
                      "%s: holds %d models (%s); name one of them, or call a pair's files " PAIR_MODEL " and " PAIR_DRAFT, dir,
                      count, names.data);
    if (s)
        free(only);
    else
        *model = only;
    bytes_free(&names);
    return s;
}

/* A folder: a pair when both of a pair's names are there, else its single container. `found` is filled as far as it
 * gets. */
static outrider_status resolve_folder(const char *path, model_paths *found, outrider_error *err)
{
    found->dir = trimmed(path);
    char *model = found->dir ? join(found->dir, PAIR_MODEL) : NULL;
    char *draft = found->dir ? join(found->dir, PAIR_DRAFT) : NULL;
    if (!model || !draft) {
        free(model);
        free(draft);
        return error_memory(err, "a path", strlen(path) + sizeof PAIR_MODEL);
    }
    if (is_file(model) && is_file(draft)) {
        found->model = model;
        found->draft = draft;
        return OUTRIDER_OK;
    }
    free(model);
    free(draft);
    return resolve_single(found->dir, &found->model, err);
}

outrider_status folder_resolve(const char *path, model_paths *out, outrider_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        if (errno == ENOENT || errno == ENOTDIR)
            return error_set(err, OUTRIDER_USAGE, "%s: there is no such file or folder", path);
        return error_set(err, OUTRIDER_FAILURE, "%s: cannot be read: %s", path, strerror(errno));
    }
    model_paths found = {0};
    outrider_status s = OUTRIDER_OK;
    if (S_ISDIR(st.st_mode)) {
        s = resolve_folder(path, &found, err);
    } else {
        found.model = strdup(path);
        found.dir = folder_of(path);
        if (!found.model || !found.dir) s = error_memory(err, "a path", strlen(path) + 1);
    }
    if (s)
        model_paths_free(&found);
    else
        *out = found;
    return s;
}
