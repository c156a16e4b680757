/* What the engine's files share: the loaded model and the session behind outrider.h's opaque types. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/digest.h"
#include "decode/draft_both.h"
#include "decode/draft_model.h"
#include "decode/step.h"
#include "file/folder.h"
#include "forward/forward.h"
#include "outrider.h"
#include "text/chat.h"
#include "text/decoder.h"
#include "text/stop.h"
#include "text/tokenizer.h"

/* Rows of one forward pass at most: as many prompt rows as keep their activations in the second-level cache at the 8B's width. */
enum { PASS_ROWS = 64 };

/* One of the two models, loaded. */
typedef struct engine_part {
    bool present;
    char *path; /* owned */
    weights weights;
    forward *pass;
} engine_part;

struct outrider_model {
    kernel_table kernels;
    pool *threads;
    pthread_mutex_t lock; /* held during a forward pass: scratch and pool serve one at a time */
    engine_part parts[2]; /* by outrider_part */
    uint32_t context;
    length_costs costs; /* measured when the first session that drafts is opened */
    bool calibrated;
    forward_head draft_head; /* the part of the draft's head that proposals come from (docs/PERFORMANCE.md) */
    size_t shared_vocab;     /* ids below it exist in verifier and draft */

    tokenizer *tokenizer; /* NULL when opened without */
    chat_template *chat;  /* NULL when there is none; then chat_problem says why */
    outrider_error chat_problem;
    uint32_t *ends; /* end ids of the verifier; owned */
    size_t n_ends;

    double load_seconds, tokenizer_seconds;
    atomic_int sessions;
};

/* One model's timeline in a session: a KV cache and the logits of its last pass. Implements decode's lane. */
typedef struct engine_lane {
    outrider_model *model;
    outrider_part part;
    kv_cache kv;
    float *logits; /* [max_logits][vocab] */
    size_t max_logits, n_logits;
    size_t pick_vocab;        /* ids below it may be picked */
    const forward_head *head; /* the part of the head that is computed and picked from; NULL: all */
    size_t logits_bytes;
} engine_lane;

outrider_status engine_lane_open(engine_lane *l, outrider_model *model, outrider_part part, size_t context, size_t max_logits,
                                 outrider_error *err);
void engine_lane_close(engine_lane *l);
lane engine_lane_interface(engine_lane *l);

struct outrider_session {
    outrider_model *model;
    outrider_role role;
    size_t context;
    uint32_t *history; /* [context] */
    size_t n;
    engine_lane verifier; /* the draft model's own timeline in the role DRAFT */
    bool drafts;          /* whether `source` is there */
    engine_lane draft;    /* open when its model is not NULL */
    draft_model draft_state;
    ngram lookup; /* open when its memory is not NULL */
    draft_both both;
    draft_source source;
    length_controller length;           /* the dynamic one, which learns over all answers of the session */
    size_t eval_rows;                   /* rows with logits of the last eval; 0 after anything else */
    digest *ids_digest, *logits_digest; /* NULL unless asked for */
    atomic_bool cancel;
};

/* The memory plan (plan.c) for the containers files[0] and, unless NULL, files[1]; text_dir NULL: no tokenizer. Chooses the context. */
outrider_status engine_plan(outrider_memory_plan *plan, const char *const files[2], const char *text_dir,
                            const outrider_model_options *o, const kernel_table *table, pool *threads, outrider_error *err);

/* Text parts (text.c). Files beside the container, or in the tokenizer folder. */
outrider_status engine_text_open(outrider_model *m, const char *dir, const char *chat_template, outrider_error *err);
void engine_text_close(outrider_model *m);

/* OUTRIDER_USAGE unless the model has a tokenizer. */
outrider_status engine_need_text(const outrider_model *m, outrider_error *err);

/* Measures what passes cost here, once: the length controller starts from it. */
void engine_calibrate(outrider_model *m);

/* Cuts history and caches back to n ids. */
void engine_session_cut(outrider_session *s, size_t n);

#endif
