"""Special tokens: which may occur in a text, and which must not."""

import functools
import re
from collections.abc import Collection, Mapping, Set as AbstractSet
from typing import Any, Literal, NoReturn, TypeAlias

from hotgrid.errors import ArgumentError

from ._plain_core import token_core

Allowed: TypeAlias = Literal["all"] | AbstractSet[str]
Disallowed: TypeAlias = Literal["all"] | Collection[str] | None

_SURROGATE = re.compile("[\ud800-\udfff]")
_CHARACTER = re.compile("[\ud800-\udbff][\udc00-\udfff]|.", re.DOTALL)


class SpecialTokens:
    """The special tokens of an encoding, and finders for sets of strings.

    A finder is an object of the native core, or None where there is nothing to find.
    """

    def __init__(self, tokens: Mapping[str, int]) -> None:
        self.tokens = dict(tokens)
        self.names = set(tokens)
        # Finders that were built; building one takes longer than encoding a short text.
        self._finder = functools.lru_cache(maxsize=64)(self._build)

    def _build(self, names: frozenset[str]) -> Any:
        named = {name: self.tokens.get(name, 0) for name in names}
        try:
            return token_core().Specials(named) if named else None
        except UnicodeEncodeError:
            return _SurrogateFinder(named)

    @functools.cached_property
    def _everything(self) -> Any:
        return self._finder(frozenset(self.names))

    def resolve(self, allowed: Allowed, disallowed: Disallowed) -> tuple[Any, Any]:
        """Finders for what is allowed and for what is not.

        Raises:
            TypeError: `allowed` is not a set.
            ArgumentError: The empty string, which every text has, is not allowed.
        """
        empty = type(allowed) in (frozenset, set) and not allowed
        if empty and isinstance(disallowed, str) and disallowed == "all":
            return None, self._everything
        if isinstance(allowed, str) and allowed == "all":
            allowed = self.names
        elif not isinstance(allowed, AbstractSet):
            raise TypeError(f"`allowed_special` must be a set of str or 'all', got {allowed!r}")
        if isinstance(disallowed, str) and disallowed == "all":
            disallowed = self.names - allowed
        elif not disallowed:
            disallowed = ()
        unwanted = frozenset(disallowed)
        if "" in unwanted:
            refuse_special("")
        known = frozenset(allowed) & self.names
        return self._finder(known), self._finder(unwanted)


class _SurrogateFinder:
    """Finds strings with surrogates, which the native core does not support."""

    def __init__(self, named: Mapping[str, int]) -> None:
        self._odd = [name for name in named if _SURROGATE.search(name)]
        usual = {name: token for name, token in named.items() if name not in self._odd}
        self._usual = token_core().Specials(usual) if usual else None
        self.longest = self._usual.longest if self._usual else 1

    def first_in(self, text: str) -> str | None:
        """A string that a text holds, or None."""
        found = next((name for name in self._odd if name in text), None)
        return self._usual.first_in(text) if found is None and self._usual else found

    def first_in_any(self, texts: list[str]) -> str | None:
        """A string that one of the texts holds, or None."""
        return next((found for found in map(self.first_in, texts) if found is not None), None)


def check_text(text: str, disallowed: Any) -> None:
    """Refuse a text that holds something not allowed; it may have surrogates."""
    if disallowed is None:
        return
    try:
        found = disallowed.first_in(text)
    except UnicodeEncodeError:
        # Its own characters, even if a subclass overrides `encode`.
        found = disallowed.first_in(repaired(str.__str__(text)))
    if found is not None:
        refuse_special(found)


def check_texts(texts: list[str], disallowed: Any) -> None:
    """Refuse texts if one holds something not allowed; they may have surrogates."""
    if disallowed is None:
        return
    try:
        found = disallowed.first_in_any(texts)
    except UnicodeEncodeError:
        for text in texts:
            check_text(text, disallowed)
        return
    if found is not None:
        refuse_special(found)


def refuse_special(token: str) -> NoReturn:
    """Say which special token was found, and the three ways to handle it."""
    raise ArgumentError(
        f"the text holds the special token {token!r}, which is not allowed here.\n"
        f"To encode it as a special token, pass `allowed_special={{{token!r}}}`.\n"
        "To encode it as ordinary text, pass "
        f"`disallowed_special=enc.special_tokens_set - {{{token!r}}}`.\n"
        "To encode all special tokens as ordinary text, pass `disallowed_special=()`."
    )


def repaired(text: str) -> str:
    """A text that can be written as UTF-8: surrogate pairs joined, lone ones replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def repaired_places(text: str) -> list[int]:
    """The position in a text of each character of `repaired(text)`."""
    return [found.start() for found in _CHARACTER.finditer(text)]
