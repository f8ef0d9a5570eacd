"""Special tokens: which may stand in a text, and which must not."""

import functools
from collections.abc import Collection, Mapping, Set as AbstractSet
from typing import Any, Literal, NoReturn, TypeAlias

from hotgrid import _native
from hotgrid.errors import ArgumentError

Allowed: TypeAlias = Literal["all"] | AbstractSet[str]
Disallowed: TypeAlias = Literal["all"] | Collection[str]


class SpecialTokens:
    """The special tokens of an encoding, and finders for sets of strings.

    A finder is an object of the native core, or None where there is nothing to find.
    """

    def __init__(self, tokens: Mapping[str, int]) -> None:
        self.tokens = dict(tokens)
        self.names = set(tokens)
        # Finders of sets that were asked for; building one takes longer than a short text.
        self._finder = functools.lru_cache(maxsize=64)(self._build)

    def _build(self, names: frozenset[str]) -> Any:
        named = {name: self.tokens.get(name, 0) for name in names}
        return _native.core().Specials(named) if named else None

    @functools.cached_property
    def _everything(self) -> Any:
        return self._finder(frozenset(self.names))

    def resolve(self, allowed: Allowed, disallowed: Disallowed) -> tuple[Any, Any]:
        """Finders for what is allowed and for what is not.

        Raises:
            TypeError: `allowed` is no set.
            ArgumentError: The empty string, which every text has, is not allowed.
        """
        if not allowed and isinstance(disallowed, str) and disallowed == "all":
            return None, self._everything
        if isinstance(allowed, str) and allowed == "all":
            allowed = self.names
        elif not isinstance(allowed, AbstractSet):
            raise TypeError(f"`allowed_special` must be a set of str or 'all', got {allowed!r}")
        if isinstance(disallowed, str) and disallowed == "all":
            disallowed = self.names - allowed
        if "" in disallowed:
            refuse_special("")
        known = frozenset(allowed) & self.names
        return self._finder(known), self._finder(frozenset(disallowed))


def check_text(text: str, disallowed: Any) -> None:
    """Refuse a text that holds something not allowed."""
    if disallowed is not None and (found := disallowed.first_in(text)) is not None:
        refuse_special(found)


def check_texts(texts: list[str], disallowed: Any) -> None:
    """Refuse texts of which one holds something not allowed."""
    if disallowed is not None and (found := disallowed.first_in_any(texts)) is not None:
        refuse_special(found)


def refuse_special(token: str) -> NoReturn:
    """Say which special token was found and the three ways out."""
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
