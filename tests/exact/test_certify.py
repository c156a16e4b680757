"""27,648 tokens of the embedded pair, drafted against plain: ids and logits, with the controller and with random draft lengths."""
import json, os, subprocess
import pytest

BIN, SOURCE = os.environ["OUTRIDER_BIN"], os.environ["OUTRIDER_SOURCE"]


def verify(*arguments):
    command = [BIN, "verify", f"{SOURCE}/models/demo", "--json", *arguments]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_certified_length():
    drafted = verify("--tokens", "27648", "--draft-length", "random")
    assert drafted["tokens"] == 27648 and drafted["divergences"] == 0 and drafted["first_divergence"] is None
    assert 0.1 < drafted["acceptance"] < 1


@pytest.mark.parametrize("length", ["auto", "0", "1", "4", "16"])
def test_same_digests_for_every_length(length):
    a = verify("--tokens", "1000", "--draft-length", length)
    b = verify("--tokens", "1000", "--draft-length", "random", "--cpu-mask", "ref", "-t", "1") if length == "4" else verify("--tokens", "1000")
    assert a["divergences"] == b["divergences"] == 0
    assert (a["ids_digest"], a["logits_digest"]) == (b["ids_digest"], b["logits_digest"])
