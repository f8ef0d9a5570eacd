"""Sets of characters: what brackets hold in a pattern, as text or as code points."""

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

COUNT = 0x110000
# Cased letters are below this; looking at all of Unicode would take ten times as long.
_CASED = 0x1F000
# Simple folds of letters whose full fold is longer and whose lower case does not help.
_ODD_FOLDS = {0x1FD3: 0x390, 0x1FE3: 0x3B0, 0xFB05: 0xFB06}
_SIGNS = frozenset("\\[]^-&|~")
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_RUN = re.compile(b"\x01+")


@dataclass(frozen=True)
class CharacterSet:
    r"""The content of brackets.

    `members` are ranges of code points, escapes of whole classes (`\p{L}`) and other sets.
    A set in `both` is intersected with the rest.
    """

    members: tuple["tuple[int, int] | str | CharacterSet", ...]
    negated: bool = False
    both: "CharacterSet | None" = field(default=None)

    def __str__(self) -> str:
        text = "".join(_text(member) for member in self.members)
        if self.both is not None:
            text = f"[{text}]&&{self.both}"
        return f"[{'^' * self.negated}{text}]"


NOTHING = CharacterSet(((0, COUNT - 1),), negated=True)


def escaped(character: str) -> str:
    """A character within brackets."""
    return _SHORT.get(character) or ("\\" if character in _SIGNS else "") + character


def union(members: Iterable["tuple[int, int] | str | CharacterSet"]) -> CharacterSet:
    """One set of all members; sets within sets only where they must be."""
    flat: list[tuple[int, int] | str | CharacterSet] = []
    for member in members:
        if isinstance(member, CharacterSet) and not member.negated and member.both is None:
            flat += member.members
        else:
            flat.append(member)
    match flat:
        case [CharacterSet() as only]:
            return only
    return CharacterSet(tuple(flat))


def common(left: CharacterSet, right: CharacterSet) -> CharacterSet:
    """The intersection."""
    plain = not left.negated and left.both is None
    return CharacterSet(left.members if plain else (left,), both=right)


def negated(chars: CharacterSet) -> CharacterSet:
    """All other characters."""
    if not chars.negated and chars.both is None and _is_everything(chars):
        return NOTHING
    return CharacterSet(chars.members, not chars.negated, chars.both)


def _is_everything(chars: CharacterSet) -> bool:
    r"""Whether a class and its opposite are in the set; `regex` reads `[^\s\S]` wrongly."""
    escapes = {member for member in chars.members if isinstance(member, str)}
    return any(f"\\{each[1].swapcase()}{each[2:]}" in escapes for each in escapes)


def any_case(chars: CharacterSet) -> CharacterSet:
    """The set with all cases of its letters, written out in code points."""
    ranges = tuple(_ranges(mask(chars, folded=True)))
    return CharacterSet(ranges) if ranges else NOTHING


def cases(character: str) -> str:
    """A character and its other cases, by Unicode's simple folding."""
    return "".join(map(chr, _orbits().get(ord(character), (ord(character),))))


def folds_to_many(chars: CharacterSet) -> bool:
    """Whether a letter of the set folds to several, as `ß` does."""
    found = mask(chars, folded=False)
    return any(found[code] and len(chr(code).casefold()) > 1 for code in _orbits())


def mask(chars: CharacterSet, *, folded: bool) -> bytes:
    """A byte for each code point: 1 where it is in the set.

    Case folding comes before negation and intersection.
    """
    found = bytearray(COUNT)
    for member in chars.members:
        if isinstance(member, tuple):
            first, last = member
            found[first : last + 1] = b"\x01" * (last + 1 - first)
        elif isinstance(member, str):
            found = bytearray(_either(found, _of_escape(member)))
        else:
            found = bytearray(_either(found, mask(member, folded=folded)))
    if folded:
        for code, orbit in _orbits().items():
            if found[code]:
                for other in orbit:
                    found[other] = 1
    if chars.both is not None:
        found = _number(found) & _number(mask(chars.both, folded=folded))
        found = found.to_bytes(COUNT, "little")
    return bytes(found).translate(b"\x01\x00" + bytes(254)) if chars.negated else bytes(found)


def _text(member: "tuple[int, int] | str | CharacterSet") -> str:
    if not isinstance(member, tuple):
        return str(member)
    first, last = (escaped(chr(code)) for code in member)
    return first if first == last else f"{first}-{last}"


def _ranges(found: bytes) -> Iterable[tuple[int, int]]:
    return ((run.start(), run.end() - 1) for run in _RUN.finditer(found))


def _number(found: bytes | bytearray) -> int:
    return int.from_bytes(found, "little")


def _either(left: bytes | bytearray, right: bytes) -> bytes:
    return (_number(left) | _number(right)).to_bytes(COUNT, "little")


@functools.lru_cache(maxsize=16)
def _of_escape(escape: str) -> bytes:
    r"""The characters of a class such as `\p{Lu}`."""
    import regex

    found = bytearray(COUNT)
    for run in regex.compile(f"{escape}+", regex.V1).finditer(_everything()):
        found[run.start() : run.end()] = b"\x01" * (run.end() - run.start())
    return bytes(found)


@functools.lru_cache(maxsize=1)
def _everything() -> str:
    return "".join(map(chr, range(COUNT)))


@functools.cache
def _orbits() -> dict[int, tuple[int, ...]]:
    """For each letter, those that fold to the same one; also letters that fold to many."""
    found: dict[int, list[int]] = {}
    for code in range(_CASED):
        letter = chr(code)
        if (fold := letter.casefold()) != letter:
            found.setdefault(_simple_fold(code, fold), []).append(code)
    orbits: dict[int, tuple[int, ...]] = {}
    for fold, codes in found.items():
        orbit = tuple(sorted({fold, *codes}))
        orbits |= dict.fromkeys(orbit, orbit)
    return orbits


def _simple_fold(code: int, fold: str) -> int:
    if len(fold) == 1:
        return ord(fold)
    lower = chr(code).lower()
    return _ODD_FOLDS.get(code, ord(lower) if len(lower) == 1 else code)
