"""Trained vocabularies: learned by the rule, from any input, and usable everywhere."""

import contextlib
import json
import pickle
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from hotgrid import _native
from hotgrid.errors import ArgumentError
from hotgrid.tokens import (
    Encoding,
    load_huggingface,
    load_tiktoken,
    save_huggingface,
    save_tiktoken,
    train,
)
from hotgrid.tokens._files import to_bytes
from hotgrid.tokens._patterns import CL100K, GPT2, O200K
from hotgrid.tokens._training import _sources as _train_sources
from hotgrid.tokens._training._twin import alphabet, train_twin

HUGGINGFACE = json.loads((Path(__file__).parent / "trained_by_huggingface.json").read_text())
TEXT = HUGGINGFACE["text"]

# Few letters, so that tokens meet the same bytes made of other parts.
few_letters = st.text("ab c", min_size=1, max_size=40)
any_text = st.text(min_size=1, max_size=40)


def learned(encoding) -> list[bytes]:
    """The tokens of an encoding in order, specials left out."""
    return sorted(encoding._mergeable_ranks, key=encoding._mergeable_ranks.get)


def words_of(texts: list[str], made: Encoding) -> Counter[bytes]:
    """By the encoding itself: the `regex` library may know a newer Unicode."""
    return Counter(word.encode() for text in texts for word in made.split(text))


def _times(token: bytes, word: bytes) -> int:
    """How often a token stands in a word, also where it overlaps itself."""
    return sum(word.startswith(token, at) for at in range(len(word)))


@settings(deadline=None)
@given(
    texts=st.lists(few_letters | any_text, min_size=1, max_size=8),
    pattern=st.sampled_from([GPT2, CL100K, O200K, r"\S+|\s+", r"(?s).+"]),
    tokens=st.integers(256, 300),
    min_frequency=st.integers(1, 4),
    max_token_length=st.none() | st.integers(1, 6),
)
def test_tokens_are_those_of_the_twin(texts, pattern, tokens, min_frequency, max_token_length):
    made = train(
        texts,
        tokens,
        pattern=pattern,
        special_tokens=(),
        min_frequency=min_frequency,
        max_token_length=max_token_length,
    )
    words = words_of(texts, made)
    assert learned(made) == train_twin(words, tokens, min_frequency, max_token_length)


@pytest.mark.parametrize("case", HUGGINGFACE["cases"], ids=["plain", "frequency", "length"])
def test_tokens_are_those_of_huggingface(case: dict):
    """Their trainer was asked once; benchmarks/bench_token_training.py asks it anew."""
    options = {key: case[key] for key in ("min_frequency", "max_token_length")}
    made = train(TEXT, case["vocab_size"], pattern="gpt2", special_tokens=(), **options)
    assert learned(made)[256:] == [to_bytes(token) for token in case["tokens"]]


def test_a_frequent_word_weighs_more_than_many_rare_ones():
    rare = [f"{first}q{last}" for first in "abcde" for last in "uvwxy"]  # 25 words
    made = train([" ".join(rare), " zz" * 30], 257 + 1, pattern=r"\w+", special_tokens=())
    assert learned(made)[256] == b"zz"


def test_equally_frequent_pairs_are_taken_by_their_numbers():
    made = train("ba ab ca ac", 260, pattern=r"\w+", special_tokens=())
    assert learned(made)[256:] == [b"ab", b"ac", b"ba", b"ca"]
    # In the order of GPT-2 a space comes behind all letters.
    assert learned(made)[:256] == [bytes([byte]) for byte in alphabet()]
    assert alphabet().index(b" ") > alphabet().index(b"z")


def test_counts_need_not_fit_into_32_bits():
    trainer = _native.core().TokenTrainer(None, None, 1, 100)
    trainer.add_words({"ab": 2**32 + 1, "xab": 1, "cd": 3})
    trainer.start(257, 1, 100)
    while trainer.run(1):
        pass
    assert trainer.tokens()[256] == b"ab"


@pytest.mark.parametrize("pattern", ["cl100k", r"\w+|\W+"])
def test_texts_files_and_threads_come_to_the_same(pattern: str, tmp_path: Path, monkeypatch):
    texts = [TEXT, "<|cut|>".join(TEXT.split("\n")), "", "naïve \ud83d\ude00 \ud800"]
    whole = [
        text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in texts
    ]
    expected = learned(train(texts, 500, pattern=pattern, special_tokens=["<|cut|>"]))
    paths = [tmp_path / f"{place}.txt" for place in range(len(texts))]
    for path, text in zip(paths, whole, strict=True):
        path.write_bytes(text.encode())
    # Blocks that end anywhere, also within characters and special tokens.
    monkeypatch.setattr(_train_sources, "_BLOCK_BYTES", 31)
    given = [
        tuple(reversed(texts)),
        paths,
        [text.encode() for text in whole],
        [texts[0], paths[1], whole[2].encode(), paths[3]],
    ]
    for sources in given:
        for threads in (1, 3, None):
            made = train(
                iter(sources), 500, pattern=pattern, special_tokens=["<|cut|>"], threads=threads
            )
            assert learned(made) == expected


def test_one_text_or_one_file_needs_no_list(tmp_path: Path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    expected = learned(train([TEXT], 400))
    assert learned(train(TEXT, 400)) == expected
    assert learned(train(TEXT.encode(), 400)) == expected
    assert learned(train(path, 400)) == expected


def test_special_tokens_come_last_and_no_token_crosses_one():
    made = train("ab<|e|>ab<|e|>", 260, pattern=r"(?s).+", special_tokens=["<|e|>", "<|f|>"])
    assert learned(made)[256:] == [b"ab"]
    assert made._special_tokens == {"<|e|>": 257, "<|f|>": 258}
    assert made.n_vocab == 259
    assert made.encode("ab<|f|>", allowed_special="all") == [256, 258]
    assert train("x", 257).eot_token == 256


def test_no_token_is_longer_or_rarer_than_asked():
    made = train(TEXT, 2000, min_frequency=4, max_token_length=5, special_tokens=())
    words = words_of([TEXT], made)
    for token in learned(made)[256:]:
        assert len(token) <= 5
        assert sum(_times(token, word) * count for word, count in words.items()) >= 4
    assert made.n_vocab < 2000
    assert learned(train("aaaa", 300, max_token_length=1))[256:] == []


def test_limits_may_be_as_high_as_you_like():
    endless = dict.fromkeys(("max_token_length", "max_words", "threads"), 10**30)
    assert learned(train(TEXT, 400, **endless)) == learned(train(TEXT, 400))
    assert len(learned(train(TEXT, 400, min_frequency=10**30))) == 256


def test_the_name_of_an_encoding_is_its_pattern():
    made = train(TEXT, 400, pattern="cl100k_base")
    assert learned(made) == learned(train(TEXT, 400, pattern="cl100k"))
    assert made.decode(made.encode(TEXT)) == TEXT
    with pytest.raises(TypeError, match="expression as str"):
        train(TEXT, 400, pattern=b".")


def test_the_rarest_words_go_when_there_are_too_many():
    text = "often often often rare seldom"
    made = train(text, 300, pattern=r"\w+", special_tokens=())
    assert {b"often", b"rare", b"seldom"} <= set(learned(made))
    made = train(text, 300, pattern=r"\w+", max_words=2, special_tokens=())
    assert learned(made) == learned(train("often", 300, pattern=r"\w+", special_tokens=()))
    with pytest.raises(ArgumentError, match="`max_words` is too small"):
        train("all words once", 300, pattern=r"\w+", max_words=2)


def test_what_is_learnt_can_be_used_and_saved_at_once(tmp_path: Path):
    made = train(TEXT, 500, special_tokens=["<|endoftext|>"], name="mine")
    tokens = made.encode(TEXT)
    assert made.name == "mine"
    assert made.n_vocab == 500
    assert made.decode(tokens) == TEXT
    assert len(tokens) < len(TEXT) / 2
    save_tiktoken(made, tmp_path / "mine.tiktoken")
    save_huggingface(made, tmp_path / "tokenizer.json")
    specials = {"<|endoftext|>": 499}
    copies = [
        load_tiktoken(tmp_path / "mine.tiktoken", special_tokens=specials),
        load_huggingface(tmp_path / "tokenizer.json"),
        pickle.loads(pickle.dumps(made)),
    ]
    for copy in copies:
        assert copy.encode(TEXT + "<|endoftext|>", allowed_special="all") == [*tokens, 499]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"vocab_size": 256}, "`vocab_size` must be from 257 .256 bytes and 1 special tokens"),
        ({"vocab_size": 2**24}, "`vocab_size` must be from 257"),
        ({"vocab_size": "many"}, "`vocab_size` must be from 257"),
        ({"pattern": ""}, "`pattern` must be a regular expression or one of gpt2, cl100k"),
        ({"pattern": "("}, "`pattern` '.' is not a pattern"),
        ({"pattern": "o200"}, "there is no pattern `o200`; did you mean `o200k`?"),
        ({"special_tokens": ["<|a|>", "<|a|>"]}, "`special_tokens` has '<|a|>' more than once"),
        ({"special_tokens": [""]}, "`special_tokens` must be strings, not empty"),
        ({"special_tokens": "<|a|>"}, r"got one str; write \['<|a|>'\]"),
        ({"min_frequency": 0}, "`min_frequency` must be at least 1, got 0"),
        ({"max_token_length": 0}, "`max_token_length` must be at least 1, got 0"),
        ({"max_words": 0}, "`max_words` must be at least 1, got 0"),
        ({"threads": 0}, "`threads` must be at least 1, got 0"),
        ({"texts_or_files": []}, "`texts_or_files` holds no text"),
        ({"texts_or_files": ["", b""]}, "`texts_or_files` holds no text"),
        ({"texts_or_files": Path("nowhere.txt")}, "cannot read `nowhere.txt`: No such file"),
        ({"texts_or_files": [b"ab \xff"]}, "a text of `texts_or_files` is not UTF-8: byte 3"),
        ({"texts_or_files": ["\ud800", b"\xff"]}, "`texts_or_files` is not UTF-8: byte 0"),
        ({"texts_or_files": [b"\xff"], "pattern": ".+"}, "`texts_or_files` is not UTF-8"),
        ({"texts_or_files": Path("nowhere"), "pattern": ".+"}, "cannot read `nowhere`"),
    ],
)
def test_errors_name_the_argument(arguments: dict, message: str):
    given = {"texts_or_files": ["some text"], "vocab_size": 300, **arguments}
    with pytest.raises(ArgumentError, match=message):
        train(**given)


def test_a_file_that_is_not_utf8_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "latin1.txt"
    path.write_bytes("some words and caf\xe9 and more words".encode("latin1"))
    with pytest.raises(ArgumentError, match=r"latin1.txt` is not UTF-8"):
        train(path, 300, pattern=".+")
    for block in (7, 1000):
        monkeypatch.setattr(_train_sources, "_BLOCK_BYTES", block)
        with pytest.raises(ArgumentError, match=r"latin1.txt` is not UTF-8: byte 18 begins"):
            train(path, 300)


@pytest.mark.parametrize("pattern", ["cl100k", r"\w+"])
@pytest.mark.parametrize("wrong", [3, [3], [None, "text"]])
def test_what_is_no_text_is_refused(wrong: object, pattern: str):
    with pytest.raises(TypeError, match=r"`texts_or_files` must .* got (int|NoneType)"):
        train(wrong, 300, pattern=pattern)


def test_a_bar_is_shown_when_asked_for(capsys: pytest.CaptureFixture[str]):
    train(TEXT, 400, progress=True)
    shown = capsys.readouterr().err
    assert "making tokens" in shown
    assert "399 of 399" in shown
    train(TEXT, 400)
    assert capsys.readouterr().err == ""


def test_it_can_be_interrupted():
    """Texts without end: only the signal ends it."""
    program = """
import itertools, signal, sys
from hotgrid.tokens import train
# A shell may have started the tests in the background, where signals are ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
def texts():
    print("ready", flush=True)
    yield from itertools.repeat("some words " * 1000)
try:
    train(texts(), 300)
except KeyboardInterrupt:
    sys.exit(42)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 42
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
