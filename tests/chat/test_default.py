"""The model that comes with hotgrid: what it is, how good, and that the command finds it."""

import math
import subprocess
import sys

import pytest
import torch
from torch.nn import functional

from hotgrid.chat import LanguageModel, load_model
from hotgrid.cli import main

# The beginning of a novel that was held out of its training.
HELD_OUT = (
    "My father's family name being Pirrip, and my Christian name Philip, my infant tongue "
    "could make of both names nothing longer or more explicit than Pip. So, I called myself "
    "Pip, and came to be called Pip. I give Pirrip as my father's family name, on the "
    "authority of his tombstone and my sister, Mrs. Joe Gargery, who married the blacksmith."
)


@pytest.fixture(scope="module")
def default() -> LanguageModel:
    return load_model()


def test_it_is_small_and_says_what_it_is(default: LanguageModel) -> None:
    assert default.path is not None
    assert sum(each.stat().st_size for each in default.path.iterdir()) <= 12_000_000
    assert set(default.card["licences"]) == set(default.card["data"])
    assert all(default.card["licences"].values()) and default.card["samples"]
    assert "often wrong" in default.card["not"]


def test_it_has_learned_english(default: LanguageModel) -> None:
    bos = default.encoding.encode_single_token("<|bos|>")
    tokens = torch.tensor([[bos, *default.encoding.encode(HELD_OUT)]])
    with torch.no_grad():
        logits = default.model(tokens[:, :-1])
    nats = functional.cross_entropy(logits[0].float(), tokens[0, 1:], reduction="sum")
    bits = nats.item() / math.log(2) / len(HELD_OUT.encode())
    assert bits < 2.2
    # A text of the same letters in another order is harder.
    turned = torch.tensor([[bos, *default.encoding.encode(HELD_OUT[::-1])]])
    with torch.no_grad():
        logits = default.model(turned[:, :-1])
    other = functional.cross_entropy(logits[0].float(), turned[0, 1:], reduction="sum")
    assert other > 1.5 * nats


@pytest.mark.slow
def test_talk_needs_no_path(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another process says the same."""
    command = ["chat", "talk", "--prompt", "The old man", "--max-tokens", "12", "--seed", "3"]
    apart = subprocess.run(
        [sys.executable, "-m", "hotgrid", *command], capture_output=True, text=True, check=True
    )
    monkeypatch.setattr(sys, "argv", ["hotgrid", *command])
    with pytest.raises(SystemExit, match="0"):
        main()
    assert capsys.readouterr().out == apart.stdout
    assert len(apart.stdout.split()) >= 3
