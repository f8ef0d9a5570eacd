"""The vocabulary that comes with hotgrid: always present, and the one its card describes."""

import hashlib
import pickle
import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from hotgrid.errors import ArgumentError
from hotgrid.tokens import DEFAULT_ENCODING, get_encoding, list_encoding_names
from hotgrid.tokens._patterns import O200K
from hotgrid.tokens._registry import _EMBEDDED, _embedded_file
from hotgrid.tokens._training._twin import alphabet
from hotgrid.tokens._twin import Twin

SHA256 = "144a8daa320b273c20e4392af627d230d7d51f8b02f8f5e75337c296dc0c9c84"
CARD = Path(__file__).parents[2] / "docs" / "reference" / "vocabulary_card.md"


def test_it_is_the_file_that_the_card_describes():
    data = zlib.decompress(_embedded_file(DEFAULT_ENCODING).read_bytes(), wbits=31)
    assert hashlib.sha256(data).hexdigest() == SHA256
    assert SHA256 in CARD.read_text(encoding="utf-8")
    assert _embedded_file(DEFAULT_ENCODING).stat().st_size < 300_000


def test_it_is_what_comes_when_nothing_is_asked_for():
    encoding = get_encoding()
    assert encoding is get_encoding("hotgrid_32k")
    assert encoding.name == DEFAULT_ENCODING == list_encoding_names()[0]
    assert encoding.n_vocab == 32768
    assert encoding.eot_token == 32752
    assert len(encoding.special_tokens_set) == 16
    assert encoding._pat_str == O200K
    ranks = encoding._mergeable_ranks
    assert sorted(ranks.values()) == list(range(32752))
    assert [ranks[bytes([byte])] for byte in alphabet()] == list(range(256))
    assert max(map(len, ranks)) == 32
    assert pickle.loads(pickle.dumps(encoding)).encode("a b") == encoding.encode("a b")


def test_every_token_can_be_reached():
    encoding = get_encoding()
    for token, rank in encoding._mergeable_ranks.items():
        assert encoding._merge_single_piece(token) == [rank]


@settings(deadline=None, max_examples=50)
@given(text=st.text(max_size=40) | st.text("the cat's 12345\n  ÄÖпривет中文<|endoftext|>"))
def test_it_encodes_as_the_twin_does(text: str):
    encoding = get_encoding()
    pattern, specials = _EMBEDDED[DEFAULT_ENCODING]
    twin = Twin(pattern, encoding._mergeable_ranks, specials)
    twin.split = encoding.split  # the `regex` library may know a newer Unicode
    tokens = encoding.encode(text, allowed_special="all")
    assert tokens == twin.encode(text, set(specials))
    assert encoding.decode(tokens) == text


def test_it_needs_no_file_and_no_network(tmp_path: Path):
    program = (
        "import socket; socket.socket = None\n"
        "from hotgrid.tokens import get_encoding\n"
        "print(get_encoding().encode('Hello world'))"
    )
    environment = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == str(get_encoding().encode("Hello world"))
    assert list(tmp_path.iterdir()) == []


def test_it_takes_no_file_of_ranks(tmp_path: Path):
    with pytest.raises(ArgumentError, match="'hotgrid_32k' is part of hotgrid and takes no"):
        get_encoding(vocabulary=tmp_path)
    with pytest.raises(ArgumentError, match="did you mean `hotgrid_32k`"):
        get_encoding("hotgrid32k")


def test_the_card_names_a_licence_for_every_source():
    rows = re.findall(r"^\| ([a-z][\w.+-]+) [^|]*\| ([^|]+) \|", CARD.read_text(), re.MULTILINE)
    assert len(rows) > 40
    assert all(licence.strip() for _, licence in rows)
