"""Without the native core the same answers come from plain Python."""

import json
import os
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from hotgrid.errors import ArgumentError, MissingPartError
from hotgrid.tokens import Encoding, train
from hotgrid.tokens._patterns import LEXERS

from .test_encoding import CALLS, outcome
from .test_equality import both, texts
from .test_merging import pieces, vocabularies

README = Path(__file__).parents[2] / "README.md"
SPECIALS = {"<|a|>": 2_000_000, "<|a|>b": 2_000_001, "ab": 2_000_002}


@contextmanager
def without_core() -> Iterator[None]:
    """The native core is not found."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hotgrid._native.available", lambda: False)
        yield


@cache
def plain(name: str) -> Encoding:
    """An encoding of OpenAI without the native core."""
    encoding, _ = both(name)
    with without_core():
        return Encoding(
            name,
            pat_str=encoding._pat_str,
            mergeable_ranks=encoding._mergeable_ranks,
            special_tokens=encoding._special_tokens,
        )


def answers(encoding: Encoding, text: str) -> list[object]:
    """What an encoding says about a text."""
    tokens = encoding.encode(text, allowed_special="all")
    flat = encoding.encode_flat([text, "a"], allowed_special="all")
    return [
        tokens,
        encoding.split(text),
        encoding.encode_ordinary(text),
        encoding.encode_batch([text, text], allowed_special="all"),
        encoding.encode_to_numpy(text, allowed_special="all").tolist(),
        flat.tokens.tolist(),
        flat.offsets.tolist(),
        encoding.count(text, allowed_special="all"),
        encoding.count_till_limit(text, 2, disallowed_special=()),
        encoding.encode_with_offsets(text, allowed_special="all"),
        encoding.encode_with_offsets(text, unit="byte", allowed_special="all"),
        encoding.decode_bytes(tokens),
        encoding.decode_with_offsets(tokens),
        encoding.decode_tokens_bytes(tokens),
    ]


def is_assigned(text: str) -> bool:
    """Whether all characters are old: the core and `regex` know different Unicode versions."""
    return all(unicodedata.category(each) != "Cn" for each in text)


@given(
    ranks=vocabularies(),
    text=st.text("abé中 <|>", max_size=30) | texts.filter(is_assigned),
    pattern=st.sampled_from([*LEXERS, r"\w+|\W"]),
)
def test_the_answers_are_the_same(ranks: dict[bytes, int], text: str, pattern: str):
    settings = {"pat_str": pattern, "mergeable_ranks": ranks, "special_tokens": SPECIALS}
    expected = answers(Encoding("x", **settings), text)
    with without_core():
        assert answers(Encoding("x", **settings), text) == expected


@given(ranks=vocabularies(), data=st.data(), piece=pieces)
def test_pairs_join_as_a_list_says(ranks: dict[bytes, int], data, piece: str):
    splits = [
        (ranks[token[:at]], ranks[token[at:]], rank)
        for token, rank in ranks.items()
        for at in range(1, len(token))
        if token[:at] in ranks and token[at:] in ranks
    ]
    merges = (data.draw(st.permutations(splits)), data.draw(st.booleans()))
    settings = {"pat_str": "gpt2", "mergeable_ranks": ranks, "special_tokens": {}}
    expected = Encoding._from_merges("x", **settings, merges=merges).encode(piece)
    with without_core():
        assert Encoding._from_merges("x", **settings, merges=merges).encode(piece) == expected


@pytest.mark.parametrize("name", ["cl100k_base", "gpt2"])
def test_real_vocabularies(name: str):
    text = README.read_text() + "a" * 5_000 + "\x00ḃ" * 20
    _, theirs = both(name)
    with without_core():
        assert plain(name).encode(text) == theirs.encode(text)


@pytest.mark.parametrize("name", CALLS)
def test_answers_and_exceptions_are_those_of_tiktoken(name: str):
    _, theirs = both("cl100k_base")
    expected = outcome(CALLS[name], theirs)
    with without_core():
        found = outcome(CALLS[name], plain("cl100k_base"))
    if isinstance(expected, Exception):
        assert isinstance(found, type(expected)), found
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (b"YQ== 0\nYQ==", "line 2: expected a token in base64, a space and a rank"),
        (b"YQ= 0", "line 1: the token is not base64"),
        (b"YQ== -1", "line 1: the rank is not a number below 4294967295"),
        (b"YQ== 4294967295", "line 1: the rank is not a number"),
        (b"YQ== 1\nYg== 1", "two tokens have the rank 1"),
        (b"", "has no tokens"),
    ],
)
def test_files_are_refused_alike(file: bytes, words: str):
    settings = {"pat_str": "gpt2", "special_tokens": {}}
    with pytest.raises(ArgumentError, match=words):
        Encoding.from_rank_file("x", file, **settings)
    with without_core(), pytest.raises(ArgumentError, match=words):
        Encoding.from_rank_file("x", file, **settings)


def test_a_byte_that_is_no_token_is_refused():
    with without_core():
        encoding = Encoding("x", pat_str="gpt2", mergeable_ranks={b"a": 0}, special_tokens={})
        with pytest.raises(ArgumentError, match="the byte 0x62, not a token"):
            encoding.encode("ab")


def test_learning_needs_the_core(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("hotgrid._native.available", lambda: False)
    monkeypatch.setattr("hotgrid._native.missing", lambda: "it is not built here")
    with pytest.raises(MissingPartError, match="native core, and it is not built here"):
        train(["a b"], 300)


def tokens_command(*words: str, native: str) -> subprocess.CompletedProcess[str]:
    """`hotgrid tokens` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "hotgrid", "tokens", *words],
        env=os.environ | {"HOTGRID_NATIVE": native},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_line_counts_without_the_core():
    on, off = (tokens_command("count", str(README), "--json", native=n) for n in ("on", "off"))
    assert off.returncode == 0, off.stderr
    assert json.loads(off.stdout) == json.loads(on.stdout)
    wrong = tokens_command(
        "train", str(README), "--vocab-size=300", "--out=x.json", native="off"
    )
    assert wrong.returncode == 1
    assert "Traceback" not in wrong.stderr
    assert "native core" in wrong.stderr
