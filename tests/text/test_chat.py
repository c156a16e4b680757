"""Chat prompts against Jinja2 with the models' own templates, tojson against json.dumps, the text decoder against bytes.decode."""
import functools, json, os, random, struct, subprocess, tempfile

import jinja2
import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

TOOL = os.environ["OUTRIDER_CHAT_TOOL"]
QWEN = os.environ["OUTRIDER_QWEN_TOKENIZER"]
DEMO = os.path.join(os.environ["OUTRIDER_SOURCE"], "models", "demo")

GENERATION_PROMPT, NO_THINKING = 1, 2
UNKNOWN, CHATML, QWEN3 = 0, 1, 2
IM = "'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'"
PLAIN = ("{% for message in messages %}{{" + IM + "}}{% endfor %}"
         "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
OLDER_QWEN = PLAIN.replace("%}{{'", "%}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou are "
                           "a \"helpful\" assistant, aren\\'t you?<|im_end|>\n' }}{% endif %}\n{{'", 1)


def template_of(folder):
    with open(os.path.join(folder, "tokenizer_config.json"), encoding="utf-8") as f:
        return json.load(f)["chat_template"]


def later_qwen():
    """The Qwen3 template as published later: contents that are not strings are empty."""
    text = template_of(QWEN)
    for old, new in [
        ('"user" and not(', '"user" and message.content is string and not('),
        ("{%- for message in messages %}\n", "{%- for message in messages %}\n    {%- if message.content is string %}\n        {%- set content"
         " = message.content %}\n    {%- else %}\n        {%- set content = '' %}\n    {%- endif %}\n"),
        ("'\\n' + message.content + '<|im_end|>' + '\\n'", "'\\n' + content + '<|im_end|>' + '\\n'"),
        ('"assistant" %}\n        {%- set content = message.content %}', '"assistant" %}'),
        ("message.reasoning_content is defined and message.reasoning_content is not none", "message.reasoning_content is string"),
        ("in message.content %}\n                {%- set content = message.content.split('</think>')[-1].lstrip('\\n') %}",
         "in content %}"),
        ("message.content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}",
         "content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}\n"
         "                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}"),
        ("{{- message.content }}", "{{- content }}"),
    ]:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


TEMPLATES = {"qwen3": template_of(QWEN), "qwen3-later": later_qwen(), "demo": template_of(DEMO), "plain": PLAIN,
             "older-qwen": OLDER_QWEN}


@functools.lru_cache(maxsize=8)
def compiled(text):
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    env.filters["tojson"] = lambda x, ensure_ascii=False: json.dumps(x, ensure_ascii=ensure_ascii)
    return env.from_string(text)


def expected(template, c):
    options = {"enable_thinking": False} if c["flags"] & NO_THINKING else {}
    return template.render(messages=c["messages"], tools=c["tools"], add_generation_prompt=bool(c["flags"] & GENERATION_PROMPT),
                           **options)


def tool(mode, values):
    """One answer for each value."""
    text = "".join(json.dumps(v, ensure_ascii=i % 2 == 0) + "\n" for i, v in enumerate(values))
    done = subprocess.run([TOOL, *mode], input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr.decode()
    # Other separators than \n may stand in the text.
    answers = [json.loads(line) for line in done.stdout.decode().split("\n")[:-1]]
    assert len(answers) == len(values)
    return answers


def with_template(text, conversations):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as f:
            json.dump({"chat_template": text}, f)
        return tool(["chat", folder], conversations)


# ---- Conversations ----

PIECES = ["", "\n", "\n\n", " ", "hello", "Grüße, 世界", "\U0001f44b\U0001f3fd", "e\u0301", "\u2028", "\u00a0", "\u0000", "\x7f", "\"", "\\", "'",
          "</think>", "<think>", "<think>\n", "\n</think>\n\n", "<tool_response>", "</tool_response>", "<|im_end|>", "<|im_start|>",
          "<tool_call>", "{\"a\": 1}", "{{ 1 }}", "{% x %}", "<b>&amp;</b>", "\t", "\r\n"]


def words(r, most=5):
    return "".join(r.choice(PIECES) for _ in range(r.randrange(most + 1)))


def key(r):
    return words(r, 2).replace("\0", "") or "k"


def json_value(r, depth=3):
    kind = r.randrange(9 if depth else 7)
    if kind == 0:
        return words(r)
    if kind == 1:
        return r.choice([True, False, None])
    if kind in (2, 3):
        return r.choice([0, -1, 7, 2**53, 2**63 - 1, -2**63, r.randrange(-10**6, 10**6)])
    if kind in (4, 5, 6):
        return r.choice([0.0, -0.0, 0.1, 1.0, 1e16, 1e15, 123456789012345.6, 1e-4, 1e-5, 5e-324, 1.7976931348623157e308, 2**-44,
                         r.uniform(-1, 1), r.uniform(-1e6, 1e6), r.uniform(0, 1) * 10.0 ** r.randrange(-30, 30)])
    if kind == 7:
        return [json_value(r, depth - 1) for _ in range(r.randrange(4))]
    return {key(r): json_value(r, depth - 1) for _ in range(r.randrange(4))}


def call(r):
    arguments = r.choice([lambda: json.dumps({"q": words(r)}), lambda: words(r), lambda: json_value(r),
                          lambda: {key(r): json_value(r) for _ in range(3)}])()
    function = {"name": r.choice(["get_weather", "f", words(r, 2)]), "arguments": arguments}
    return r.choice([{"id": "call_1", "type": "function", "function": function}, dict(function), dict(function, function=None),
                     dict(function, function={})])


def content(r):
    return r.choice([words(r), words(r), "<tool_response>" + words(r) + "</tool_response>", "<think>\n" + words(r) + "\n</think>\n\n" + words(r)])


def conversation(r, calls):
    messages = []
    if r.random() < 0.5:
        messages.append({"role": "system", "content": words(r)})
    roles = ["user", "assistant", "assistant", "tool", "tool", "system"] if calls else ["user", "assistant", "system", "tool", words(r, 2)]
    if r.random() < 0.5:  # in the usual order
        for _ in range(r.randrange(1, 4)):
            messages.append({"role": "user", "content": content(r)})
            for _ in range(r.randrange(3) if calls else 0):
                messages.append({"role": "assistant", "content": content(r), "tool_calls": [call(r) for _ in range(r.randrange(1, 3))]})
                messages += [{"role": "tool", "content": content(r)} for _ in range(r.randrange(1, 3))]
            messages.append({"role": "assistant", "content": content(r)})
        if r.random() < 0.5:
            messages.pop()
    else:
        messages += [{"role": r.choice(roles), "content": content(r)} for _ in range(r.randrange(1, 8))]
    for m in messages:
        if m["role"] == "assistant":
            if r.random() < 0.4:
                m["reasoning_content"] = r.choice([words(r), words(r), "", None])
            if calls and r.random() < 0.2:
                m["tool_calls"] = r.choice([None, [], [call(r)]])
    tools = [r.choice([{"type": "function", "function": {"name": words(r), "parameters": json_value(r)}}, {key(r): json_value(r)}])
             for _ in range(r.randrange(1, 4))]
    return {"messages": messages, "tools": r.choice([None, [], tools]) if calls else r.choice([None, []]), "flags": r.randrange(4)}


def conversations(name, n=200):
    r = random.Random(name)
    return [conversation(r, name.startswith("qwen3")) for _ in range(n)]


@pytest.mark.parametrize("name", TEMPLATES)
def test_equal_to_jinja(name):
    given = conversations(name)
    answers = with_template(TEMPLATES[name], given)
    template = compiled(TEMPLATES[name])
    for c, answer in zip(given, answers):
        assert answer == expected(template, c), c


def test_folders_and_names():
    for where, name in [(QWEN, "qwen3"), (DEMO, "demo"), ("qwen3", "qwen3-later"), ("chatml", "plain")]:
        given = conversations(name, 50)
        assert tool(["chat", where], given) == [expected(compiled(TEMPLATES[name]), c) for c in given]


def test_thinking_is_seen():
    """The generator reaches what it should: a test of nothing proves nothing."""
    texts = [expected(compiled(TEMPLATES["qwen3"]), c) for c in conversations("qwen3")]
    for part, least in [("# Tools", 30), ("<think>\n\n</think>\n\n", 10), ("</think>\n\n", 50), ("<tool_call>\n{\"name\"", 50),
                        ("\n</tool_response>\n<tool_response>", 20), ("1e-05", 1)]:
        assert sum(part in t for t in texts) >= least, part


# ---- What is refused ----

def chat(*messages, tools=None):
    return {"messages": list(messages), "tools": tools, "flags": 1}


USER = {"role": "user", "content": "hi"}


@pytest.mark.parametrize("name", ["qwen3", "qwen3-later", "demo"])
def test_refused_where_jinja_fails(name):
    """Whatever makes the template fail is refused, with the message's number, and what is accepted is rendered alike."""
    template = compiled(TEMPLATES[name])
    r = random.Random(3)
    odd = [None, 1, 1.5, True, [], {}, [{"type": "text", "text": "x"}], "", "text", "<think>a</think>b", "MISSING"]
    given = []
    for _ in range(400):
        c = conversation(r, name != "demo")
        field = r.choice(["role", "content", "content", "reasoning_content", "tool_calls"])
        m = r.choice(c["messages"])
        m[field] = r.choice(odd)
        if m[field] == "MISSING":
            del m[field]
        given.append(c)
    answers = with_template(TEMPLATES[name], given)
    seen = set()
    for c, answer in zip(given, answers):
        try:
            text = expected(template, c)
        except (jinja2.UndefinedError, TypeError, AttributeError):
            text = None
        if text is None or isinstance(answer, dict):
            assert isinstance(answer, dict) and answer["status"] == 2 and answer["error"].startswith("message "), (c, answer)
        else:
            assert answer == text, c
        seen.add((text is None, isinstance(answer, dict)))
    assert {(True, True), (False, False)} <= seen


@pytest.mark.parametrize("where, given, message", [
    (QWEN, chat(), "messages: expected an array with one at least, found an empty one"),
    (QWEN, {"messages": {}, "flags": 0}, "messages: expected an array with one at least, found an object"),
    (QWEN, chat(USER, {"role": "assistant", "content": None, "tool_calls": [{"name": "f", "arguments": {}}]}),
     "message 1: content: expected a string, found null; the model's chat template takes \"\" for no content"),
    (QWEN, chat(USER, {"role": "user"}), "message 1: content: expected a string, found none; the model's chat template takes \"\" for no content"),
    (QWEN, chat(USER, {"role": "tool", "content": 5}), "message 1: content: expected a string, found a number"),
    (QWEN, chat({"role": "developer", "content": "x"}), "message 0: role: expected system, user, assistant or tool, found \"developer\""),
    (QWEN, chat({"content": "x"}), "message 0: role: expected a string, found none"),
    (QWEN, chat(USER, "x"), "message 1: expected an object, found a string"),
    (QWEN, chat(USER, tools={}), "tools: expected an array, found an object"),
    (QWEN, chat(USER, tools=["x"]), "tools: item 0: expected an object, found a string"),
    (QWEN, chat({"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f"}}]}),
     "message 0: tool_calls: call 0: arguments: expected a value, found none"),
    (QWEN, chat({"role": "assistant", "content": "", "tool_calls": [{"function": {"arguments": {}}}]}),
     "message 0: tool_calls: call 0: name: expected a string, found none"),
    (QWEN, chat({"role": "assistant", "content": "", "tool_calls": [{"function": "f"}]}),
     "message 0: tool_calls: call 0: function: expected an object, found a string"),
    (QWEN, chat({"role": "assistant", "content": "", "tool_calls": [5]}), "message 0: tool_calls: call 0: expected an object, found a number"),
    (QWEN, chat({"role": "assistant", "content": "", "tool_calls": "f"}), "message 0: tool_calls: expected an array, found a string"),
    (QWEN, chat({"role": "assistant", "content": "", "reasoning_content": 5}),
     "message 0: reasoning_content: expected a string, found a number"),
    (DEMO, chat(USER, tools=[{"name": "f"}]), "tools: the model's chat template (chatml) has no place for them"),
    (DEMO, chat(USER, {"role": "assistant", "content": "", "tool_calls": [{"name": "f", "arguments": {}}]}),
     "message 1: tool_calls: the model's chat template (chatml) has no place for them"),
])
def test_message(where, given, message):
    assert tool(["chat", where], [given]) == [{"error": message, "status": 2}]


def test_null_content_in_later_qwen():
    given = chat(USER, {"role": "assistant", "content": None, "tool_calls": [{"name": "f", "arguments": {}}]})
    answer, = with_template(TEMPLATES["qwen3-later"], [given])
    assert answer == expected(compiled(TEMPLATES["qwen3-later"]), given)


# ---- Which template it is ----

def test_recognised():
    kinds = {"qwen3": [QWEN3, False, None], "qwen3-later": [QWEN3, True, None],
             "demo": [CHATML, False, "You are a helpful assistant."], "plain": [CHATML, False, None],
             "older-qwen": [CHATML, False, "You are a \"helpful\" assistant, aren't you?"]}
    for name, known in kinds.items():
        assert tool(["tags"], [TEMPLATES[name]])[0][:3] == known, name


@pytest.mark.parametrize("name", TEMPLATES)
def test_changed_template_is_unknown_or_the_same(name):
    """A template with a letter less, more or other, or with two swapped: if it is still recognised, Jinja2 makes the same of it."""
    r = random.Random(name)
    changed = []
    for _ in range(600):
        t = TEMPLATES[name]
        at = r.randrange(len(t))
        letter = r.choice(" \n-+'\"{}%.[]()x") if r.random() < 0.7 else r.choice(t)
        changed.append(r.choice([t[:at] + t[at + 1:], t[:at] + letter + t[at:], t[:at] + letter + t[at + 1:],
                                 t[:at] + t[at + 1:at + 2] + t[at:at + 1] + t[at + 2:]]))
    given = conversations(name, 12)
    for text, (kind, _, system, _) in zip(changed, tool(["tags"], changed)):
        if kind == UNKNOWN or text == TEMPLATES[name]:
            continue
        template = compiled(text)
        answers = with_template(text, given)
        assert answers == [expected(template, c) for c in given], (text, system)


def test_unknown_is_refused():
    for config in [{}, {"chat_template": None}, {"chat_template": "x"}, {"chat_template": [{"name": "rag", "template": PLAIN}]}, [], 5]:
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "tokenizer_config.json"), "w") as f:
                json.dump(config, f)
            done = subprocess.run([TOOL, "chat", folder], input=b"", stderr=subprocess.PIPE)
            assert done.returncode in (2, 4) and done.stderr.decode().endswith("; try --chat-template chatml\n"), done.stderr
    done = subprocess.run([TOOL, "chat", "/nowhere/"], input=b"", stderr=subprocess.PIPE)
    assert done.returncode == 1 and b"try --chat-template chatml" in done.stderr


def test_list_of_templates():
    given = conversations("plain", 5)
    answers = with_template([{"name": "rag", "template": "x"}, {"name": "default", "template": PLAIN}], given)
    assert answers == [expected(compiled(PLAIN), c) for c in given]


# ---- json.dumps ----

def test_numbers():
    r = random.Random(1)
    values = [s * 2.0**e for e in range(-1074, 1024) for s in (1, -1)] + [10.0**e for e in range(-323, 309)]
    values += [1e22, 1e23, 9007199254740993.0, 0.1 + 0.2, 4.35, 2.5, 123456.0, 1e15, 1e16, 9999999999999998.0, 99999999999999980.0, -0.0]
    while len(values) < 30000:
        x, = struct.unpack("d", r.getrandbits(64).to_bytes(8, "little"))
        if x - x == 0:
            values.append(x)
    values += [float(r.randrange(10**6)) / r.choice([1, 10, 100, 1000]) for _ in range(5000)]
    for x, answer in zip(values, tool(["json"], values)):
        assert answer == repr(x)


def test_dumps():
    r = random.Random(2)
    values = [json_value(r, 5) for _ in range(2000)] + ["".join(map(chr, range(0x300))), {}, [], {"b": {}, "a": []}, [[]]]
    assert tool(["json"], values) == [json.dumps(v, ensure_ascii=False) for v in values]


# ---- The decoder ----

def test_decoder():
    r = random.Random(4)
    pool = [b"a", b"\n", "é".encode(), "世".encode(), "\U0001f600".encode(), b"\xed\xa0\x80", b"\xc0\x80", b"\xff", b"\xe2\x82", b"\xf0\x9f\x98",
            b"\xf4\x90", b"\xe0\x80", b"\xf0\x80", b"\x80"]
    given = []
    for i in range(20000):
        size = r.randrange(12)
        data = r.randbytes(size) if i % 2 else b"".join(r.choice(pool) for _ in range(size))
        given.append({"hex": data.hex(), "cuts": sorted(r.randrange(len(data) + 1) for _ in range(r.randrange(8)))})
    for c, deltas in zip(given, tool(["decode"], given)):
        assert "".join(deltas) == bytes.fromhex(c["hex"]).decode("utf-8", "replace"), c
