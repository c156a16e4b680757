"""The tokenizer against the reference (`tokenizers`): listed cases, every character, and random texts of many scripts."""

import os
import random
import struct
import subprocess

import pytest
import tokenizers

TOOL = os.environ["OUTRIDER_TEXT_TOOL"]
QWEN = os.path.join(os.environ["OUTRIDER_QWEN_TOKENIZER"], "tokenizer.json")
DEMO = os.path.join(os.environ["OUTRIDER_SOURCE"], "models", "demo", "tokenizer.json")

LISTED = [
    "", " ", "\n", "->", "(x):\n", "2026", "a   b", "x \n\n  y", "don'T", "DON'T they'Re I'LL we'vE 'd 'M 's",
    "a\u3000b", "\u3000\u3000x", "a\u00a0b", "\u00a0\u00a0", "e\u0301", "\u0301", "a\u0300\u0316\u0301b", "q\u0307\u0323", "\u1e0b\u0323",
    "\u1112\u1161\u11ab\u1100\u1173\u11af", "\u1100\u1161 \u11a8", "\ud55c\uae00", "\uac00\u11a8", "\U0001f469\u200d\U0001f469\u200d\U0001f467",
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "\U0001f1e9\U0001f1ea", "\u2764\ufe0f", "\u180e", " \u180e x",
    "\uac00\u11a7", "\u0301\u09fe\u09bc", "\U00011935\U00011930", "\u212b", "\u2126", "\u0340\u0341\u0343\u0344", "\u0958\u09dc", "\ufb1d\ufb2a", "\u2adc", "\U0001d15e", "\u0f73\u0f75\u0f81",
    "'\u017f", "'\u017fa", "'\u212a", "\r\n\r\n", "a\r\nb", " \r \n ", "\x85x", "\u2028\u2029", "\x1c\x1d\x1e\x1f", "\x00a\x00", "\ufeffa",
    "<|im_end|>", "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n", "<|im_end|", "<|im_<|im_end|>end|>",
    "<|endoftext|><|endoftext|>", "<tool_call>\n{\"name\": 1}\n</tool_call>", "<think></think>", "e<think>\u0301", "<|im_end|>\u0338",
    "a" * 5000, " " * 5000, "7" * 1000, "\n" * 3000, " \n" * 1500, "ab" * 2000, "\u0301\u0316" * 1000, "=" * 777, "\u4e2d\u6587" * 500,
]

RANGES = [
    (0x20, 0x7e), (0x20, 0x7e), (0xa0, 0x24f), (0x250, 0x2ff), (0x300, 0x36f), (0x370, 0x3ff), (0x400, 0x52f), (0x531, 0x58f), (0x591, 0x5f4),
    (0x600, 0x6ff), (0x900, 0x97f), (0x980, 0x9fe), (0xb80, 0xbfa), (0xe01, 0xe5b), (0xf00, 0xfda), (0x10a0, 0x10ff), (0x1100, 0x11ff),
    (0x1e00, 0x1eff), (0x1f00, 0x1ffe), (0x2000, 0x206f), (0x2070, 0x209c), (0x20a0, 0x20bf), (0x20d0, 0x20f0), (0x2100, 0x214f),
    (0x2190, 0x22ff), (0x2460, 0x24ff), (0x2500, 0x27bf), (0x3000, 0x30ff), (0x3131, 0x318e), (0x4e00, 0x9fef), (0xac00, 0xd7a3), (0xf900, 0xfad9),
    (0xfb00, 0xfb4f), (0xfe00, 0xfe0f), (0xff01, 0xffee), (0x10330, 0x1034a), (0x1d100, 0x1d1e8), (0x1d400, 0x1d7ff), (0x1f300, 0x1f6d7),
    (0x20000, 0x2a6d6), (0x2f800, 0x2fa1d),
]

PARTS = [
    " ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", " \n", "\u00a0", "\u3000", "\u2003", "\u180e", "\u200b", "\x0b", "\x85", "\u2028",
    "'s", "'S", "'t", "'RE", "'ve", "'m", "'ll", "'D", "n't", "'", "\u2019s", "'\u017f", "0", "7", "2026", "3.14", "\u0663", "\u00b2", "\u2167", "\uff15",
    "the", " the", "Hello", " world", "return", "->", "();", "//", "/*", "{\n", "}\n\n", "    ", "import", "foo_bar", "camelCase", "\"", "...", "--",
    "\u0301", "\u0323", "\u0307", "\u0327", "\u0338", "\u0345", "\u3099", "\u309a", "e\u0301", "\u00e9", "A\u030a", "\u212b", "\u1100\u1161", "\u11a8", "\u1112\u1161\u11ab",
    "\U0001f600", "\U0001f44d\U0001f3fd", "\U0001f469\u200d\U0001f4bb", "\u200d", "\ufe0f", "\U0001f1eb\U0001f1f7", "\u4f60\u597d", "\u3053\u3093", "\u0915\u094d\u0937",
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "</think>", "<tool_call>", "</tool_call>", "<|im_", "<", "|>", "<|",
    "<|fim_prefix|>", "<|vision_pad|>", "\x00", "\ufeff", "\ufffd",
]


def encode(mode, path, texts):
    """Ids of each text from text_tool."""
    data = b"".join(struct.pack("<I", len(t)) + t for t in texts)
    done = subprocess.run([TOOL, mode, path], input=data, stdout=subprocess.PIPE, check=True)
    found, at = [], 0
    while at < len(done.stdout):
        (n,) = struct.unpack_from("<I", done.stdout, at)
        found.append(list(struct.unpack_from(f"<{n}I", done.stdout, at + 4)))
        at += 4 + 4 * n
    assert len(found) == len(texts)
    return found


def random_text(rng):
    out = []
    script = rng.choice(RANGES)
    for _ in range(rng.randrange(1, 24)):
        kind = rng.random()
        if kind < 0.45:
            out.append(rng.choice(PARTS))
        elif kind < 0.85:
            out.append("".join(chr(rng.randint(*script)) for _ in range(rng.randrange(1, 5))))
        else:
            script = rng.choice(RANGES)
            out.append(chr(rng.randint(*script)))
    return "".join(out)


def load(path):
    return tokenizers.Tokenizer.from_file(path)


def compare(path, texts, plain=False, reference=None):
    reference = reference or load(path)
    reference.encode_special_tokens = plain
    found = encode("encode-plain" if plain else "encode", path, [t.encode() for t in texts])
    for begin in range(0, len(texts), 5000):
        expected = reference.encode_batch_fast(texts[begin:begin + 5000], add_special_tokens=False)
        for text, e, f in zip(texts[begin:], expected, found[begin:]):
            assert f == e.ids, f"{text!r}: expected {e.ids}, found {f}"


@pytest.mark.parametrize("path", [QWEN, DEMO], ids=["qwen", "demo"])
@pytest.mark.parametrize("plain", [False, True], ids=["specials", "plain"])
def test_listed(path, plain):
    compare(path, LISTED, plain)


def test_known():
    assert encode("encode", QWEN, [b"->", b"2026"]) == [[405], [17, 15, 17, 21]]
    assert encode("encode", QWEN, [b"<|im_end|>"]) == [[151645]]
    assert encode("encode-plain", QWEN, [b"<|im_end|>"]) == [[27, 91, 318, 6213, 91, 29]]


def test_every_character():
    """Normalisation and splitting of each character of the basic plane, between marks that are not in order."""
    characters = [chr(c) for c in range(0x10000) if not 0xd800 <= c < 0xe000]
    compare(QWEN, [f"q\u0345{c}\u0334 {c}1{c}" for c in characters])


def test_random_qwen():
    rng = random.Random(20260131)
    compare(QWEN, [random_text(rng) for _ in range(100_000)])


def test_random_qwen_plain():
    rng = random.Random(7)
    compare(QWEN, [random_text(rng) for _ in range(10_000)], plain=True)


def test_random_demo():
    rng = random.Random(11)
    compare(DEMO, [random_text(rng) for _ in range(20_000)])


def bytes_of(path):
    """Raw bytes of each id."""
    alphabet, extra = {}, 0x100
    for b in range(256):
        if 0x21 <= b <= 0x7e or 0xa1 <= b <= 0xac or b >= 0xae:
            alphabet[chr(b)] = b
        else:
            alphabet[chr(extra)] = b
            extra += 1
    reference = load(path)
    added = {i: t.content.encode() for i, t in reference.get_added_tokens_decoder().items()}
    return {i: added.get(i) or bytes(alphabet[c] for c in s) for s, i in reference.get_vocab().items()}


@pytest.mark.parametrize("path", [QWEN, DEMO], ids=["qwen", "demo"])
def test_bytes_round_trip(path):
    """Any bytes come back from their ids. What is not UTF-8 ends the text on both sides of it."""
    rng = random.Random(3)
    texts = [b"\xe6\xad", b"\xff", b"\xed\xa0\x80", b"a\xffb", b"\xf4\x90\x80\x80", b"\xc0\x80", b"caf\xc3", b"\xe6\xad \xe6\xad\xa3"]
    texts += [bytes(rng.randrange(256) for _ in range(rng.randrange(1, 60))) for _ in range(2000)]
    tokens = bytes_of(path)
    for text, found in zip(texts, encode("encode", path, texts)):
        assert b"".join(tokens[i] for i in found) == text or any(b >= 0xcc for b in text)
    plain = [bytes(b for b in t if b < 0xcc) for t in texts]  # nothing that NFC could change
    for text, found in zip(plain, encode("encode", path, plain)):
        assert b"".join(tokens[i] for i in found) == text
    alone = encode("encode", path, [b"a  ", b"b", b"\xff", b"a  \xffb"])
    assert alone[3] == alone[0] + alone[2] + alone[1]
