"""The command against an engine that does as told (fake_engine.c): mistakes, divergences, interrupts, terminals. The command's own
sources are compiled here with the fake, with sanitizers where the compiler has them."""
import glob, json, os, re, signal, subprocess, time
import pytest
from cli_support import COMMANDS, SOURCE, error_line, on_terminal, options_of, run, start

HERE = os.path.dirname(os.path.abspath(__file__))
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-pthread", "-I" + os.path.join(SOURCE, "include"),
         "-I" + os.path.join(SOURCE, "src")]


def compile_program(out, sources, libraries=()):
    cc = os.environ.get("CC", "cc")
    for sanitize in (["-fsanitize=address,undefined", "-fno-sanitize-recover=all"], []):
        done = subprocess.run([cc, *FLAGS, *sanitize, *sources, "-o", out, *libraries], capture_output=True, text=True)
        if done.returncode == 0 and subprocess.run([out, "--version"], capture_output=True).returncode == 0:
            return out
    pytest.fail(done.stderr)


@pytest.fixture(scope="session")
def fake(tmp_path_factory):
    libraries = subprocess.run(["pkg-config", "--libs", "jansson", "libcrypto"], check=True, capture_output=True, text=True).stdout
    sources = [*glob.glob(os.path.join(SOURCE, "src/cli/*.c")), *glob.glob(os.path.join(SOURCE, "src/base/*.c")),
               os.path.join(HERE, "fake_engine.c")]
    return compile_program(str(tmp_path_factory.mktemp("fake") / "outrider"), sources, [*libraries.split(), "-lm"])


def test_compare(tmp_path):
    """The comparison that verify rests on, with a difference planted at every position."""
    program = compile_program(str(tmp_path / "compare"), [os.path.join(HERE, "compare_test.c"), os.path.join(SOURCE, "src/cli/compare.c")])
    done = run(program)
    assert done.returncode == 0, done.stderr.decode()


# -- usage and help --

def test_no_arguments(fake):
    done = run(fake)
    assert done.returncode == 2 and done.stdout == b"" and done.stderr.startswith(b"Usage: outrider")


@pytest.mark.parametrize("words", (["--help"], ["-h"], ["help"]))
def test_overview(fake, words):
    done = run(fake, *words)
    assert done.returncode == 0 and done.stderr == b""
    text = done.stdout.decode()
    for name in COMMANDS:
        assert re.search(rf"^  {name} ", text, re.M)
    assert max(map(len, text.splitlines())) <= 80


def test_version(fake):
    header = open(os.path.join(SOURCE, "include/outrider.h")).read()
    version = re.search(r'OUTRIDER_VERSION "([^"]+)"', header).group(1)
    for word in ("--version", "-V"):
        assert run(fake, word).stdout.decode() == f"outrider {version}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_help(fake, command):
    """Every option that the command takes is in its help, and the help is all that --help prints."""
    done = run(fake, command, "--help")
    assert done.returncode == 0 and done.stderr == b""
    assert run(fake, "help", command).stdout == done.stdout == run(fake, command, "x", "-h").stdout
    text = done.stdout.decode()
    assert max(map(len, text.splitlines())) <= 80 and text.startswith(f"Usage: outrider {command} ")
    source = open(os.path.join(SOURCE, "src/cli", command + ".c")).read() + open(os.path.join(SOURCE, "src/cli/load.c")).read()
    named = set(re.findall(r'^    \{"([a-z-]+)", ', source, re.M))
    shared = set(re.findall(r'^    \{"([a-z-]+)", ', open(os.path.join(SOURCE, "src/cli/load.c")).read(), re.M))
    listed = options_of(text)
    assert named - shared <= set(listed) and "help" in listed
    for option in listed:                                     # and each listed one is understood
        done = run(fake, command, "--" + option + "=x")
        assert b"unknown option" not in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_manual_page(fake, command):
    """docs/outrider.1 names the options that --help names, command by command."""
    page = open(os.path.join(SOURCE, "docs/outrider.1")).read().replace("\\-", "-")
    section = re.search(rf"^\.SS outrider {command} .*?(?=^\.S[SH])", page, re.M | re.S).group(0)
    named = {m for line in section.splitlines() if line.startswith((".B -", "Also: ")) for m in re.findall(r"--([a-z-]+)", line)}
    common = re.search(r"^\.SH COMMON OPTIONS.*?(?=^\.SH)", page, re.M | re.S).group(0)
    listed = set(options_of(run(fake, command, "--help").stdout.decode()))
    assert named == listed - {"help"}
    assert "--help" in common
    for name in re.findall(r"--([a-z-]+)", "".join(line for line in section.splitlines() if line.startswith("Also: "))):
        assert f"--{name}" in common


@pytest.mark.parametrize("words, part", (
    (["verfy"], "'verify'"),
    (["--tokens"], "unknown option '--tokens'"),
    (["help", "rum"], "'run'"),
    (["run"], "needs more arguments"),
    (["run", "good", "extra", "-p", "x"], "'extra'"),
    (["run", "good", "--tokns", "3"], "'--tokens'"),
    (["run", "good", "--stopp=x"], "'--stop'"),
    (["run", "good", "-p", "x", "--cpumask", "ref"], "'--cpu-mask'"),
    (["verify", "good", "--draft-len", "3"], "'--draft-length'"),
    (["run", "good", "-q"], "unknown option '-q'"),
    (["run", "good", "-p", "x", "--json=yes"], "takes no value"),
    (["run", "good", "-p"], "needs a value"),
    (["run", "good", "-p", ""], "the prompt is empty"),
    (["run", "good", "--prompt="], "the prompt is empty"),
    (["run", "good"], "the prompt is empty"),
    (["run", "good", "-p", "x", "-f", "y"], "exclude each other"),
    (["run", "good", "-p", "x", "--draft", "y", "--no-draft"], "exclude each other"),
    (["run", "good", "-p", "x", "--raw", "--system", "y"], "--system"),
    (["run", "good", "-p", "x", "--stop", ""], "--stop"),
    (["run", "good", "-p", "x"] + ["--stop", "a"] * 17, "more than 16"),
    (["verify", "nodraft"], "brings no draft"),
    (["demo", "nodraft"], "brings no draft"),
    (["probe", "good"], "--ids"),
    (["probe", "good", "--ids", "1,,2"], "'1,,2'"),
    (["probe", "good", "--ids", ""], "--ids"),
    (["probe", "good", "--ids", "1,2 "], "--ids"),
    (["probe", "good", "--ids", "4294967296"], "--ids"),
    (["probe", "good", "--ids", "1", "--digest", "half"], "half"),
    (["bench", "good", "--widths", "0-3"], "--widths"),
    (["bench", "good", "--widths", "3-18"], "--widths"),
    (["bench", "good", "--widths", "3-1"], "--widths"),
    (["bench", "good", "--csv", "x"], "--classes"),
    (["bench", "good", "--no-fixed"], "--classes"),
    (["bench", "good", "--classes", "--widths", "1"], "--widths"),
    (["bench", "good", "--classes", "--lengths", "17"], "within 0 to 16"),
    (["bench", "good", "--classes", "--lengths", "1", "--no-fixed"], "exclude each other"),
    (["bench", "nodraft", "--classes"], "brings no draft"),
    (["run", "good", "-p", "x", "--draft", "ngram", "--no-draft"], "exclude each other"),
    (["run", "good", "-p", "x", "--ngram", "--no-draft"], "exclude each other"),
    (["inspect", "good", "--ngram"], "--plan"),
    (["tokenize", "good", "-d", "1", "-p", "x"], "--decode"),
    (["inspect", "good", "-c", "8"], "--plan"),
    (["inspect", "good", "--draft", "good"], "--plan"),
    (["inspect", "good", "--memory", "1G"], "--plan"),
    (["inspect", "good", "--plan", "--draft", "good", "--no-draft"], "exclude each other"),
))
def test_wrong_usage(fake, words, part):
    done = run(fake, *words)
    assert done.stdout == b"" and part in error_line(done, 2)


@pytest.mark.parametrize("value", ("", " 3", "3 ", "+3", "3x", "0x3", "1e3", "3.0", "-", "--3", "-1", "0", "4294967296",
                                   "99999999999999999999", "\N{ARABIC-INDIC DIGIT THREE}"))
def test_strict_numbers(fake, value):
    assert "--tokens" in error_line(run(fake, "run", "good", "-p", "x", "--tokens=" + value), 2)
    assert "-n" not in error_line(run(fake, "run", "good", "-p", "x", "-n", value), 2)


@pytest.mark.parametrize("value, fine", (("auto", 1), ("random", 1), ("0", 1), ("16", 1), ("17", 0), ("-1", 0), ("", 0), ("Auto", 0)))
def test_draft_length(fake, value, fine):
    assert run(fake, "run", "good", "-p", "x", "-n", "3", "--draft-length", value).returncode == (0 if fine else 2)


def options_given(fake, *words):
    """Context and limit as the engine is asked for them."""
    found = re.fullmatch(r"context (\d+), memory (\d+)", error_line(run(fake, *words), 1))
    return int(found.group(1)), int(found.group(2))


@pytest.mark.parametrize("text, size", (
    ("1", 1), ("4096", 4096), ("007", 7), ("9223372036854775807", 2**63 - 1), ("3KB", 3000), ("800MB", 800 * 1000**2),
    ("2GB", 2 * 1000**3), ("3KiB", 3072), ("3MiB", 3 << 20), ("8589934591GiB", 8589934591 << 30), ("5K", 5120), ("5M", 5 << 20),
    ("5G", 5 << 30), ("1.5GiB", 3 << 29), ("0.25K", 256), ("1.05KB", 1050), ("0.000000001GB", 1), ("1.999999999GiB", 2147483646),
    ("0.3K", 307),
))
def test_sizes(fake, text, size):
    assert options_given(fake, "run", "options", "-p", "x", "--memory", text) == (0, size)
    assert options_given(fake, "inspect", "options", "--plan", "--memory=" + text) == (0, size)


@pytest.mark.parametrize("text", ("", "0", "0GiB", "0.0MB", "0.0001K", "-1", "+1", " 1", "1 ", "1 GB", "1.5", "1.GB", ".5GB", "1.5.5GB", "1,5GB",
                                  "1e9", "0x10", "1B", "1kb", "1gb", "1GIB", "1Gi", "1GiBs", "1TB", "GB", "1.0000000001GB", "inf", "nan",
                                  "9223372036854775808", "8589934592GiB", "99999999999999999999999", "\N{ARABIC-INDIC DIGIT THREE}"))
def test_strict_sizes(fake, text):
    assert "--memory" in error_line(run(fake, "run", "good", "-p", "x", "--memory=" + text), 2)


def test_context(fake):
    for name in ("-c", "--context", "--ctx"):
        for text, context in (("auto", 2**32 - 1), ("1", 1), ("4294967294", 2**32 - 2)):
            assert options_given(fake, "run", "options", "-p", "x", name, text) == (context, 0)
        for text in ("", "0", "-1", "4294967295", "Auto", "auto ", "1K"):
            assert "not auto or a number" in error_line(run(fake, "run", "good", "-p", "x", name, text), 2)
    assert b"--ctx" in run(fake, "run", "--help").stdout


def test_forms_of_options(fake):
    expected = run(fake, "run", "good", "-p", "x", "-n", "30").stdout
    assert len(expected) == 31
    for words in (["-px", "-n30", "good"], ["--prompt=x", "--tokens=30", "good"], ["--tokens", "30", "good", "-vp", "x"],
                  ["-n", "5", "-n", "30", "-p", "x", "--", "good"]):
        assert run(fake, "run", *words).stdout == expected
    assert run(fake, "run", "good", "-p", "-x", "-n", "30").stdout == expected     # a value may begin with a dash
    assert run(fake, "run", "-n3", "-px", "--", "-good").returncode == 0           # behind "--" a name may


# -- errors of the engine --

@pytest.mark.parametrize("command", (["run", "-p", "x"], ["demo"], ["verify"], ["probe", "--ids", "1"], ["bench"], ["tokenize", "-p", "x"]))
@pytest.mark.parametrize("model, code", (("bad", 4), ("nomem", 5)))
def test_model_does_not_open(fake, command, model, code):
    done = run(fake, command[0], model, *command[1:])
    assert done.stdout == b""
    error_line(done, code)


def test_error_is_one_line_whatever_is_in_it(fake):
    assert "bad x?y" in error_line(run(fake, "inspect", "bad\nx\x1by"), 4)


def test_generate_fails(fake):
    for words in (["run", "fail=9", "-p", "x"], ["demo", "fail=9"], ["verify", "fail=9"], ["probe", "fail=0", "--ids", "1"],
                  ["bench", "fail=0"], ["bench", "fail=0", "--classes"]):
        assert "finite" in error_line(run(fake, *words), 1)


def test_output_cannot_be_written(fake):
    for words in (["run", "good", "-p", "x", "-n", "20"], ["run", "good", "-p", "x", "-n", "20", "--json"], ["--help"],
                  ["verify", "good"], ["demo", "good", "--quick"], ["probe", "good", "--ids", "1"]):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([fake, *words], stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE)
        assert "standard output" in error_line(done, 1)


# -- plain against drafted --

@pytest.mark.parametrize("model, kind, what", (("id=17", "id", "token"), ("logits=17", "logits", "logits"), ("short=17", "length", "ends")))
def test_divergence(fake, model, kind, what):
    done = run(fake, "verify", model, "--tokens", "100", "--prompts", "models/demo/prompts.json")
    line = error_line(done, 3)
    assert what in line and "class factual" in line and "What is the capital of France?" in line
    assert b"differ" in done.stdout and b"are the same" not in done.stdout
    found = json.loads(run(fake, "verify", model, "--tokens", "100", "--json").stdout)
    assert found["divergences"] >= 1 and found["tokens"] == 100
    first = found["first_divergence"]
    assert first["kind"] == kind and first["class"] == "factual"
    if kind == "id":                                          # 16 tokens of the first prompt, then the second's token 1
        assert first["index"] == 1 and first["plain_id"] == ord("a") + 17 and first["drafted_id"] == ord("!")
    if kind == "length":
        assert first["index"] == 1 and first["plain_id"] == ord("a") + 17 and first["drafted_id"] is None
    assert found["ids_digest"] is None and found["logits_digest"] is None
    assert sum(c["divergences"] for c in found["classes"]) == found["divergences"]


def test_no_divergence(fake):
    done = run(fake, "verify", "good", "--tokens", "333")
    assert done.returncode == 0 and done.stderr == b""
    assert done.stdout.decode().splitlines()[-1] == "Drafted and plain streams are the same: 333 tokens, 0 divergences"
    found = json.loads(run(fake, "verify", "good", "--tokens", "333", "--json").stdout)
    assert found["tokens"] == 333 == sum(c["tokens"] for c in found["classes"]) and found["divergences"] == 0
    assert found["first_divergence"] is None and len(found["ids_digest"]) == len(found["logits_digest"]) == 64
    assert max(map(len, done.stdout.decode().splitlines())) <= 80


def test_more_tokens_than_contexts_hold(fake):
    found = json.loads(run(fake, "verify", "good", "--tokens", "150000", "--json").stdout)
    assert found["tokens"] == 150000 and found["answers"] > 15


def test_demo_diverges(fake):
    done = run(fake, "demo", "id=500", "--quick")
    assert "differs from the plain one" in done.stderr.decode()
    assert done.returncode == 3 and re.search(rb" NO$", done.stdout, re.M) and b"streams differ" in done.stdout


def test_demo(fake):
    done = run(fake, "demo", "good", "--prompts", "models/demo/prompts.json")
    text = done.stdout.decode()
    assert done.returncode == 0 and done.stderr == b"" and "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80
    for name in json.load(open(os.path.join(SOURCE, "models/demo/prompts.json"))):
        assert re.search(rf"^{name}$", text, re.M) and re.search(rf"^  {name} .* 2\.00x .* yes$", text, re.M)
    assert f"Drafted and plain streams are the same: {25 * 64 * 2:,} tokens, 0 divergences" in text


# -- prompts --

def test_prompt_sources(fake, tmp_path):
    expected = run(fake, "run", "good", "-p", "hello", "-n", "9", "--json")
    assert json.loads(expected.stdout)["prompt_tokens"] == 5
    for ending in (b"", b"\n", b"\r\n"):
        (tmp_path / "prompt").write_bytes(b"hello" + ending)
        for words, stdin in ((["-f", str(tmp_path / "prompt")], b""), (["-f", "-"], b"hello" + ending), ([], b"hello" + ending)):
            done = run(fake, "run", "good", *words, "-n", "9", "--json", stdin=stdin)
            assert done.stdout == expected.stdout
    raw = run(fake, "run", "good", "--raw", "-n", "9", "--json", stdin=b"hello\n")
    assert json.loads(raw.stdout)["prompt_tokens"] == 6
    for empty in (b"", b"\n"):
        assert "empty" in error_line(run(fake, "run", "good", stdin=empty), 2)


def test_prompt_file_is_missing(fake, tmp_path):
    line = error_line(run(fake, "run", "good", "-f", str(tmp_path / "none")), 1)
    assert "none" in line and "No such file" in line
    error_line(run(fake, "run", "good", "-f", str(tmp_path)), 1)


def test_zero_byte(fake):
    assert "zero byte" in error_line(run(fake, "run", "good", stdin=b"a\0b"), 2)
    done = run(fake, "run", "good", "--raw", "-n", "3", "--json", stdin=b"a\0b")
    assert json.loads(done.stdout)["prompt_tokens"] == 3


def test_prompt_on_a_terminal(fake):
    code, seen = on_terminal(fake, "run", "good")
    assert code == 2 and b"-p TEXT" in seen


@pytest.mark.parametrize("name, text, classes", (
    ("a.json", '{"one": ["x", "y"], "two": ["z"]}', {"one": 2, "two": 1}),
    ("a.json", '["x", "y"]', {"prompts": 2}),
    ("a.txt", '["x"]', {"prompts": 1}),
    ("a.txt", "first\n\nsecond\r\nlast", {"prompts": 3}),
    ("a.txt", "[not json\nat all\n", {"prompts": 2}),
))
def test_prompt_sets(fake, tmp_path, name, text, classes):
    (tmp_path / name).write_text(text)
    done = run(fake, "verify", "good", "--prompts", str(tmp_path / name), "--tokens", "480", "--json")
    assert {c["class"]: c["answers"] for c in json.loads(done.stdout)["classes"]} == classes


@pytest.mark.parametrize("name, text", (("a.json", b"{"), ("a.json", b""), ("a.json", b"3"), ("a.json", b'{"a": []}'), ("a.json", b'{"a": [3]}'),
                                        ("a.json", b'{"a": [""]}'), ("a.json", b'{"a": "x"}'), ("a.json", b'["\xff"]'), ("a.txt", b""),
                                        ("a.txt", b"\n\n"), ("a.txt", b"a\0b\n"), ("a.json", b'{"a": ["x"], "a": ["y"]}')))
def test_bad_prompt_sets(fake, tmp_path, name, text):
    (tmp_path / name).write_bytes(text)
    assert name in error_line(run(fake, "verify", "good", "--prompts", str(tmp_path / name)), 4)


def test_json_is_valid_whatever_the_text_is(fake):
    """The fake hands on bytes; a real engine's text is whole characters, its --decode is not."""
    cases = {(0x61, 0xE6, 0xAD, 0x62): "a\ufffd\ufffdb", (0xFF,): "\ufffd", (0xED, 0xA0, 0x80): "\ufffd\ufffd\ufffd",
             (0xC0, 0x80): "\ufffd\ufffd", (0xF4, 0x90, 0x80, 0x80): "\ufffd" * 4, (0xC3, 0xA4): "\u00e4", (0xE2, 0x82, 0xAC): "\u20ac",
             (0xF0, 0x9F, 0x98, 0x80): "\U0001F600", (0x61, 0x00, 0x62): "a\0b", (0xE0, 0x80, 0x80): "\ufffd" * 3}
    for ids, text in cases.items():
        done = run(fake, "tokenize", "good", "--json", "-d", ",".join(map(str, ids)))
        assert json.loads(done.stdout.decode("utf-8"))["text"] == text
        assert run(fake, "tokenize", "good", "-d", ",".join(map(str, ids))).stdout == bytes(ids)
    everything = bytes(range(256))
    done = run(fake, "tokenize", "good", stdin=everything)
    assert done.stdout == (",".join(map(str, everything)) + "\n").encode()


# -- interrupts and pipes --

def interrupt_when_running(process):
    first = process.stdout.read(1)
    assert first
    process.send_signal(signal.SIGINT)
    return first


def test_interrupt(fake):
    process = start(fake, "run", "slow", "-p", "x")
    interrupt_when_running(process)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out.endswith(b"\n") and re.fullmatch(rb"prompt 1 token, .*; cancelled\n", err), err


def test_interrupt_json(fake):
    process = start(fake, "run", "slow", "-p", "x", "--json")
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and json.loads(out)["finish"] == "cancelled"


def test_second_interrupt_kills(fake):
    process = start(fake, "run", "slow,deaf", "-p", "x")
    interrupt_when_running(process)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT


@pytest.mark.parametrize("words", (["verify", "slow", "--tokens", "100000"], ["demo", "slow"]))
def test_interrupt_of_long_commands(fake, words):
    process = start(fake, *words)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and re.fullmatch(rb"outrider: interrupted[^\n]*\n", err), err


def test_interrupt_while_reading(fake):
    process = start(fake, "run", "good", stdin=subprocess.PIPE)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"")


@pytest.mark.parametrize("words", (["run", "slow", "-p", "x"], ["demo", "good"], ["verify", "good", "--tokens", "100000"]))
def test_reader_goes_away(fake, words):
    process = start(fake, *words)
    process.stdout.read(1)
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(timeout=60) == 0 and err == b"", err


# -- terminals --

def test_colour_and_bars_on_a_terminal(fake):
    code, seen = on_terminal(fake, "demo", "good", "--quick")
    assert code == 0 and b"\x1b[32m" in seen and b"packing verifier" in seen and b"measuring" in seen
    shown = re.sub(rb"\x1b\[[0-9;]*[mK]", b"", seen)
    first = re.search(rb"counting\r\n  > .*?\r\n    (.*?)\r\n", shown, re.S).group(1)
    assert first.startswith(b"abcdef hijklm")
    # Steps of the fake: one token of its own, then three accepted and one of its own, over and over.
    line = re.search(rb"counting\x1b\[0m\r\n  > .*?\r\n    (.*?)\r\n", seen, re.S).group(1)
    assert line.startswith(b"a\x1b[32mbcd\x1b[0me\x1b[32mf\x1b[0m \x1b[32mh\x1b[0mi\x1b[32mjkl\x1b[0mm"), line
    code, seen = on_terminal(fake, "verify", "good", "--tokens", "20000")
    assert code == 0 and b"tokens, plain and drafted" in seen


@pytest.mark.parametrize("env", ({"NO_COLOR": "1"}, {"TERM": "dumb"}))
def test_no_colour_when_not_wanted(fake, env):
    code, seen = on_terminal(fake, "demo", "good", "--quick", **env)
    assert code == 0 and not re.search(rb"\x1b\[[0-9;]*m", seen)


def test_nothing_of_a_terminal_elsewhere(fake):
    for words in (["demo", "good", "--quick"], ["verify", "good"], ["run", "good", "-p", "x", "-n", "9"], ["bench", "good", "--rounds", "1"],
                  ["inspect", "good"]):
        done = run(fake, *words)
        assert done.returncode == 0 and b"\x1b" not in done.stdout + done.stderr and b"\r" not in done.stdout + done.stderr


# -- the rest --

def test_bench_keys(fake):
    found = json.loads(run(fake, "bench", "good", "--rounds", "2", "--widths", "1,3-4,17", "--json").stdout)
    assert {"read_bandwidth_gbs", "plain", "verify", "draft_step_ms", "prefill", "load_s", "peak_rss_bytes", "version", "machine"} <= set(found)
    assert [v["width"] for v in found["verify"]] == [1, 3, 4, 17] and found["prefill"]["tokens"] == 512
    assert set(found["plain"]) == {"tok_s", "bytes", "gbs"} and found["read_bandwidth_gbs"] > 0.1
    assert found["plain"]["gbs"] == pytest.approx(found["plain"]["tok_s"] * found["plain"]["bytes"] / 1e9, rel=1e-4)
    nodraft = json.loads(run(fake, "bench", "nodraft", "--rounds", "1", "--json").stdout)
    assert nodraft["draft_step_ms"] is None and [v["width"] for v in nodraft["verify"]] == list(range(1, 9))


def test_bench_classes_faults(fake, tmp_path):
    line = error_line(run(fake, "bench", "id=17,restart", "--classes"), 3)
    assert "class counting" in line and "Count from 1 to 40" in line
    for option in ("--csv", "--svg"):
        assert "none" in error_line(run(fake, "bench", "good,restart", "--classes", option, str(tmp_path / "none/x")), 1)
        done = run(fake, "bench", "good,restart", "--classes", "--rounds", "1", option, "/dev/full")
        assert "/dev/full" in error_line(done, 1)
    process = start(fake, "bench", "slow,restart", "--classes")
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130 and out == b"" and err == b"outrider: interrupted\n"
    code, seen = on_terminal(fake, "bench", "good,restart", "--classes", "--rounds", "2")
    assert code == 0 and b"answers" in seen and b"best" in seen


def test_inspect(fake):
    assert run(fake, "inspect", "good").stdout == b"a table\n"
    assert json.loads(run(fake, "inspect", "good", "--json").stdout) == {}
    error_line(run(fake, "inspect", "bad"), 4)
    for words, table in (([], b"a table\n"), (["--json"], b"{}\n")):
        done = run(fake, "inspect", "mismatch", *words)
        assert done.stdout == table and "one or the other" in error_line(done, 4)


PLAN = """memory plan
  verifier: weights                           3,145,728      3.00 MiB
  verifier: KV cache of 4,096 tokens      5,368,709,120      5.00 GiB
  verifier: scratch                                  10      10 bytes
  draft: weights                                  1,000    1000 bytes
  draft: KV cache of 4,096 tokens                 2,048      2.00 KiB
  draft: scratch                                     20      20 bytes
  tokenizer and chat template                        30      30 bytes
  process, and what loading takes                    40      40 bytes
  total                                   5,371,857,996      5.00 GiB
"""


def test_plan(fake):
    done = run(fake, "inspect", "good", "--plan")
    assert done.returncode == 0 and done.stderr == b"" and done.stdout.decode() == PLAN
    assert json.loads(run(fake, "inspect", "good", "--plan", "--json").stdout) == {
        "context": 4096, "weights": {"verifier": 3 << 20, "draft": 1000}, "kv": {"verifier": 5 << 30, "draft": 2048},
        "scratch": {"verifier": 10, "draft": 20}, "text": 30, "process": 40, "total": 5371857996}
    for words in (["nodraft"], ["good", "--no-draft"]):
        assert b"draft:" not in run(fake, "inspect", "--plan", *words).stdout
        found = json.loads(run(fake, "inspect", "--plan", "--json", *words).stdout)
        assert found["weights"] == {"verifier": 3 << 20, "draft": None} and found["total"] == 5371857996 - 3068
    for model, code in (("bad", 4), ("nomem", 5)):
        for words in (["inspect", model, "--plan"], ["inspect", model, "--plan", "--json"], ["run", model, "-p", "x", "-v"]):
            done = run(fake, *words)
            assert done.stdout == b""
            error_line(done, code)


def test_run_reports_positions(fake):
    found = json.loads(run(fake, "run", "good", "-p", "x", "-n", "41", "--json").stdout)
    assert found["finish"] == "length" and found["stop"] is None and found["tokens"] == 41 == len(found["ids"])
    assert found["text"] == bytes(found["ids"]).decode()
    assert [p["position"] for p in found["draft"]["by_position"]] == [1, 2, 3]
    assert found["draft"]["tokens_per_verify"] == 4.0 and found["draft"]["mean_length"] == 3.0 and found["draft"]["acceptance"] == 1.0
    closing = run(fake, "run", "good", "-p", "x", "-n", "41").stderr.decode()
    assert re.fullmatch(r"prompt 1 token, [\d.]+ tokens/s; answer 41 tokens, [\d.]+ tokens/s; accepted 100\.0 % of 30 drafted, "
                        r"4\.00 tokens a verify, mean draft length 3\.00\n", closing), closing
    assert "nothing drafted" in run(fake, "run", "good", "-p", "x", "-n", "9", "--no-draft").stderr.decode()


def test_verbose(fake):
    done = run(fake, "run", "good", "-p", "x", "-n", "9", "-v")
    assert b"verifier  good" in done.stderr and b"draft     good" in done.stderr and b"ref, 1 threads" in done.stderr
    assert done.stderr.decode().startswith(PLAN)
    done = run(fake, "probe", "good", "--ids", "1", "-v")                    # no draft, no tokenizer
    assert b"  total " in done.stderr and b"draft" not in done.stderr and b"template                         0" in done.stderr


def test_dump_cannot_be_written(fake, tmp_path):
    for path, words in (("/dev/full", "No space"), (str(tmp_path / "none" / "x"), "No such file")):
        line = error_line(run(fake, "probe", "good", "--ids", "1", "--dump", path), 1)
        assert path in line and words in line
