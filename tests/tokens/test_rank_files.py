"""`.tiktoken` files."""

from pathlib import Path

import pytest
from hypothesis import given

from hotgrid.errors import ArgumentError
from hotgrid.tokens import Encoding, load_tiktoken, save_tiktoken

from .test_equality import both
from .test_merging import vocabularies
from .vocabularies import _FILES, files


def test_a_published_file_comes_back_byte_by_byte(tmp_path: Path):
    encoding, _ = both("p50k_base")
    save_tiktoken(encoding, tmp_path / "p50k_base.tiktoken")
    assert (tmp_path / "p50k_base.tiktoken").read_bytes() == files()[_FILES["p50k_base"]]


@given(ranks=vocabularies())
def test_any_vocabulary_comes_back(ranks: dict[bytes, int], tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "mine.tiktoken"
    settings = {"pat_str": r"\w+|\W", "special_tokens": {"<s>": 9_000_000}}
    save_tiktoken(Encoding("x", mergeable_ranks=ranks, **settings), path)
    loaded = load_tiktoken(path, **settings)
    assert loaded.name == "mine"
    assert loaded._mergeable_ranks == ranks
    assert loaded._special_tokens == settings["special_tokens"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"aGk= 0\nnonsense", "line 2: expected a token"),
        (b"aGk= 0\n\xff\xff 1", "line 2: the token is not base64"),
        (b"aGk= 0\naQ== -1", "line 2: the rank is not a number"),
        (b"aGk= 0\naQ== 0", "two tokens have the rank 0"),
        (b"aGk= 0\naGk= 1", "ranks 0 and 1 are the same token"),
        (b"", "has no tokens"),
        (b"\n\n", "has no tokens"),
    ],
)
def test_files_that_are_invalid(data: bytes, words: str, tmp_path: Path):
    path = tmp_path / "bad.tiktoken"
    path.write_bytes(data)
    with pytest.raises(ArgumentError, match=rf"bad\.tiktoken` cannot be read: .*{words}"):
        load_tiktoken(path)


@pytest.mark.parametrize("pattern", ["cl100k", "cl100k_base"])
def test_a_pattern_by_its_name(pattern: str, tmp_path: Path):
    encoding, _ = both("cl100k_base")
    save_tiktoken(encoding, tmp_path / "mine.tiktoken")
    loaded = load_tiktoken(tmp_path / "mine.tiktoken", pat_str=pattern)
    assert loaded.encode("hello world") == encoding.encode("hello world")


@pytest.mark.parametrize(
    ("number", "error"), [(-1, OverflowError), (2**32 - 1, ArgumentError), (1.5, TypeError)]
)
def test_special_tokens_that_are_invalid(number: float, error: type, tmp_path: Path):
    (tmp_path / "mine.tiktoken").write_bytes(b"aGk= 0")
    with pytest.raises(error, match="`special_tokens`: the number of '<s>' must be"):
        load_tiktoken(tmp_path / "mine.tiktoken", special_tokens={"<s>": number})


def test_places_that_are_invalid(tmp_path: Path):
    with pytest.raises(ArgumentError, match=r"cannot read `.*nowhere`: No such file"):
        load_tiktoken(tmp_path / "nowhere")
    encoding, _ = both("gpt2")
    (tmp_path / "file").write_text("")
    with pytest.raises(ArgumentError, match="cannot write"):
        save_tiktoken(encoding, tmp_path / "file" / "below.tiktoken")
