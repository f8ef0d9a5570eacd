"""`tokenizer.json` of HuggingFace."""

import json
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import regex
from hypothesis import given, strategies as st

from hotgrid.errors import ArgumentError
from hotgrid.tokens import (
    Encoding,
    load_huggingface,
    save_huggingface,
    save_tiktoken,
)
from hotgrid.tokens._files import letters, to_bytes
from hotgrid.tokens._files._byte_letters import to_letters
from hotgrid.tokens._patterns import GPT2, LLAMA3
from hotgrid.tokens._twin import merge_pairs

from .test_equality import both
from .test_lexer_proof import BYTES
from .test_merging import pieces, vocabularies

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}


def tokenizer(**changes) -> dict:
    """A small file as such tokenizers are published."""
    vocabulary = {letter: rank for rank, letter in enumerate(sorted(letters()))}
    model = {
        "type": "BPE",
        "vocab": vocabulary | {"he": 256, "ll": 257, "hell": 258, "Ġw": 259, "<|e|>": 260},
        "merges": ["h e", "l l", "he ll", "Ġ w"],
    }
    added = [{"id": 260, "content": "<|e|>", "special": True, "lstrip": False}]
    return {
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": BYTE_LEVEL,
        "model": model | changes.pop("model", {}),
    } | changes


def cut_by(pattern: str) -> dict:
    """The same with a pattern of its own."""
    split = {
        "type": "Split",
        "pattern": {"Regex": pattern},
        "behavior": "Isolated",
        "invert": False,
    }
    steps = [split, BYTE_LEVEL | {"use_regex": False}]
    return tokenizer(pre_tokenizer={"type": "Sequence", "pretokenizers": steps})


def written(file: object, folder: Path) -> Path:
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(file))
    return path


def test_letters_stand_for_bytes():
    assert len(set(letters())) == 256
    assert to_letters(b" \n\xc3\xa9a") == "ĠĊÃ©a"
    assert all(to_bytes(to_letters(bytes([value]))) == bytes([value]) for value in range(256))


def test_a_small_tokenizer(tmp_path: Path):
    encoding = load_huggingface(written(tokenizer(), tmp_path))
    assert encoding.name == tmp_path.name
    assert encoding._pat_str == GPT2
    assert encoding.special_tokens_set == {"<|e|>"}
    assert encoding.encode("hello w<|e|>", allowed_special="all")[0] == 258
    assert encoding.decode(encoding.encode("hello wörld")) == "hello wörld"
    copy = pickle.loads(pickle.dumps(encoding))
    assert copy.encode("hello w") == encoding.encode("hello w")
    with pytest.raises(ArgumentError, match="merges by a list of pairs"):
        save_tiktoken(encoding, tmp_path / "x.tiktoken")


def test_a_pair_joins_only_if_the_file_says_so(tmp_path: Path):
    """`hell` is a token of its own and of `he` + `ll`, but not of `h` + `ell`."""
    model = {"merges": ["h e", "l l", ["he", "ll"]], "ignore_merges": True}
    encoding = load_huggingface(written(tokenizer(model=model), tmp_path))
    assert encoding.encode("hell") == [258]
    assert encoding.encode("whell")[1:] == [258]
    model = {"merges": ["h e", "l l"]}
    assert load_huggingface(written(tokenizer(model=model), tmp_path)).encode("hell") == [
        256,
        257,
    ]
    model |= {"ignore_merges": True}
    assert load_huggingface(written(tokenizer(model=model), tmp_path)).encode("hell") == [258]


def test_a_pattern_of_its_own(tmp_path: Path):
    assert load_huggingface(written(cut_by(LLAMA3), tmp_path))._pat_str == LLAMA3


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Encoding]]:
    """The file of a published encoding and what is loaded from it; that takes seconds."""

    @cache
    def save(name: str) -> tuple[Path, Encoding]:
        path = tmp_path_factory.mktemp(name) / "tokenizer.json"
        save_huggingface(both(name)[0], path)
        return path, load_huggingface(path, name=name)

    return save


@pytest.mark.parametrize("name", ["gpt2", "cl100k_base"])
def test_published_encodings_come_back_as_they_were(name: str, saved):
    encoding, loaded = both(name)[0], saved(name)[1]
    assert loaded._merges is None  # ranks say it all
    assert loaded._mergeable_ranks == encoding._mergeable_ranks
    assert loaded._special_tokens == encoding._special_tokens
    assert loaded._pat_str == encoding._pat_str


@given(ranks=vocabularies(), data=st.data())
def test_any_list_of_pairs_comes_back(ranks: dict[bytes, int], data, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "tokenizer.json"
    splits = [
        (token[:at], token[at:])
        for token in ranks
        for at in range(1, len(token))
        if token[:at] in ranks and token[at:] in ranks
    ]
    merges = data.draw(st.permutations(splits))
    by_rank = [(ranks[left], ranks[right], ranks[left + right]) for left, right in merges]
    settings = {"pat_str": r"(?s:.+)", "special_tokens": {"<s>": 9_000_000}}
    whole_first = data.draw(st.booleans())
    made = Encoding._from_merges(
        "x", mergeable_ranks=ranks, merges=(by_rank, whole_first), **settings
    )
    save_huggingface(made, path)
    loaded = load_huggingface(path)
    piece = data.draw(pieces)
    assert loaded.encode(piece) == made.encode(piece)
    if not whole_first:
        assert loaded.encode(piece) == merge_pairs(piece.encode(), ranks, merges)


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ([], "it holds no object"),
        ({}, "'model' must be of type dict, got NoneType"),
        (tokenizer(model={"type": "WordPiece"}), "its model is 'WordPiece'"),
        (tokenizer(model={"vocab": []}), "'vocab' must be of type dict, got list"),
        (tokenizer(model={"merges": None}), "'merges' must be of type list, got NoneType"),
        (tokenizer(model={"merges": ["h z e"]}), "merge 0 is 'h z e', which is not a pair"),
        (tokenizer(model={"merges": [5]}), "merge 0 is 5, which is not a pair"),
        (tokenizer(model={"vocab": {"a": -1}}), "the token 'a' has the number -1"),
        (tokenizer(model={"vocab": {"a": True}}), "the token 'a' has the number True"),
        (tokenizer(model={"vocab": {"中": 1}, "merges": []}), "encodes no byte"),
        (
            tokenizer(model={"vocab": {"a": 1, "b": 1}, "merges": []}),
            "two tokens have the rank 1",
        ),
        (tokenizer(model={"dropout": 0.1}), "the option 'dropout'"),
        (tokenizer(normalizer={"type": "NFKC"}), "its normalizer must be 'NFC'"),
        (tokenizer(pre_tokenizer=None), "its pre-tokenizer must be 'ByteLevel'"),
        (
            tokenizer(pre_tokenizer=BYTE_LEVEL | {"add_prefix_space": True}),
            "pre-tokenizer must be",
        ),
        (tokenizer(pre_tokenizer={"type": "Metaspace"}), 'got {"type": "Metaspace"}'),
        (tokenizer(added_tokens=[{"content": "a"}]), "must have a 'content' and an 'id'"),
        (tokenizer(added_tokens=[{"content": "a", "id": -3}]), "'a' has the number -3"),
        (tokenizer(added_tokens=[{"content": "\ud800", "id": 1}]), "has a lone surrogate"),
        (
            cut_by("("),
            "tokenizer.json` is not a tokenizer that can be loaded: `pat_str` '(' is not",
        ),
        (cut_by("(" * 9000 + ")" * 9000), "nested too deeply"),
        (
            tokenizer(added_tokens=[{"content": "a", "id": 1, "lstrip": True}]),
            "asks for 'lstrip'",
        ),
    ],
)
def test_files_that_cannot_be_loaded(file: object, words: str, tmp_path: Path):
    with pytest.raises(ArgumentError) as refusal:
        load_huggingface(written(file, tmp_path))
    assert words in str(refusal.value)


def test_added_tokens_without_content_are_left_out(tmp_path: Path):
    file = tokenizer(added_tokens=[{"content": "", "id": 7}, {"content": "<s>", "id": 8}])
    assert load_huggingface(written(file, tmp_path))._special_tokens == {"<s>": 8}


def test_what_is_no_json(tmp_path: Path):
    path = tmp_path / "tokenizer.json"
    for text in ("{", "\xff", "[" * 100_000):
        path.write_text(text)
        with pytest.raises(ArgumentError, match="it is not JSON"):
            load_huggingface(path)
    with pytest.raises(ArgumentError, match="cannot read"):
        load_huggingface(tmp_path / "nowhere.json")


def test_all_bytes_are_there():
    assert len(BYTES) == 256


@pytest.mark.parametrize(
    "name",
    [
        "p50k_edit",
        *(pytest.param(f"{n}_base", marks=pytest.mark.long) for n in ("cl100k", "o200k")),
    ],
)
def test_special_tokens_have_their_numbers_in_the_vocabulary_too(name: str, saved):
    """Added tokens that are not in it get the next free numbers from HuggingFace."""
    encoding, (path, loaded) = both(name)[0], saved(name)
    vocabulary = json.loads(path.read_text())["model"]["vocab"]
    specials = encoding._special_tokens
    assert {content: vocabulary[content] for content in specials} == specials
    assert list(vocabulary.values()) == sorted(vocabulary.values())
    assert loaded._special_tokens == specials
    assert loaded._mergeable_ranks == encoding._mergeable_ranks


def test_a_vocabulary_has_one_file_whatever_the_order_of_its_special_tokens(tmp_path: Path):
    specials = {f"<|{n}|>": 2 + n for n in range(9)}
    for name, order in (("one", specials), ("other", dict(reversed(specials.items())))):
        made = Encoding(
            "ab", pat_str=".", mergeable_ranks={b"a": 0, b"b": 1}, special_tokens=order
        )
        save_huggingface(made, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_two_special_tokens_with_one_number_cannot_be_written(tmp_path: Path):
    encoding = Encoding(
        "x", pat_str=".", mergeable_ranks={b"a": 0}, special_tokens={"<s>": 1, "<t>": 1}
    )
    with pytest.raises(ArgumentError, match="'<t>' with the number 1"):
        save_huggingface(encoding, tmp_path / "tokenizer.json")
    assert not (tmp_path / "tokenizer.json").exists()


@pytest.mark.parametrize("pattern", [r"\w+", r"a+|b", r"[^b]b"])
def test_what_a_pattern_does_not_match_is_dropped_in_both(pattern: str, tmp_path: Path):
    encoding = Encoding("x", pat_str=pattern, mergeable_ranks=BYTES, special_tokens={})
    path = tmp_path / "tokenizer.json"
    save_huggingface(encoding, path)
    split = json.loads(path.read_text())["pre_tokenizer"]["pretokenizers"][0]
    # HuggingFace removes what matches, and here the pattern is turned around.
    assert (split["behavior"], split["invert"]) == ("Removed", True)
    again = load_huggingface(path)
    for text in ("a b!", "aab! ab", "", "bb", "!!"):
        assert encoding.encode(text) == again.encode(text)
        assert again.split(text) == regex.findall(pattern, text)


@pytest.mark.parametrize("pattern", [r"\s+", r"a+|b", r"\p{L}+"])
def test_what_lies_between_matches_is_kept_where_the_file_says_so(pattern: str, tmp_path: Path):
    steps = [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"},
        BYTE_LEVEL | {"use_regex": False},
    ]
    file = tokenizer(pre_tokenizer={"type": "Sequence", "pretokenizers": steps})
    loaded = load_huggingface(written(file, tmp_path))
    for text in ("ü!!x!!中 the", "aab! ab", "", "bb", "!!"):
        cut = regex.split(f"({pattern})", text)
        assert loaded.split(text) == [piece for piece in cut if piece]


def test_a_special_token_that_text_makes_too(tmp_path: Path):
    ranks = BYTES | {b"th": 256, b"the": 257}
    encoding = Encoding("x", pat_str=".+", mergeable_ranks=ranks, special_tokens={"the": 257})
    path = tmp_path / "tokenizer.json"
    save_huggingface(encoding, path)
    loaded = load_huggingface(path)
    assert loaded.encode_ordinary("then") == [257, ord("n")]
    assert loaded._special_tokens == {"the": 257}
