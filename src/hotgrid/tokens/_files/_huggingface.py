"""HuggingFace's `tokenizer.json`, for byte-level byte pair encoding."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from hotgrid.errors import ArgumentError
from hotgrid.files import whole_file
from hotgrid.tokens._encoding import Encoding
from hotgrid.tokens._patterns import (
    CL100K,
    GPT2,
    HUGGINGFACE,
    LEXERS,
    PORTABLE,
    compiled,
    portable,
    shown,
    translated,
)

from ._byte_letters import letters, to_bytes, to_letters

# Back from the spelling that `save_huggingface` writes.
_USUAL = MappingProxyType({portable: usual for usual, portable in PORTABLE.items()})

# Bytes to look at before a list of pairs is taken as it is; o200k has 10 million.
_MOST_WORK = 1_000_000_000


def load_huggingface(path: str | Path, *, name: str | None = None) -> Encoding:
    """An encoding from a `tokenizer.json` whose model is byte-level byte pair encoding.

    GPT-2, Llama 3 and many models of today have such a file. All added tokens become special
    tokens. What a post-processor would add around a text (such as a token for its beginning)
    is not added, and settings for cutting and padding are not looked at. Where the file asks
    for Unicode's normal form C, as Qwen's does, texts are normalised between special tokens,
    and offsets are those of the normalised text. That form is the one of this Python's version
    of Unicode (`unicodedata.unidata_version`), which is newer than HuggingFace's: characters
    assigned since may become other tokens there. The pattern is read as HuggingFace's engine,
    Oniguruma, reads it. A file that asks for more, such as another normalizer, several steps of
    cutting or a construct in its pattern that hotgrid does not know, is refused.

    Args:
        path: The file.
        name: What to call the encoding; by default as the folder that holds the file.

    Raises:
        ArgumentError: The file cannot be read or is not such a tokenizer; the error says where.

    Example:
        >>> enc = Encoding(
        ...     "ab", pat_str=".+", mergeable_ranks={b"a": 0, b"b": 1, b"ab": 2},
        ...     special_tokens={"<|end|>": 3},
        ... )
        >>> save_huggingface(enc, "tokenizer.json")
        >>> load_huggingface("tokenizer.json").encode("abba<|end|>", allowed_special="all")
        [2, 1, 0, 3]
    """
    path = Path(path)
    file = _read(path)
    model = _part(file, "model", dict, path)
    if model.get("type", "BPE") != "BPE":
        _refuse(path, f"its model is {model.get('type')!r}, expected 'BPE'")
    normalises = _normalises(file.get("normalizer"), path)
    for option in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(option):
            _refuse(path, f"its model has the option {option!r}, which hotgrid does not know")
    specials = dict(_added_tokens(file, path))
    merges = _part(model, "merges", list, path)
    ranks = _ranks(_part(model, "vocab", dict, path), specials, merges, path)
    pairs = list(_pairs(merges, ranks, path))
    whole_first = bool(model.get("ignore_merges", False))
    pattern, keeps_rest = _pattern(file.get("pre_tokenizer"), path)
    settings = {
        "name": name or path.resolve().parent.name,
        "pat_str": pattern,
        "mergeable_ranks": ranks,
        "special_tokens": specials,
    }
    if whole_first and _ranks_say_it_all(ranks, pairs):
        encoding = Encoding(**settings)
    else:
        encoding = Encoding._from_merges(**settings, merges=(pairs, whole_first))
    if keeps_rest:
        encoding._keep_rest()
    if normalises:
        encoding._normalise()
    return encoding


def save_huggingface(encoding: Encoding, path: str | Path) -> None:
    """Write an encoding as a `tokenizer.json` that HuggingFace's tokenizers can load.

    Args:
        encoding: What to write.
        path: Where to; an existing file is replaced.

    Raises:
        ArgumentError: The file cannot be written, or a number or a name belongs to two
            tokens, as it does in o200k_harmony; such a file has no place for that. Or
            HuggingFace's engine cannot read the pattern so that it means the same.

    Example:
        >>> ranks = {b"a": 0, b"b": 1}
        >>> enc = Encoding("ab", pat_str=".", mergeable_ranks=ranks, special_tokens={})
        >>> save_huggingface(enc, "tokenizer.json")
        >>> json.loads(Path("tokenizer.json").read_text())["model"]["vocab"]
        {'a': 0, 'b': 1}
    """
    ranks = encoding._mergeable_ranks
    names = {rank: to_letters(token) for token, rank in ranks.items()}
    vocabulary = _vocabulary(names, encoding._special_tokens)
    pairs, whole_first = encoding._merges or (list(_splits(ranks)), True)
    file = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": token,
                "content": content,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            # Not in the order that they were given in: a vocabulary has one file.
            for token, content in sorted((n, s) for s, n in encoding._special_tokens.items())
        ],
        "normalizer": {"type": "NFC"} if encoding._normalises else None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [_split(encoding), _byte_level()],
        },
        "post_processor": None,
        "decoder": _byte_level(),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": whole_first,
            "vocab": vocabulary,
            "merges": [[names[left], names[right]] for left, right, _ in pairs],
        },
    }
    with whole_file(Path(path)) as aside:
        aside.write_bytes(json.dumps(file, ensure_ascii=False).encode())


def _vocabulary(names: Mapping[int, str], specials: Mapping[str, int]) -> dict[str, int]:
    """Every token by name; HuggingFace gives added tokens that are not in it new numbers."""
    found = {name: rank for rank, name in names.items()}
    taken = dict(names)
    for name, token in specials.items():
        if found.setdefault(name, token) != token or taken.setdefault(token, name) != name:
            raise ArgumentError(
                f"the special token {name!r} with the number {token} cannot be written: "
                f"{taken.get(token, name)!r} has that number, or another token that name, and "
                "a tokenizer.json has one of each; leave one out of `special_tokens`"
            )
    return dict(sorted(found.items(), key=lambda pair: pair[1]))


def _split(encoding: Encoding) -> dict[str, Any]:
    """Cut by a pattern; what it does not match is dropped or kept, as the encoding does."""
    pattern = encoding._pat_str
    if whole := pattern in LEXERS:  # such a pattern matches everything
        written = PORTABLE.get(pattern, pattern)
    elif (written := portable(pattern)) is None:
        raise ArgumentError(
            f"the pattern {shown(pattern)} cannot be written: HuggingFace's engine reads it "
            "otherwise; leave out references to groups"
        )
    keeps = whole or encoding._keeps_rest
    return {
        "type": "Split",
        "pattern": {"Regex": written},
        "behavior": "Isolated" if keeps else "Removed",
        "invert": not keeps,
    }


def _byte_level() -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": False,
    }


def _splits(ranks: Mapping[bytes, int]) -> Iterator[tuple[int, int, int]]:
    """Every way to make a token of two, in the order of ranks."""
    for token, rank in sorted(ranks.items(), key=lambda pair: pair[1]):
        for at in range(1, len(token)):
            left, right = ranks.get(token[:at]), ranks.get(token[at:])
            if left is not None and right is not None:
                yield left, right, rank


def _ranks_say_it_all(ranks: Mapping[bytes, int], pairs: list[tuple[int, int, int]]) -> bool:
    """Whether joining by ranks alone is the same as joining by this list of pairs."""
    if sum(len(token) ** 2 for token in ranks) > _MOST_WORK:
        return False
    results = [result for _, _, result in pairs]
    return results == sorted(results) and set(pairs) == set(_splits(ranks))


def _read(path: Path) -> dict[str, Any]:
    try:
        file = json.loads(path.read_bytes())
    except OSError as problem:
        raise ArgumentError(f"cannot read `{path}`: {problem.strerror or problem}") from None
    except (ValueError, RecursionError) as problem:
        _refuse(path, f"it is not JSON ({problem})")
    if not isinstance(file, dict):
        _refuse(path, "it holds no object")
    return file


def _refuse(path: Path, why: str) -> NoReturn:
    raise ArgumentError(f"`{path}` is not a tokenizer that can be loaded: {why}")


def _normalises(normalizer: Any, path: Path) -> bool:
    """Whether texts are put in normal form C; no other normalizer is known."""
    match normalizer:
        case None:
            return False
        case {"type": "NFC"}:
            return True
        case {"type": "Sequence", "normalizers": [*steps]}:
            forms = [_normalises(step, path) for step in steps]
            return any(forms)
    _refuse(
        path,
        "its normalizer must be 'NFC', which hotgrid applies, or none; "
        f"got {json.dumps(normalizer)[:200]}",
    )


def _part(holder: Mapping[str, Any], key: str, kind: type, path: Path) -> Any:
    part = holder.get(key)
    if not isinstance(part, kind):
        _refuse(path, f"{key!r} must be of type {kind.__name__}, got {type(part).__name__}")
    return part


def _is_token(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**32 - 1


def _added_tokens(file: Mapping[str, Any], path: Path) -> Iterator[tuple[str, int]]:
    for token in file.get("added_tokens") or []:
        content = token.get("content") if isinstance(token, dict) else None
        if not isinstance(content, str) or "id" not in token:
            _refuse(path, f"an added token must have a 'content' and an 'id', got {token!r}")
        if not _is_token(token["id"]):
            _refuse(path, f"the added token {content!r} has the number {token['id']!r}")
        if any("\ud800" <= letter <= "\udfff" for letter in content):
            _refuse(
                path, f"the added token {content!r} has a lone surrogate, which is not text"
            )
        if not content:  # HuggingFace's library leaves such a one out, too
            continue
        for option in ("single_word", "lstrip", "rstrip"):
            if token.get(option):
                _refuse(path, f"the added token {content!r} asks for {option!r}")
        yield content, token["id"]


def _ranks(
    vocabulary: Mapping[str, Any], specials: Mapping[str, int], merges: list[Any], path: Path
) -> dict[bytes, int]:
    # A special token may be one that text makes, too.
    made = {"".join(_parts(merge)) for merge in merges} if specials else set()
    ranks: dict[bytes, int] = {}
    for text, rank in vocabulary.items():
        if not _is_token(rank):
            _refuse(path, f"the token {text!r} has the number {rank!r}")
        if specials.get(text) == rank and text not in made:
            continue
        try:
            ranks[to_bytes(text)] = rank
        except KeyError as problem:
            _refuse(path, f"the token {text!r} has {problem}, which encodes no byte")
    return ranks


def _parts(merge: Any) -> list[str]:
    parts = merge.split(" ") if isinstance(merge, str) else merge
    whole = isinstance(parts, list) and all(isinstance(part, str) for part in parts)
    return parts if whole else []


def _pairs(
    merges: list[Any], ranks: Mapping[bytes, int], path: Path
) -> Iterator[tuple[int, int, int]]:
    known = dict(zip(letters(), range(256), strict=True))
    for place, merge in enumerate(merges):
        try:
            left, right = (bytes([known[letter] for letter in part]) for part in _parts(merge))
            yield ranks[left], ranks[right], ranks[left + right]
        except (KeyError, TypeError, ValueError):
            _refuse(path, f"merge {place} is {merge!r}, which is not a pair of tokens")


def _pattern(pre_tokenizer: Any, path: Path) -> tuple[str, bool]:
    """The pattern of a byte-level pre-tokenizer, alone or after a split by a pattern.

    Returns it as tiktoken would write it, and whether text between matches is kept.
    """
    found: tuple[str, bool] | None = None
    steps = pre_tokenizer if isinstance(pre_tokenizer, dict) else {}
    parts = steps.get("pretokenizers", [steps])
    for part in parts if isinstance(parts, list) else []:
        match part:
            case {"type": "Split", "pattern": {"Regex": str(pattern)}} if found is None:
                match part.get("behavior"), bool(part.get("invert")):
                    case ("Isolated", False) | ("Removed", True):
                        usual = _read_pattern(pattern, path)
                        found = usual, part["behavior"] == "Isolated" and usual not in LEXERS
                    case _:
                        break
            case {"type": "ByteLevel"} if not part.get("add_prefix_space"):
                if part.get("use_regex", True):
                    if found is not None:
                        break
                    found = GPT2, False
                if found is not None and part is parts[-1]:
                    return found
            case _:
                break
    _refuse(
        path,
        "its pre-tokenizer must be 'ByteLevel' without a leading space, alone or after one "
        f"'Split' by a pattern; got {json.dumps(pre_tokenizer)[:200]}",
    )


def _read_pattern(pattern: str, path: Path) -> str:
    """A pattern that was written for HuggingFace's engine, as tiktoken would write it."""
    usual = _USUAL.get(pattern, pattern)
    # As tiktoken writes cl100k, `{1,3}+` is possessive; HuggingFace reads it otherwise.
    if usual in LEXERS and pattern != CL100K:
        return usual
    try:
        read = translated(pattern, HUGGINGFACE)
        compiled(read)
    except ArgumentError as problem:
        _refuse(path, str(problem))
    return read
