/* Outrider: a pair of language models in one process. The small one drafts, the big one checks, and what leaves is
 * the big model's own stream, bit for bit. This header is the whole public interface and its manual.
 *
 * -- The calling loop (complete program: tests/e2e/example.c, which the tests compile as C11 and as C++) ------------
 *
 *     outrider_error err;
 *     outrider_model *model;
 *     outrider_session *session;
 *     outrider_model_options mo = OUTRIDER_MODEL_OPTIONS_INIT;
 *     mo.draft_path = NULL;                                     // a folder with both files brings its own draft
 *     if (outrider_model_open("models/demo", &mo, &model, &err)) return fail(&err);
 *     if (outrider_session_open(model, NULL, &session, &err)) return fail(&err);
 *     outrider_message msg = {"user", "What is the capital of France?"};
 *     if (outrider_session_push_chat(session, &msg, 1, 0, &err)) return fail(&err);
 *     outrider_generate_options go = OUTRIDER_GENERATE_OPTIONS_INIT;
 *     go.max_tokens = 64;
 *     outrider_result result;
 *     if (outrider_session_generate(session, &go, on_text, stdout, &result, &err)) return fail(&err);
 *     outrider_session_close(session);
 *     outrider_model_close(model);
 *
 * -- Rules that hold for every function ------------------------------------------------------------------------------
 *  - Result: OUTRIDER_OK (0), or another outrider_status; then `err` (which may be NULL) holds one line for a person
 *    and no out-parameter was written.
 *  - Ownership: what an `_open` function returns belongs to the caller, who ends it with `_close` (NULL is allowed).
 *    A buffer that a function hands out for keeps is freed with outrider_free. Everything passed in is
 *    only read, and only during the call, unless said otherwise.
 *  - Threads: a model may be used from several threads; a session from one at a time, except
 *    outrider_session_cancel, which any thread and any signal handler may call. Forward passes of one model run one
 *    after another; they wait for each other inside.
 *  - Not promised: the order of fields may grow at the end of the option and result structs (use the _INIT macros);
 *    timings; the wording of messages.
 */
#ifndef OUTRIDER_H
#define OUTRIDER_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define OUTRIDER_API __attribute__((visibility("default")))
#else
#define OUTRIDER_API
#endif

#define OUTRIDER_VERSION "0.1.0"

/* Status of a call; the same numbers are the command's exit codes. */
typedef enum outrider_status {
    OUTRIDER_OK = 0,
    OUTRIDER_FAILURE = 1,   /* the world failed: a file could not be read, a value became NaN */
    OUTRIDER_USAGE = 2,     /* the caller asked for something that cannot be */
    OUTRIDER_DIVERGED = 3,  /* a drafted stream differed from the plain one */
    OUTRIDER_BAD_FILE = 4,  /* a model or another file is not what it should be */
    OUTRIDER_NO_MEMORY = 5, /* memory, or a budget for it, is not enough */
    OUTRIDER_CANCELLED = 6  /* outrider_session_cancel was called, or a callback asked to stop */
} outrider_status;

typedef struct outrider_error {
    outrider_status status;
    char message[480]; /* one line, UTF-8, no newline; names file, field, expected and found where they apply */
} outrider_error;

/* The library's version, "major.minor.patch". Static storage. */
OUTRIDER_API const char *outrider_version(void);

/* Frees what the library allocated for the caller. NULL is allowed. */
OUTRIDER_API void outrider_free(void *p);

/* -- Models ------------------------------------------------------------------------------------------------------- */

/* A loaded verifier, its tokenizer, and a draft model if there is one. */
typedef struct outrider_model outrider_model;

/* Called now and then during long work, from the thread that asked for it: `what` names the work ("packing verifier"), done and total
 * are bytes. */
typedef void (*outrider_progress)(void *user, const char *what, uint64_t done, uint64_t total);

typedef struct outrider_model_options {
    const char *draft_path;    /* container or folder of the draft; NULL: the pair folder's own, if model is one */
    bool no_draft;             /* leave a pair folder's draft unloaded */
    const char *tokenizer_dir; /* folder of tokenizer.json and the chat files; NULL: beside the container */
    bool no_tokenizer;         /* token ids only: no text files are looked for */
    const char *chat_template; /* NULL: the one in tokenizer_config.json; "chatml": plain ChatML */
    const char *cpu_mask;      /* highest instruction set to use: "ref", "avx2", "avx512", "neon", "dotprod"; NULL: the best */
    int threads;               /* 0: as many as this process may use */
    uint32_t context;          /* tokens a session may hold; 0: 4,096 or the model's own limit if that is less;
                                  OUTRIDER_CONTEXT_AUTO: as many as memory_bytes leaves room for */
    uint64_t memory_bytes;     /* refuse to load when the memory plan comes to more; 0: no limit */
    outrider_progress progress;
    void *progress_user;
} outrider_model_options;

#define OUTRIDER_CONTEXT_AUTO 0xffffffffu

#define OUTRIDER_MODEL_OPTIONS_INIT {NULL, false, NULL, false, NULL, NULL, 0, 0, 0, NULL, NULL}

/* Loads and packs what `path` names: a TRTC v4 container, a folder that holds one, or a folder with verifier.trtc and draft.trtc (a pair).
 * options may be NULL. The files are not needed any more once this returned, except that an untied input embedding stays mapped. */
OUTRIDER_API outrider_status outrider_model_open(const char *path, const outrider_model_options *options,
                                                 outrider_model **model, outrider_error *err);

/* All sessions of the model must be closed. */
OUTRIDER_API void outrider_model_close(outrider_model *model);

typedef enum outrider_part { OUTRIDER_VERIFIER = 0, OUTRIDER_DRAFT = 1 } outrider_part;

typedef struct outrider_model_info {
    const char *path;   /* owned by the model */
    const char *family; /* "qwen3", "qwen2" */
    uint32_t layers, hidden, heads, kv_heads, head_dim, intermediate, vocab, max_positions;
    bool tied;
    uint64_t file_bytes;
    uint64_t weight_bytes;       /* resident, packed */
    uint64_t step_bytes;         /* weight bytes that one forward pass must touch; of a draft: when drafting (draft_head) */
    uint64_t kv_bytes_per_token; /* of one session */
    uint64_t scratch_bytes;
    uint64_t split_rows;         /* five-value rows carried as two (docs/EXACTNESS.md, rule 4) */
} outrider_model_info;

/* OUTRIDER_USAGE when there is no such part. */
OUTRIDER_API outrider_status outrider_model_get_info(const outrider_model *model, outrider_part part,
                                                     outrider_model_info *info, outrider_error *err);

typedef struct outrider_runtime_info {
    const char *cpu; /* instruction set in use */
    int threads;
    uint32_t context;       /* tokens a session may hold */
    double load_seconds;    /* reading, checking, packing */
    double tokenizer_seconds;
} outrider_runtime_info;

OUTRIDER_API void outrider_model_get_runtime(const outrider_model *model, outrider_runtime_info *info);

/* What running a model with these options and one session takes, in bytes; each is an upper bound, and their sum bounds the resident
 * memory of the process. Indices are outrider_part. */
typedef struct outrider_memory_plan {
    uint64_t weights[2]; /* packed weights, scales and norms */
    uint64_t kv[2];      /* KV cache of one session, full */
    uint64_t scratch[2]; /* of forward passes, logits included */
    uint64_t text;       /* tokenizer and chat template */
    uint64_t process;    /* program, libraries, stacks, and what loading takes for a while */
    uint64_t total;
    uint32_t context;    /* tokens that the session may hold */
} outrider_memory_plan;

/* The plan for outrider_model_open(path, options): the same checks, but nothing is packed. When options->memory_bytes is set and not enough, the
 * status is OUTRIDER_NO_MEMORY with the sum and its parts in the message. */
OUTRIDER_API outrider_status outrider_model_plan(const char *path, const outrider_model_options *options,
                                                 outrider_memory_plan *plan, outrider_error *err);

/* What `outrider inspect` prints of a container: a text table, or JSON. *text is freed with outrider_free. When a MANIFEST.json beside the file
 * disagrees with it the status is OUTRIDER_BAD_FILE, and *text, which shows both sides, is written all the same; after any other failure *text
 * is NULL. */
OUTRIDER_API outrider_status outrider_inspect(const char *path, bool json, outrider_progress progress, void *user,
                                              char **text, outrider_error *err);

/* -- Text --------------------------------------------------------------------------------------------------------- */

enum {
    OUTRIDER_SPECIALS = 1,        /* tokenize: special tokens written in the text are matched, not spelled out */
    OUTRIDER_NO_GENERATION_PROMPT = 2, /* chat: do not open the assistant's turn */
    OUTRIDER_NO_THINKING = 4      /* chat: enable_thinking = false, for templates that know it */
};

/* Ids of a text of `size` bytes (any bytes; they round-trip). *ids is freed with outrider_free. */
OUTRIDER_API outrider_status outrider_tokenize(const outrider_model *model, const char *text, size_t size, unsigned flags,
                                               uint32_t **ids, size_t *n, outrider_error *err);

/* The raw bytes of ids, zero-terminated, freed with outrider_free. Special tokens are left out unless OUTRIDER_SPECIALS;
 * padding ids have no bytes; an id outside the vocabulary is OUTRIDER_USAGE. */
OUTRIDER_API outrider_status outrider_detokenize(const outrider_model *model, const uint32_t *ids, size_t n, unsigned flags,
                                                 char **text, size_t *size, outrider_error *err);

typedef struct outrider_message {
    const char *role;    /* "system", "user", "assistant", "tool" */
    const char *content; /* UTF-8; special tokens inside stay plain text */
} outrider_message;

/* The prompt that the model's chat template makes. messages_json and tools_json (may be NULL) are JSON arrays of the OpenAI chat shape. *text is
 * freed with outrider_free. */
OUTRIDER_API outrider_status outrider_chat_render(const outrider_model *model, const char *messages_json,
                                                  const char *tools_json, unsigned flags, char **text, outrider_error *err);

/* -- Sessions ----------------------------------------------------------------------------------------------------- */

/* One timeline of tokens over a model: its history and its KV caches. */
typedef struct outrider_session outrider_session;

typedef enum outrider_role {
    OUTRIDER_ROLE_PAIR = 0,   /* draft and verify; plain when the model has no draft */
    OUTRIDER_ROLE_PLAIN = 1,  /* the verifier alone */
    OUTRIDER_ROLE_DRAFT = 2   /* the draft alone, as a model of its own */
} outrider_role;

/* Where the proposals of a session in the role PAIR come from. */
typedef enum outrider_draft_kind {
    OUTRIDER_DRAFT_KIND_MODEL = 0, /* the draft model; none when the model has no draft */
    OUTRIDER_DRAFT_KIND_NGRAM = 1, /* lookup of n-grams in the session's own text: no second model needed; good for edits and quotes */
    OUTRIDER_DRAFT_KIND_BOTH = 2   /* lookups where they do well, else the draft model (NGRAM when the model has no draft) */
} outrider_draft_kind;

typedef struct outrider_session_options {
    outrider_role role;
    uint32_t context; /* tokens this session may hold; 0: the model's; not more than that */
    bool digests;     /* keep SHA-256 digests of emitted ids and of the logits rows they came from */
    outrider_draft_kind draft_kind;
    bool draft_head; /* role DRAFT: only the part of the head that proposals come from, so that a step costs what drafting costs */
} outrider_session_options;

#define OUTRIDER_SESSION_OPTIONS_INIT {OUTRIDER_ROLE_PAIR, 0, false, OUTRIDER_DRAFT_KIND_MODEL, false}

/* options may be NULL. */
OUTRIDER_API outrider_status outrider_session_open(outrider_model *model, const outrider_session_options *options,
                                                   outrider_session **session, outrider_error *err);
OUTRIDER_API void outrider_session_close(outrider_session *session);

/* Append to the history; nothing is computed yet. An id outside the vocabulary, or more than the context holds, is
 * refused (OUTRIDER_USAGE, both counts named) and nothing is appended. */
OUTRIDER_API outrider_status outrider_session_push_tokens(outrider_session *session, const uint32_t *ids, size_t n,
                                                          outrider_error *err);
OUTRIDER_API outrider_status outrider_session_push_text(outrider_session *session, const char *text, size_t size,
                                                        unsigned flags, outrider_error *err);
OUTRIDER_API outrider_status outrider_session_push_chat(outrider_session *session, const outrider_message *messages,
                                                        size_t n, unsigned flags, outrider_error *err);
OUTRIDER_API outrider_status outrider_session_push_chat_json(outrider_session *session, const char *messages_json,
                                                             const char *tools_json, unsigned flags, outrider_error *err);

/* The history: pushed and emitted tokens. Valid until the next call on the session. */
OUTRIDER_API const uint32_t *outrider_session_tokens(const outrider_session *session, size_t *n);

/* Cuts the history to its first n tokens (n <= its length); what was computed for them stays. */
OUTRIDER_API outrider_status outrider_session_truncate(outrider_session *session, size_t n, outrider_error *err);

enum { OUTRIDER_MAX_DRAFT = 16, OUTRIDER_MAX_ROWS = 17 };

enum { OUTRIDER_DRAFT_DYNAMIC = -1, OUTRIDER_DRAFT_RANDOM = -2 };

/* Text as it becomes final: whole UTF-8 characters, no part of a stop string. `ids` are the tokens that became final since the last call (0 or
 * more; a token's text may come later). Return false to stop: the result then says CANCELLED. */
typedef bool (*outrider_on_text)(void *user, const char *text, size_t size, const uint32_t *ids, size_t n_ids);

typedef struct outrider_generate_options {
    uint32_t max_tokens;      /* 0: as many as the context holds */
    const char *const *stop;  /* stop strings, up to 16, none empty */
    size_t n_stop;
    bool ignore_end;          /* go on past end ids */
    int draft_length;         /* OUTRIDER_DRAFT_DYNAMIC, OUTRIDER_DRAFT_RANDOM, or a fixed number of proposals 0..16 */
    uint32_t draft_max;       /* upper limit of a dynamic or random length, 0..16 */
    uint64_t draft_seed;      /* for OUTRIDER_DRAFT_RANDOM */
    uint32_t prefill_rows;    /* prompt rows a forward pass; 0: the model's own choice */
} outrider_generate_options;

#define OUTRIDER_GENERATE_OPTIONS_INIT {0, NULL, 0, false, OUTRIDER_DRAFT_DYNAMIC, OUTRIDER_MAX_DRAFT, 0, 0}

typedef enum outrider_finish {
    OUTRIDER_FINISH_END,      /* an end id of the verifier */
    OUTRIDER_FINISH_STOP,     /* a stop string */
    OUTRIDER_FINISH_LENGTH,   /* max_tokens */
    OUTRIDER_FINISH_CONTEXT,  /* the context is full */
    OUTRIDER_FINISH_CANCELLED
} outrider_finish;

typedef struct outrider_result {
    outrider_finish finish;
    int stop_index;         /* which stop string, or -1 */
    uint64_t prompt_tokens; /* computed in this call */
    uint64_t tokens;        /* emitted, an end id included */
    uint64_t proposed, accepted; /* draft tokens verified, and accepted */
    uint64_t verifies;      /* forward passes of the verifier after the prompt */
    uint64_t drafted_steps; /* forward passes of the draft model after the prompt */
    uint64_t length_switches; /* how often the draft length changed between 0 and more */
    uint64_t proposed_at[OUTRIDER_MAX_DRAFT], accepted_at[OUTRIDER_MAX_DRAFT]; /* by position in the draft */
    uint64_t widths[OUTRIDER_MAX_ROWS + 1];  /* verifies by number of rows */
    double prefill_seconds, decode_seconds; /* decode: after the prompt, all included */
    double draft_seconds, verify_seconds;   /* of decode_seconds, in the forward passes of draft and verifier */
} outrider_result;

/* Computes the history's last token if need be and emits tokens until something ends the answer; they are appended to the history (what is cut by a
 * stop string too: the history holds whole tokens, the text ends at the cut). The emitted tokens are the verifier's greedy choice, whatever the draft
 * does. on_text and result may be NULL. OUTRIDER_OK for every finish but a failure; then the history is as far as it was emitted. */
OUTRIDER_API outrider_status outrider_session_generate(outrider_session *session, const outrider_generate_options *options,
                                                       outrider_on_text on_text, void *user, outrider_result *result,
                                                       outrider_error *err);

/* Ends a running generate after at most one more forward pass; a later generate is not affected. Safe from any thread and from a signal handler. */
OUTRIDER_API void outrider_session_cancel(outrider_session *session);

/* Appends n (1..OUTRIDER_MAX_ROWS) ids to the history and computes them in one forward pass with logits for each: a verify of
 * n rows. Anything pushed before is computed first. */
OUTRIDER_API outrider_status outrider_session_eval(outrider_session *session, const uint32_t *ids, size_t n,
                                                   outrider_error *err);

/* Logits of row `row` of the last eval: `vocab` values (info.vocab); valid until the next call on the session; NULL when
 * there is no such row. */
OUTRIDER_API const float *outrider_session_logits(const outrider_session *session, size_t row);

/* The id of the largest logit of a row, lowest id among equals. OUTRIDER_FAILURE when a logit is not finite. */
OUTRIDER_API outrider_status outrider_session_argmax(const outrider_session *session, size_t row, uint32_t *id,
                                                     outrider_error *err);

/* Digests over all that generate emitted so far (hex, zero-terminated): ids as little-endian u32; logits rows as little-endian
 * f32, in order. OUTRIDER_USAGE unless the session was opened with digests. */
OUTRIDER_API outrider_status outrider_session_digests(const outrider_session *session, char ids_hex[65],
                                                      char logits_hex[65], outrider_error *err);

#ifdef __cplusplus
}
#endif

#endif
