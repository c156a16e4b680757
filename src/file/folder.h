/* From the path a person gave to the files of a model or a pair. */
#ifndef FILE_FOLDER_H
#define FILE_FOLDER_H

#include "base/error.h"

typedef struct model_paths {
    char *model; /* owned: the container, the pair's big one */
    char *draft; /* owned: the pair's small one, or NULL when the path names one model only */
    char *dir;   /* owned: the folder of `model`, where tokenizer and chat files stand; no slash at its end but for "/" */
} model_paths;

/* A container file names itself. A folder with verifier.trtc and draft.trtc is a pair; a folder with exactly one *.trtc
 * is that model. A folder with several others is a usage error that lists them; a folder with none, or a path that is
 * missing, is OUTRIDER_USAGE too; what cannot be read is OUTRIDER_FAILURE. What a file holds is not looked at. */
outrider_status folder_resolve(const char *path, model_paths *out, outrider_error *err);

void model_paths_free(model_paths *paths); /* leaves a zeroed one; a zeroed one is allowed */

#endif
