"""The engine against the numpy oracle on containers of other seeds and shapes, made here: argmax and logits digest of every position, and greedy ids."""
import os, subprocess, sys
import pytest

SOURCE, BIN = os.environ["OUTRIDER_SOURCE"], os.environ["OUTRIDER_BIN"]

SHAPES = [
    dict(seed=11), dict(seed=12, hidden=256, heads=2, kv=2, head_dim=64, inter=512, vocab=257),
    dict(seed=13, hidden=264, heads=6, kv=3, head_dim=40, inter=300, vocab=130, layers=1), dict(seed=14, tied=True, layers=3),
    dict(seed=15, arch=1), dict(seed=16, arch=1, tied=True, hidden=65, heads=1, kv=1, head_dim=32, inter=257),
    dict(seed=17, hidden=63, heads=8, kv=1, head_dim=16, inter=96), dict(seed=18, hidden=512, heads=4, kv=4, head_dim=128, inter=520, layers=1),
    dict(seed=19, theta=10000.0, vocab=97), dict(seed=20, heads=12, kv=4, head_dim=8, hidden=100, inter=33, layers=4),
]


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: f"seed{s['seed']}")
def test_engine_equals_oracle(shape, tmp_path):
    path = str(tmp_path / "toy.trtc")
    flags = []
    for key, value in shape.items():
        flags += ["--" + key.replace("_", "-")] + ([] if value is True else [str(value)])
    run(sys.executable, f"{SOURCE}/tools/make_toy.py", path, *flags)
    arguments = ["--ids", "1,2,3,77,5,60,8", "--greedy", "12"]
    expected = run(sys.executable, f"{SOURCE}/tools/oracle.py", path, *arguments)
    assert expected.count("\n") == 8
    assert run(BIN, "probe", path, *arguments) == expected
    assert run(BIN, "probe", path, *arguments, "--cpu-mask", "ref", "-t", "3") == expected
