"""The command on real models: the embedded pair, against golden.json, and the toy containers, against tools/oracle.py."""
import csv, hashlib, json, os, re, shutil, signal, struct, subprocess, sys, xml.etree.ElementTree
import pytest
from cli_support import SOURCE, error_line, on_terminal, run, start

BIN = os.environ.get("OUTRIDER_BIN")
DATA = os.environ.get("OUTRIDER_TESTDATA", "")
pytestmark = pytest.mark.skipif(not BIN, reason="OUTRIDER_BIN is not set")
DEMO = "models/demo"
GOLDEN = json.load(open(os.path.join(SOURCE, DEMO, "golden.json"), encoding="utf-8"))
STORY = next(g for g in GOLDEN if g["class"] == "prose")


def golden(word):
    return next(g for g in GOLDEN if word in g["prompt"])


def outrider(*args, **more):
    return run(BIN, *args, **more)


def shown(text):
    """What `run` prints of an answer."""
    return (text if text.endswith("\n") or not text else text + "\n").encode()


# -- run --

@pytest.mark.parametrize("number", range(len(GOLDEN)))
def test_golden_answers(number):
    """Text, ids and prompt ids of each prompt, drafted and plain."""
    g = GOLDEN[number]
    drafted = outrider("run", DEMO, "-p", g["prompt"], "-n", "64")
    assert drafted.returncode == 0 and drafted.stdout == shown(g["text"])
    assert re.fullmatch(rb"prompt %d tokens, [\d.,]+ tokens/s; answer %d tokens, [\d.,]+ tokens/s; [^\n]*\n"
                        % (len(g["prompt_ids"]), len(g["greedy_ids"])), drafted.stderr), drafted.stderr
    plain = json.loads(outrider("run", DEMO, "-p", g["prompt"], "-n", "64", "--no-draft", "--json").stdout)
    assert plain["ids"] == g["greedy_ids"] and plain["text"] == g["text"]
    assert plain["finish"] == ("length" if len(g["greedy_ids"]) == 64 else "end")
    assert plain["prompt_tokens"] == len(g["prompt_ids"]) and plain["draft"]["proposed"] == 0
    ids = outrider("tokenize", DEMO, "--chat", "-p", g["prompt"]).stdout.decode()
    assert [int(i) for i in ids.split(",")] == g["prompt_ids"]


@pytest.mark.parametrize("length", ("0", "1", "5", "16", "random", "auto"))
def test_draft_lengths(length):
    g = golden("alphabet")
    found = json.loads(outrider("run", DEMO, "-p", g["prompt"], "-n", "64", "--draft-length", length, "--json").stdout)
    assert found["ids"] == g["greedy_ids"] and found["text"] == g["text"]
    draft = found["draft"]
    if length.isdigit():
        assert (draft["proposed"] > 0) == (length != "0")
        assert all(p["position"] <= int(length) for p in draft["by_position"])
    assert sum(p["proposed"] for p in draft["by_position"]) == draft["proposed"]
    assert sum(p["accepted"] for p in draft["by_position"]) == draft["accepted"]
    assert sum(w["verifies"] for w in draft["widths"]) == draft["verifies"]


def test_draft_max():
    found = json.loads(outrider("run", DEMO, "-p", STORY["prompt"], "-n", "64", "--draft-length", "random", "--draft-max", "3",
                                "--json").stdout)
    assert found["ids"] == STORY["greedy_ids"] and len(found["draft"]["by_position"]) == 3


@pytest.mark.parametrize("stop", ("9", " 1", "7, 8", "10, 11, 12", ", "))
def test_stop(stop):
    g = golden("Count from 1 to 40")
    cut = g["text"][:g["text"].index(stop)]
    assert outrider("run", DEMO, "-p", g["prompt"], "-n", "64", "--stop", stop).stdout == shown(cut)
    found = json.loads(outrider("run", DEMO, "-p", g["prompt"], "-n", "64", "--stop", "never", "--stop", stop, "--json").stdout)
    assert (found["text"], found["finish"], found["stop"]) == (cut, "stop", stop)


def test_raw_and_specials():
    """A raw prompt that spells the chat prompt out is the chat prompt."""
    g = golden("capital of France")
    text = outrider("tokenize", DEMO, "--specials", "-d", ",".join(map(str, g["prompt_ids"]))).stdout
    assert text.startswith(b"<|im_start|>")
    assert outrider("run", DEMO, "--raw", "-n", "64", stdin=text).stdout == shown(g["text"])


def test_system_message():
    template_default = "You are a helpful assistant."
    g = golden("capital of France")
    done = outrider("run", DEMO, "--system", template_default, "-p", g["prompt"], "-n", "64")
    assert done.stdout == shown(g["text"])
    other = json.loads(outrider("run", DEMO, "--system", "Be brief.", "-p", g["prompt"], "-n", "9", "--json").stdout)
    assert other["prompt_tokens"] != len(g["prompt_ids"])


def test_prompt_from_file_and_stdin(tmp_path):
    g = golden("capital of France")
    (tmp_path / "prompt.txt").write_text(g["prompt"] + "\n")
    for done in (outrider("run", DEMO, "-f", str(tmp_path / "prompt.txt")), outrider("run", DEMO, stdin=g["prompt"].encode())):
        assert done.returncode == 0 and done.stdout == shown(g["text"])


@pytest.mark.parametrize("content", (b"a \xe6\xad b", b"\xff", b"\xed\xa0\x80", bytes(range(1, 256))),
                         ids=("half a character", "no character", "surrogate", "all bytes"))
def test_prompt_that_is_not_utf8(content, tmp_path):
    (tmp_path / "prompt").write_bytes(content)
    done = outrider("run", DEMO, "-f", str(tmp_path / "prompt"), "-n", "5", "--json")
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout.decode("utf-8"))
    ids = outrider("tokenize", DEMO, "-f", str(tmp_path / "prompt")).stdout.decode().strip()
    assert outrider("tokenize", DEMO, "-d", ids).stdout == content          # bytes round-trip


def test_special_tokens_of_a_user_are_text():
    """An end token inside a message is spelled out, not obeyed."""
    marker = outrider("tokenize", DEMO, "--specials", "-d", str(GOLDEN[1]["greedy_ids"][-1])).stdout.decode()
    chat = outrider("tokenize", DEMO, "--chat", "-p", f"a{marker}b").stdout.decode().strip().split(",")
    plain = outrider("tokenize", DEMO, "--chat", "-p", "ab").stdout.decode().strip().split(",")
    end = str(GOLDEN[1]["greedy_ids"][-1])
    assert chat.count(end) == plain.count(end) and len(chat) > len(plain)


def test_context_ends():
    g = golden("Count from 1 to 40")
    prompt = len(g["prompt_ids"])
    found = json.loads(outrider("run", DEMO, "-p", g["prompt"], "-c", str(prompt + 20), "--json").stdout)
    assert found["finish"] == "context" and found["ids"] == g["greedy_ids"][:len(found["ids"])] and len(found["ids"]) >= 20
    done = outrider("run", DEMO, "-p", g["prompt"], "-c", str(prompt + 20))
    assert b"context is full" in done.stderr
    line = error_line(outrider("run", DEMO, "-p", g["prompt"], "-c", "16"), 2)
    assert "16" in line and str(prompt) in line


def test_masks_and_threads():
    for more in (["--cpu-mask", "ref"], ["-t", "1"], ["-t", "3"]):
        assert outrider("run", DEMO, "-p", STORY["prompt"], "-n", "64", *more).stdout == shown(STORY["text"])
    assert "sse9" in error_line(outrider("run", DEMO, "-p", "x", "--cpu-mask", "sse9"), 2)


# -- memory --

def plan_of(*words):
    return json.loads(outrider("inspect", *words, "--plan", "--json").stdout)


@pytest.mark.parametrize("words", ([DEMO], [DEMO, "--no-draft"], [DEMO + "/verifier.trtc"], [DEMO, "-c", "300", "-t", "3"],
                                   [DEMO + "/verifier.trtc", "--draft", DEMO + "/draft.trtc"]), ids=" ".join)
def test_memory_limit(words):
    """The plan's total is the least that is accepted."""
    plan = plan_of(*words)
    assert plan["total"] == sum(v or 0 for k in ("weights", "kv", "scratch") for v in plan[k].values()) + plan["text"] + plan["process"]
    total = plan["total"]
    for command in (["run", "-p", "x"], ["inspect", "--plan"], ["verify"]):
        done = outrider(*command, *words, "--memory", str(total - 1))
        if command == ["verify"] and plan["weights"]["draft"] is None:
            continue
        line = error_line(done, 5)
        assert done.stdout == b"" and str(total) in line and str(total - 1) in line and str(plan["weights"]["verifier"]) in line
    done = outrider("run", *words, "-p", "x", "-n", "2", "--memory", str(total), "-v")
    assert done.returncode == 0 and re.search(rf"^  total +{total:,} ", done.stderr.decode(), re.M)
    table = outrider("inspect", *words, "--plan", "--memory", str(total))
    assert table.returncode == 0 and done.stderr.startswith(table.stdout)


def test_context_auto():
    """The largest context within the limit: one more token of it is refused."""
    most = plan_of(DEMO, "-c", "auto")
    assert most["context"] == 4096 and most == plan_of(DEMO, "-c", "4096") == plan_of(DEMO, "--ctx", "auto", "--memory", "1GiB")
    limit = plan_of(DEMO, "-c", "1024")["total"]
    found = plan_of(DEMO, "-c", "auto", "--memory", str(limit))
    assert 1024 <= found["context"] < 4096 and found["total"] <= limit
    more = ["-c", str(found["context"] + 1), "--memory", str(limit)]
    error_line(outrider("inspect", DEMO, "--plan", *more), 5)
    done = outrider("run", DEMO, "-p", "x", "-n", "2", "-c", "auto", "--memory", str(limit), "-v")
    assert done.returncode == 0 and f"context {found['context']:,};".encode() in done.stderr
    error_line(outrider("run", DEMO, "-p", "x", "-c", "auto", "--memory", "1MB"), 5)


# What a process leaves in ru_maxrss includes the program that it was before exec, so a small one starts the command.
MEASURE = """import os, sys
pid = os.fork()
if not pid:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.execv(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024)
"""


SANITIZED = bool(BIN) and re.search(rb"__[at]san_init", open(BIN, "rb").read()) is not None


@pytest.mark.skipif(SANITIZED, reason="a sanitizer's own memory is not in the plan")
@pytest.mark.parametrize("words", (["-n", "64"], ["-n", "64", "--no-draft", "-t", "1"], ["-c", "auto", "-n", "40"]), ids=" ".join)
def test_resident_memory_stays_within_the_plan(words, tmp_path):
    """The last case fills nearly the whole context."""
    (tmp_path / "prompt").write_text("one two three four five six seven eight nine ten\n" * (365 if "auto" in words else 1))
    options = [w for i, w in enumerate(words) if w != "-n" and words[i - 1] != "-n"]
    plan = plan_of(DEMO, *options)
    done = run(sys.executable, "-I", "-S", "-c", MEASURE, BIN, "run", DEMO, "--raw", "-f", str(tmp_path / "prompt"), *words)
    code, peak = map(int, done.stdout.split())
    assert code == 0, done.stderr
    assert sum(v or 0 for v in plan["weights"].values()) < peak <= plan["total"]


def slow_story(*more):
    """A long answer, slowly."""
    return ["run", DEMO, "--raw", "-p", "Alice was beginning", "--cpu-mask", "ref", "-t", "1", *more]


def test_interrupt():
    process = start(BIN, *slow_story())
    assert process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert out.endswith(b"\n") and re.fullmatch(rb"prompt \d+ tokens, [^\n]*; cancelled\n", err), err


def test_reader_goes_away():
    process = start(BIN, *slow_story())
    process.stdout.read(1)
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(timeout=120) == 0 and err == b""


def test_closing_line_on_a_terminal():
    g = golden("capital of France")
    code, seen = on_terminal(BIN, "run", DEMO, "-p", g["prompt"])
    assert code == 0 and g["text"].encode() in seen and b"tokens/s" in seen


def test_decode_refuses():
    done = outrider("tokenize", DEMO, "-d", "5,4096")
    assert done.stdout == b"" and "4096" in error_line(done, 2)


# -- files --

def test_truncated_container(tmp_path):
    whole = open(os.path.join(DATA, "toy_t.trtc"), "rb").read()
    bad = tmp_path / "cut.trtc"
    for size in (0, 3, 59, 60, len(whole) // 2, len(whole) - 1):
        bad.write_bytes(whole[:size])
        for words in (["probe", str(bad), "--ids", "1"], ["inspect", str(bad)]):
            done = outrider(*words)
            assert done.stdout == b"" and "cut.trtc" in error_line(done, 4)
    bad.write_bytes(whole + b"\0")
    assert "cut.trtc" in error_line(outrider("probe", str(bad), "--ids", "1"), 4)


def test_missing_files(tmp_path):
    for words in (["inspect", str(tmp_path / "none")], ["run", str(tmp_path / "none"), "-p", "x"]):
        done = outrider(*words)
        assert done.returncode in (1, 2) and "none" in error_line(done, done.returncode)
    done = outrider("run", str(tmp_path), "-p", "x")
    assert done.returncode in (1, 2, 4) and str(tmp_path) in error_line(done, done.returncode)
    shutil.copy(os.path.join(SOURCE, DEMO, "verifier.trtc"), tmp_path)
    done = outrider("run", str(tmp_path), "-p", "x")
    assert done.returncode in (1, 4) and "tokenizer.json" in error_line(done, done.returncode)
    done = outrider("run", str(tmp_path), "-p", golden("capital of France")["prompt"], "--tokenizer", DEMO)
    assert done.returncode == 0 and done.stdout == shown(golden("capital of France")["text"])


def test_bad_tokenizer(tmp_path):
    for name in os.listdir(os.path.join(SOURCE, DEMO)):
        if name.endswith((".trtc", "config.json")):
            shutil.copy(os.path.join(SOURCE, DEMO, name), tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    assert "tokenizer.json" in error_line(outrider("run", str(tmp_path), "-p", "x"), 4)


def test_inspect():
    done = outrider("inspect", DEMO + "/verifier.trtc")
    assert done.returncode == 0 and done.stderr == b"" and done.stdout.endswith(b"\n")
    assert isinstance(json.loads(outrider("inspect", DEMO + "/draft.trtc", "--json").stdout), dict)


@pytest.mark.parametrize("field", ("bytes", "sha256", None))
def test_manifest(field, tmp_path):
    """A container that is not the one of its MANIFEST.json: the report is printed all the same."""
    model = shutil.copy(os.path.join(SOURCE, DEMO, "draft.trtc"), tmp_path)
    content = open(model, "rb").read()
    said = {"file": "draft.trtc", "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    if field:
        said[field] = len(content) + 1 if field == "bytes" else "0" * 64
    (tmp_path / "MANIFEST.json").write_text(json.dumps({"weights_container": said}))
    for path in (model, str(tmp_path)):
        for more in ([], ["--json"]):
            done = outrider("inspect", path, *more)
            if field:
                line = error_line(done, 4)
                assert "draft.trtc" in line and "MANIFEST.json" in line and str(said[field]) in line
            else:
                assert done.returncode == 0 and done.stderr == b""
            if more:
                json.loads(done.stdout)
            else:
                assert (b"DISAGREES" if field else b"agrees: SHA-256") in done.stdout


# -- probe --

@pytest.mark.parametrize("toy", ("toy_t.trtc", "toy_q.trtc"))
@pytest.mark.parametrize("ids, greedy", (("1,2,3,77", 8), ("5", 1), ("299,0,17,17,17,3", 0)))
def test_probe_prints_what_the_oracle_prints(toy, ids, greedy):
    model = os.path.join(DATA, toy)
    expected = subprocess.run([sys.executable, os.path.join(SOURCE, "tools/oracle.py"), model, "--ids", ids, "--greedy", str(greedy)],
                              check=True, capture_output=True).stdout
    assert expected
    for more in ([], ["--cpu-mask", "ref"], ["-t", "3"], ["--rows", "3"]):
        done = outrider("probe", model, "--ids", ids, "--greedy", str(greedy), *more)
        assert done.returncode == 0 and done.stdout == expected and done.stderr == b""
    full = outrider("probe", model, "--ids", ids, "--greedy", str(greedy), "--digest", "full").stdout.decode()
    assert re.sub(r"([0-9a-f]{16})[0-9a-f]{48}$", r"\1", full, flags=re.M).encode() == expected


def test_known_digests():
    for toy, digest in (("toy_t.trtc", "1f2070f024be05df"), ("toy_q.trtc", "b8d4ab62005f6fd5")):
        lines = outrider("probe", os.path.join(DATA, toy), "--ids", "1,2,3,77", "--greedy", "8").stdout.decode().splitlines()
        assert lines[3].split()[-1] == digest
        if toy == "toy_t.trtc":
            assert lines[4] == "greedy 135,234,85,165,83,44,139,47"


def test_probe_golden_logits():
    g = golden("capital of France")
    ids = g["prompt_ids"] + g["greedy_ids"][:-1]
    last = outrider("probe", DEMO, "--ids", ",".join(map(str, ids)), "--digest", "full", "--rows", "17").stdout.decode().splitlines()[-1]
    assert last == f"{len(ids) - 1} {ids[-1]} -> {g['greedy_ids'][-1]} {g['last_logits_sha256']}"


@pytest.mark.parametrize("rows", ("1", "3", "17"))
def test_probe_dump(rows, tmp_path):
    """The file holds the rows that the digests are of, and not those of greedy ids."""
    ids = GOLDEN[0]["prompt_ids"]
    path = tmp_path / "logits"
    path.write_bytes(b"what was there before")
    words = ["probe", DEMO, "--ids", ",".join(map(str, ids)), "--digest", "full", "--rows", rows, "--greedy", "3"]
    done = outrider(*words, "--dump", str(path))
    assert done.returncode == 0 and done.stdout == outrider(*words).stdout
    content = path.read_bytes()
    assert len(content) == len(ids) * 4096 * 4
    lines = done.stdout.decode().splitlines()[:len(ids)]
    for i, line in enumerate(lines):
        row = content[i * 4 * 4096:(i + 1) * 4 * 4096]
        assert line.split()[-1] == hashlib.sha256(row).hexdigest()
        values = struct.unpack("<4096f", row)
        assert line.split()[3] == str(values.index(max(values)))


def test_probe_refuses():
    model = os.path.join(DATA, "toy_t.trtc")
    assert "300" in error_line(outrider("probe", model, "--ids", "300"), 2)
    done = outrider("probe", model, "--ids", "1,2,3", "-c", "2")
    assert done.returncode == 2 and b"outrider: " in done.stderr


# -- verify, demo, bench --

def test_verify():
    digests = set()
    for length in ("auto", "random", "0", "1", "7"):
        done = outrider("verify", DEMO, "--tokens", "410", "--draft-length", length, "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["tokens"] == 410 and found["divergences"] == 0 and found["first_divergence"] is None
        assert found["draft_length"] == length and (found["acceptance"] is None) == (length == "0")
        assert [c["class"] for c in found["classes"]] == list(json.load(open(os.path.join(SOURCE, DEMO, "prompts.json"))))
        digests.add((found["ids_digest"], found["logits_digest"]))
    assert len(digests) == 1
    done = outrider("verify", DEMO, "--tokens", "60", "--prompts", "models/demo/prompts.json")
    assert done.stdout.decode().splitlines()[-1] == "Drafted and plain streams are the same: 60 tokens, 0 divergences"


def test_verify_with_the_target_as_its_own_draft():
    verifier = DEMO + "/verifier.trtc"
    found = json.loads(outrider("verify", verifier, "--draft", verifier, "--tokens", "200", "--draft-length", "4", "--json").stdout)
    assert found["acceptance"] == 1.0 and found["divergences"] == 0


@pytest.mark.parametrize("words", (["--draft", "ngram"], ["--ngram"], ["--ngram", "--no-draft-model"]), ids=" ".join)
def test_ngram(words):
    """Lookups in the text propose, with the draft model or without one; the answers are the same."""
    model = DEMO
    if "--no-draft-model" in words:
        model, words = DEMO + "/verifier.trtc", words[:1]
    g = golden("Count from 1 to 40")
    found = json.loads(outrider("run", model, "-p", g["prompt"], "-n", "64", "--draft-length", "4", "--json", *words).stdout)
    assert found["ids"] == g["greedy_ids"] and found["text"] == g["text"] and found["draft"]["proposed"] > 0
    assert outrider("run", model, "-p", STORY["prompt"], "-n", "64", *words).stdout == shown(STORY["text"])
    for length in ("auto", "random"):
        done = outrider("verify", model, "--tokens", "300", "--draft-length", length, *words, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["divergences"] == 0
    done = outrider("demo", model, "--quick", "--rounds", "1", "-n", "9", *words)
    assert done.returncode == 0 and b"lookup in the text" in done.stdout


def test_ngram_loads_no_draft(tmp_path):
    g = golden("capital of France")
    done = outrider("run", DEMO, "--draft", "ngram", "-p", g["prompt"], "-v")
    assert done.stdout == shown(g["text"]) and b"draft  " not in done.stderr and b"draft:" not in done.stderr
    assert plan_of(DEMO, "--draft", "ngram") == plan_of(DEMO, "--no-draft")
    os.symlink(os.path.join(SOURCE, DEMO, "draft.trtc"), tmp_path / "ngram")
    words = ["run", os.path.join(SOURCE, DEMO, "verifier.trtc"), "-p", g["prompt"], "-v", "--draft"]
    for word, loaded in (("ngram", False), ("./ngram", True)):
        done = outrider(*words, word, cwd=str(tmp_path))
        assert done.stdout == shown(g["text"]) and (b"draft: weights" in done.stderr) == loaded


def test_verify_finds_nothing_to_verify():
    assert "--draft" in error_line(outrider("verify", DEMO + "/verifier.trtc"), 2)


@pytest.mark.parametrize("place", ("models/demo", "share/outrider/demo"))
def test_demo_finds_the_pair(tmp_path, place):
    """Beside the program, as in the source and as installed, wherever it is called from."""
    (tmp_path / "bin").mkdir()
    (tmp_path / place).parent.mkdir(parents=True)
    shutil.copy(BIN, tmp_path / "bin/outrider")
    os.symlink(os.path.join(SOURCE, DEMO), tmp_path / place)
    done = run(str(tmp_path / "bin/outrider"), "demo", "--quick", "--rounds", "1", "-n", "9", cwd="/")
    assert done.returncode == 0, done.stderr
    os.remove(tmp_path / place)
    line = error_line(run(str(tmp_path / "bin/outrider"), "demo", cwd="/"), 2)
    assert "models/demo" in line


def test_demo():
    done = outrider("demo", "--quick", "--rounds", "1")
    text = done.stdout.decode()
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in text and max(map(len, text.splitlines())) <= 80
    assert re.search(r"^Drafted and plain streams are the same: [\d,]+ tokens, 0 divergences$", text, re.M)
    assert "The capital of France is Paris." in text


def test_bench():
    for model, words in ((DEMO, []), (os.path.join(DATA, "toy_t.trtc"), ["--draft", os.path.join(DATA, "toy_t_draft.trtc")])):
        done = outrider("bench", model, *words, "--rounds", "1", "--tokens", "8", "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["plain"]["tok_s"] > 0 and found["plain"]["bytes"] > 0 and found["draft_step_ms"] > 0
        assert [v["width"] for v in found["verify"]] == list(range(1, 9)) and all(v["ms"] > 0 for v in found["verify"])
        assert found["prefill"]["tok_s"] > 0 and found["peak_rss_bytes"] > 1 << 20 and found["load_s"] > 0
    assert b"read bandwidth" in outrider("bench", DEMO, "--rounds", "1", "--tokens", "8").stdout


COLUMNS = ["name", "plain_tok_s", "drafted_tok_s", "ratio", "acceptance", "mean_proposals", "tokens_per_verify",
           "best_fixed_length", "best_fixed_ratio"]


def test_bench_classes(tmp_path):
    files = ["--csv", str(tmp_path / "table.csv"), "--svg", str(tmp_path / "chart.svg")]
    done = outrider("bench", DEMO, "--classes", "--tokens", "8", "--rounds", "1", "--json", *files)
    assert done.returncode == 0 and done.stderr == b"", done.stderr
    found = json.loads(done.stdout)
    assert {"read_bandwidth_gbs", "cpu", "threads", "version"} <= set(found) and found["read_bandwidth_gbs"] > 0
    names = list(json.load(open(os.path.join(SOURCE, DEMO, "prompts.json"))))
    assert [c["name"] for c in found["classes"]] == names
    rows = list(csv.DictReader(open(tmp_path / "table.csv", newline="")))
    for c, row in zip(found["classes"], rows, strict=True):
        assert list(c) == COLUMNS == list(row)
        assert c["ratio"] == pytest.approx(c["drafted_tok_s"] / c["plain_tok_s"]) and c["plain_tok_s"] > 0
        assert c["best_fixed_length"] in (1, 2, 4, 6, 8) and c["best_fixed_ratio"] > 0 and c["tokens_per_verify"] >= 1
        for key in COLUMNS:
            expected = "" if c[key] is None else c[key]
            assert row[key] == expected if isinstance(expected, str) else float(row[key]) == pytest.approx(expected, abs=1e-4)
    chart = xml.etree.ElementTree.parse(tmp_path / "chart.svg").getroot()
    assert chart.tag == "{http://www.w3.org/2000/svg}svg"
    texts = [t.text for t in chart.iter("{http://www.w3.org/2000/svg}text")]
    assert {*names, "plain", "drafted", "tokens a second", "class of prompts", "Plain and drafted decoding"} <= set(texts)
    bars = [r for r in chart.iter("{http://www.w3.org/2000/svg}rect") if r.get("width") == "38"]
    assert len(bars) == 2 * len(names) and all(float(b.get("height")) > 0 for b in bars)


def test_bench_classes_as_text(tmp_path):
    (tmp_path / "prompts.json").write_text(json.dumps({'a "b", <c> & d': ["What is the capital of France?"], "other": ["Hi"]}))
    files = ["--csv", str(tmp_path / "table.csv"), "--svg", str(tmp_path / "chart.svg")]
    words = ["bench", DEMO, "--classes", "-n", "4", "--rounds", "2", "--prompts", str(tmp_path / "prompts.json"), *files]
    done = outrider(*words, "--no-fixed")
    text = done.stdout.decode()
    assert done.returncode == 0 and max(map(len, text.splitlines()[3:])) <= 80 and "read bandwidth" in text
    row = next(csv.DictReader(open(tmp_path / "table.csv", newline="")))
    assert row["name"] == 'a "b", <c> & d' and row["best_fixed_length"] == row["best_fixed_ratio"] == ""
    assert "a \"b\", <c> & d" in "".join(xml.etree.ElementTree.parse(tmp_path / "chart.svg").getroot().itertext())
    found = json.loads(outrider(*words, "--lengths", "0,3", "--json").stdout)
    assert all(c["best_fixed_length"] in (0, 3) for c in found["classes"])
