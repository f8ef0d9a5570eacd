"""Other tokenizers are measured in processes of their own; wrong tokens get no figure."""

import importlib
import json
from pathlib import Path

import pytest

from hotgrid import tokens


@pytest.fixture
def libraries(scripts: Path):
    """The module that measures one library."""
    return importlib.import_module("peers.token_libraries")


@pytest.fixture
def judged(scripts: Path):
    """The function that takes away wrong figures."""
    return importlib.import_module("bench_tokens").judged


@pytest.fixture
def vocabulary(tmp_path: Path) -> str:
    encoding = tokens.train(["low lower lowest"], vocab_size=260)
    tokens.save_tiktoken(encoding, tmp_path / "mine.tiktoken")
    return str(tmp_path / "mine.tiktoken")


def subject(libraries, vocabulary: str, pattern: str):
    return libraries.Subject("mine", pattern, "gpt2", vocabulary, None, published=False)


@pytest.mark.parametrize("form", ["list", "flat"])
def test_tiktoken_gives_the_same_tokens(libraries, vocabulary, form, tmp_path):
    texts = tmp_path / "texts.json"
    texts.write_text(json.dumps(["lower the lowest", "", "new"]))
    mine = subject(libraries, vocabulary, r"\w+|\W+")
    found = [
        libraries.measured(libraries.Job(name, mine, str(texts), form, passes=1))
        for name in ("hotgrid", "tiktoken")
    ]
    assert found[0]["digest"] == found[1]["digest"]
    assert all(each["first"] > 0 < each["best"] for each in found)


def test_a_library_that_fails_is_a_reason(libraries, vocabulary):
    broken = subject(libraries, vocabulary, "(")
    found = libraries.measured(libraries.Job("hotgrid", broken))
    assert found["failed"].startswith("ArgumentError")
    assert libraries.measured(libraries.Job("tiktoken", broken))["failed"]


def test_loading_alone_is_measured(libraries, vocabulary):
    found = libraries.measured(libraries.Job("hotgrid", subject(libraries, vocabulary, "gpt2")))
    assert found["load"] > 0
    assert found["peak"] > 1_000_000
    assert "first" not in found


def test_wrong_tokens_get_no_figure(judged):
    right = {"first": 0.2, "best": 0.1, "digest": "right"}
    found = judged(
        {
            "hotgrid": dict(right),
            "tiktoken": dict(right),
            "gigatoken": right | {"digest": "wrong"},
            "quicktok": {"absent": "No module named 'quicktok'"},
        }
    )
    assert found["gigatoken"] == {"note": "other tokens than tiktoken"}
    assert found["quicktok"] == {"note": "absent: No module named 'quicktok'"}
    with pytest.raises(SystemExit, match="hotgrid: other tokens than tiktoken"):
        judged({"hotgrid": right | {"digest": "wrong"}, "tiktoken": right})
