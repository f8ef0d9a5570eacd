"""Many texts in one array."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, strategies as st

from hotgrid.errors import ArgumentError

from .test_equality import both, texts

batches = st.lists(texts, max_size=6)


@given(batch=batches)
def test_a_batch_is_its_texts_one_by_one(batch: list[str]):
    encoding, _ = both("cl100k_base")
    rows = [encoding.encode_ordinary(text) for text in batch]
    assert encoding.encode_ordinary_batch(batch) == rows
    flat = encoding.encode_flat(batch, disallowed_special=())
    assert (flat.tokens.dtype, flat.offsets.dtype) == (np.uint32, np.int64)
    assert flat.offsets.tolist() == np.cumsum([0, *map(len, rows)]).tolist()
    assert [row.tolist() for row in flat.rows()] == rows


@given(
    batch=batches,
    length=st.none() | st.integers(0, 12),
    side=st.sampled_from(["left", "right"]),
)
def test_padded_rows(batch: list[str], length: int | None, side: str):
    encoding, _ = both("cl100k_base")
    padded = encoding.encode_padded(
        batch, pad_token=7, length=length, side=side, disallowed_special=()
    )
    rows = [encoding.encode_ordinary(text) for text in batch]
    width = length if length is not None else max(map(len, rows), default=0)
    assert padded.tokens.shape == (len(batch), width)
    for row, found, size in zip(rows, padded.tokens.tolist(), padded.lengths, strict=True):
        kept, filling = row[:width], [7] * (width - len(row[:width]))
        assert found == (filling + kept if side == "left" else kept + filling)
        assert size == len(kept)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"side": "top"}, "`side` must be"),
        ({"pad_token": -1}, "`pad_token` must be a token, got -1"),
        ({"pad_token": "x"}, "`pad_token` must be a token, got 'x'"),
        ({"length": 1.5}, "`length` must be a number of tokens, got 1.5"),
        ({"length": -1}, "`length` must not be negative, got -1"),
        ({"num_threads": 0}, "`num_threads` must be at least 1, got 0"),
    ],
)
def test_bad_arguments(settings: dict, words: str):
    encoding, _ = both("cl100k_base")
    with pytest.raises(ArgumentError, match=words):
        encoding.encode_padded(["a"], **{"pad_token": 0} | settings)


def test_one_text_is_no_batch():
    encoding, _ = both("cl100k_base")
    with pytest.raises(TypeError, match="write \\[text\\]"):
        encoding.encode_flat("text")
    with pytest.raises(TypeError, match="must be a list of str, got NoneType"):
        encoding.encode_flat(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"expected texts \(str\), got NoneType at index 1"):
        encoding.encode_flat(["a", None, "c"])  # type: ignore[list-item]


def test_the_arrays_outlive_the_encoding_and_can_be_written_to():
    encoding, _ = both("cl100k_base")
    flat = encoding.encode_flat(["Hello world", "é"])
    flat.tokens[0] = 1
    assert flat.tokens[0] == 1
    assert not encoding.encode_to_numpy("a").flags.writeable


PROGRAM = """
import random, sys, threading, os
from hotgrid import _native
from hotgrid.tokens import get_encoding
assert _native.core().threads() == 4
encoding = get_encoding("cl100k_base")
dice = random.Random(0)
words = ["Hello", " world", "\\n", " don't", " 12345", "日本語", " Привет", ".", "  "]
words.append("<|endoftext|>")
texts = ["".join(dice.choices(words, k=dice.choice([0, 5, 4000, 90_000]))) for _ in range(12)]
rules = {"allowed_special": "all"}
one = encoding.encode_flat(texts, num_threads=1, **rules)
for threads in (2, 4, 50, None):
    many = encoding.encode_flat(texts, num_threads=threads, **rules)
    assert (one.tokens == many.tokens).all() and (one.offsets == many.offsets).all()
# Without specials to look for, texts become UTF-8 on the threads.
plain = {"disallowed_special": ()}
one_plain = encoding.encode_flat(texts, num_threads=1, **plain)
for threads in (2, 4):
    copies = [text[:1] + text[1:] for text in texts]
    many = encoding.encode_flat(copies, num_threads=threads, **plain)
    assert (one_plain.tokens == many.tokens).all()
    assert (one_plain.offsets == many.offsets).all()
whole = "".join(texts)
alone = encoding.encode_flat([whole], num_threads=1, **rules).tokens
assert (encoding.encode_flat([whole], **rules).tokens == alone).all()
assert encoding.encode(whole, **rules) == alone.tolist()  # above a megabyte: cut by itself

# Callers with threads of their own, and children of fork.
results = [None] * 6
def work(i):
    results[i] = encoding.encode_batch(texts, **rules)
callers = [threading.Thread(target=work, args=(i,)) for i in range(6)]
[c.start() for c in callers]; [c.join() for c in callers]
assert all(r == results[0] for r in results)
child = os.fork()
if child == 0:
    same = (encoding.encode_flat(texts, **rules).tokens == one.tokens).all()
    os._exit(0 if same else 1)
assert os.waitpid(child, 0)[1] == 0
"""


def test_threads_change_nothing():
    """In a process of its own: here the core has one thread."""
    done = subprocess.run(
        # Newer Pythons warn of a fork beside threads, which is what is tried.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PROGRAM],
        env={**os.environ, "HOTGRID_THREADS": "4"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
