/* Opening models: the options that several commands share, and what -v says. */
#ifndef CLI_LOAD_H
#define CLI_LOAD_H

#include "cli/options.h"
#include "outrider.h"

/* First member of the settings of every command that uses the tables below. */
typedef struct model_settings {
    const char *draft, *tokenizer, *chat_template, *cpu_mask;
    const char *source; /* a draft model or the word ngram; stands for `draft` in the commands that draft */
    bool no_draft, ngram, verbose;
    uint32_t context;
    int64_t threads;
    uint64_t memory;
} model_settings;

extern const option load_model_options[];   /* -c, -t, --cpu-mask, --memory */
extern const option load_verbose_options[]; /* -v */
extern const option load_draft_options[];   /* --draft, --no-draft */
extern const option load_source_options[];  /* the same and --ngram, for commands that draft: --draft knows the word ngram */
extern const option load_text_options[];    /* --tokenizer, --chat-template */

/* Opens a model with a progress bar; no_tokenizer: token ids are all that is needed. Returns the exit code, having reported the
 * mistake. */
int load_model(const char *path, const model_settings *settings, bool no_tokenizer, outrider_model **model);

/* The plan for the same, of a run with a tokenizer; nothing is loaded. Exit code as above. */
int load_plan(const char *path, const model_settings *settings, outrider_memory_plan *plan);

bool load_has_draft(const outrider_model *model);

/* Where the proposals of these settings come from. */
outrider_draft_kind load_draft_kind(const model_settings *settings);

/* Whether drafting with these settings has anything to draft with. */
bool load_can_draft(const model_settings *settings, const outrider_model *model);

/* The path of the embedded pair: models/demo here, or beside the executable. NULL when it is nowhere. Static storage. */
const char *load_demo_path(void);

#endif
