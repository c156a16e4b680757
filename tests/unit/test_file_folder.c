/* file/folder.h: which files a path stands for. */
#include "file/folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "support_trtc.h"

static char folder[] = BINARY_DIR "/folder_XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[4][sizeof folder + 64];
    static int next;
    next = (next + 1) % 4;
    snprintf(path[next], sizeof path[next], "%s/%s", folder, name);
    return path[next];
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(folder);
}

static void put(const char *name) { toy_save(in_folder(name), "x", 1); }
static void drop(const char *name) { assert_int_equal(unlink(in_folder(name)), 0); }

static void expect_paths(const char *path, const char *model, const char *draft, const char *dir)
{
    outrider_error err = {0};
    model_paths p;
    outrider_status s = folder_resolve(path, &p, &err);
    if (s) fail_msg("%s", err.message);
    assert_string_equal(p.model, model);
    assert_true(!p.draft == !draft);
    if (draft) assert_string_equal(p.draft, draft);
    assert_string_equal(p.dir, dir);
    model_paths_free(&p);
    model_paths_free(&p);
}

static void expect_refused(const char *path, const char *const *words)
{
    outrider_error err = {0};
    model_paths p = {NULL, NULL, NULL};
    assert_int_equal(folder_resolve(path, &p, &err), OUTRIDER_USAGE);
    for (; *words; words++) {
        if (!strstr(err.message, *words)) fail_msg("\"%s\" is missing in: %s", *words, err.message);
    }
    assert_true(!p.model && !p.draft && !p.dir);
}

#define REFUSED(path, ...) expect_refused((path), (const char *const[]){__VA_ARGS__, NULL})

static void test_folder_of_a_pair(void **state)
{
    (void)state;
    put("verifier.trtc");
    put("draft.trtc");
    expect_paths(folder, in_folder("verifier.trtc"), in_folder("draft.trtc"), folder);
    expect_paths(in_folder("//"), in_folder("verifier.trtc"), in_folder("draft.trtc"), folder);
    put("third.trtc"); /* changes nothing */
    expect_paths(folder, in_folder("verifier.trtc"), in_folder("draft.trtc"), folder);
    expect_paths(in_folder("draft.trtc"), in_folder("draft.trtc"), NULL, folder);
    drop("third.trtc");
    drop("draft.trtc");
    expect_paths(folder, in_folder("verifier.trtc"), NULL, folder);
    drop("verifier.trtc");
}

static void test_folder_of_one_model(void **state)
{
    (void)state;
    put("some-model.trtc");
    put("tokenizer.json");
    put(".hidden.trtc");
    put("other.trtc.part");
    assert_int_equal(mkdir(in_folder("a.trtc"), 0700), 0);
    expect_paths(folder, in_folder("some-model.trtc"), NULL, folder);
    assert_int_equal(rmdir(in_folder("a.trtc")), 0);
    drop("other.trtc.part");
    drop(".hidden.trtc");
    drop("tokenizer.json");
    drop("some-model.trtc");
}

static void test_folder_of_a_link(void **state)
{
    (void)state;
    put("store");
    assert_int_equal(symlink("store", in_folder("model.trtc")), 0);
    expect_paths(folder, in_folder("model.trtc"), NULL, folder);
    drop("store"); /* a link that leads nowhere is no model */
    REFUSED(folder, folder, "holds no *.trtc file");
    drop("model.trtc");
}

static void test_folder_of_several_lists_them(void **state)
{
    (void)state;
    put("b.trtc");
    put("a.trtc");
    REFUSED(folder, folder, "holds 2 models", "(a.trtc, b.trtc)");
    put("draft.trtc");
    REFUSED(folder, "holds 3 models", "(a.trtc, b.trtc, draft.trtc)", "verifier.trtc");
    char name[16];
    for (int i = 10; i < 30; i++) {
        snprintf(name, sizeof name, "c%d.trtc", i);
        put(name);
    }
    REFUSED(folder, "holds 23 models", "a.trtc, b.trtc, c10.trtc, ", ", ...)");
    for (int i = 10; i < 30; i++) {
        snprintf(name, sizeof name, "c%d.trtc", i);
        drop(name);
    }
    drop("draft.trtc");
    drop("a.trtc");
    drop("b.trtc");
}

static void test_folder_missing_or_empty(void **state)
{
    (void)state;
    REFUSED(folder, folder, "holds no *.trtc file");
    REFUSED(in_folder("nothing"), in_folder("nothing"), "no such file or folder");
    put("file");
    REFUSED(in_folder("file/model.trtc"), "no such file or folder");
    REFUSED("", "no such file or folder");
    drop("file");
}

static void test_folder_of_a_relative_file(void **state)
{
    (void)state;
    char before[1024];
    assert_non_null(getcwd(before, sizeof before));
    put("m.trtc");
    assert_int_equal(chdir(folder), 0);
    expect_paths("m.trtc", "m.trtc", NULL, ".");
    expect_paths("./m.trtc", "./m.trtc", NULL, ".");
    expect_paths(".//m.trtc", ".//m.trtc", NULL, ".");
    expect_paths(".", "./m.trtc", NULL, ".");
    assert_int_equal(chdir(before), 0);
    drop("m.trtc");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folder_of_a_pair),        cmocka_unit_test(test_folder_of_one_model),
        cmocka_unit_test(test_folder_of_a_link),        cmocka_unit_test(test_folder_of_several_lists_them),
        cmocka_unit_test(test_folder_missing_or_empty), cmocka_unit_test(test_folder_of_a_relative_file),
    };
    return cmocka_run_group_tests_name("file_folder", tests, set_up, tear_down);
}
