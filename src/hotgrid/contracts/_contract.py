"""`Contract`: the declaration of a shape, checked in a fraction of a microsecond."""

import functools
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any, TypeVar

from hotgrid.errors import ArgumentError, ContractError

from ._explain import explained, location, unknown_key, written
from ._expression import names_in
from ._matcher import (
    Bindings,
    Given,
    Matcher,
    expect_sizes,
    native_matcher,
    read_bindings,
    read_shape,
    undecided,
)
from ._parse import parse, shortened
from ._solve import Mismatch

F = TypeVar("F", bound=Callable[..., Any])


def traced_as(plain: Callable[..., Any]) -> Callable[[F], F]:
    """Let `torch.compile` trace `plain` in place of the decorated function.

    The fast paths end in native code, which the tracer cannot enter; the plain
    ones it folds away. The attribute is how torch itself marks such pairs, and
    setting it needs no import of torch.
    """

    def mark(fast: F) -> F:
        fast._torchdynamo_inline = plain  # pyright: ignore[reportFunctionMemberAccess]
        return fast

    return mark


def _traced_check(
    self: "Contract", shape: Any, bindings: Given | None = None
) -> MutableMapping[str, int]:
    found = _parsed(self.text)._matcher.decide(bindings, shape)
    if isinstance(found, tuple):
        text = shortened(self.text)
        raise ContractError(f"{shortened(found[0].reason)}, from the contract `{text}`")
    return found


def _traced_try_check(
    self: "Contract", shape: Any, bindings: Given | None = None
) -> MutableMapping[str, int] | None:
    found = _parsed(self.text)._matcher.decide(bindings, shape)
    return None if isinstance(found, tuple) else found


def _traced_unpack(
    self: "Contract",
    keys: str | Sequence[str],
    shape: Any,
    bindings: Given | None = None,
) -> tuple[int, ...]:
    found = _traced_check(self, shape, bindings)
    return tuple([found[key] for key in _keys(keys)])


def _traced_try_unpack(
    self: "Contract",
    keys: str | Sequence[str],
    shape: Any,
    bindings: Given | None = None,
) -> tuple[int, ...] | None:
    found = _traced_try_check(self, shape, bindings)
    return None if found is None else tuple([found[key] for key in _keys(keys)])


class Contract:
    """A shape contract: sizes, and names for them.

    Terms are separated by commas, or by blanks as in einops:

    - `c` names a size; the same name is the same size everywhere
    - `3` is exactly three, `_` any size, `...` any number of dimensions
    - `h*p`, `(h p)`, `a+b`, `n-1`, `2*w-1`, `z^3` compute with names and numbers
    - `height=h*p` also gives the whole size a name

    A name that is not given in `bindings` is solved for, wherever the shape
    determines it: `p*p` finds p, and a later term can settle an earlier one.

    Arguments:
        text: the contract.

    Example:
        >>> image = Contract("batch (rows window) (columns window) channels")
        >>> image.unpack("batch rows columns", (2, 12, 8, 3), {"window": 4})
        (2, 3, 2)

    Raises:
        ContractSyntaxError: the text is not a contract; shows the place.
    """

    __slots__ = ("_check", "_implied_keys", "_matcher", "_try_check", "_unpack", "text")

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise ArgumentError(f"a contract is written as text, such as 'b h w', got {text!r}")
        self.text = text
        self._matcher = Matcher((parse(text),))
        plain = _Plain(self._matcher)
        native = native_matcher(self._matcher, plain.check, plain.unpack)
        self._check = native.match if native else plain.check
        self._unpack = native.unpack if native else plain.unpack
        self._try_check = native.try_match if native else undecided
        terms = self._matcher.groups[0]
        named = [[term.label] if term.label else names_in(term.expression) for term in terms]
        self._implied_keys = tuple(dict.fromkeys(name for names in named for name in names))

    @property
    def names(self) -> tuple[str, ...]:
        """Every label and name of the contract, in order of appearance."""
        return self._matcher.names

    @traced_as(_traced_check)
    def check(self, shape: Any, bindings: Given | None = None) -> MutableMapping[str, int]:
        """Check a shape and return the size of every name.

        Arguments:
            shape: a tensor of any library, or its shape.
            bindings: sizes known beforehand. Names the contract does not have
                are passed on, so that one result can feed the next check.

        Returns:
            Names and sizes, given and found: a mutable mapping, always true.
            `dict(found)` where a plain dict is needed, as for JSON.

        Example:
            >>> Contract("b, h*p, c").check((2, 12, 3), {"p": 4})["h"]
            3

        Raises:
            ContractError: the shape does not meet the contract, or does not
                determine every name that is needed for the check.
        """
        if bindings is not None:
            expect_sizes(bindings)
        return self._check(bindings, shape)

    @traced_as(_traced_unpack)
    def unpack(
        self,
        keys: str | Sequence[str],
        shape: Any,
        bindings: Given | None = None,
    ) -> tuple[int, ...]:
        """Check a shape and return the sizes of the given names, in that order.

        Arguments:
            keys: names, as a sequence or as one text: `"b h w"`.
            shape: a tensor of any library, or its shape.
            bindings: sizes known beforehand.

        Example:
            >>> b, h = Contract("b h*p").unpack(("b", "h"), (2, 12), {"p": 4})

        Raises:
            ContractError: as `check`, or a key is not in the contract.
        """
        if bindings is not None:
            expect_sizes(bindings)
        return self._unpack(keys, shape, bindings)

    @traced_as(_traced_try_check)
    def try_check(
        self, shape: Any, bindings: Given | None = None
    ) -> MutableMapping[str, int] | None:
        """As `check`, but None instead of an error when the shape does not match.

        Example:
            >>> Contract("b c").try_check((2, 3, 4)) is None
            True
        """
        if bindings is not None:
            expect_sizes(bindings)
        found = self._try_check(bindings, shape)
        return _traced_try_check(self, shape, bindings) if found is None else found

    @traced_as(_traced_try_unpack)
    def try_unpack(
        self,
        keys: str | Sequence[str],
        shape: Any,
        bindings: Given | None = None,
    ) -> tuple[int, ...] | None:
        """As `unpack`, but None instead of an error when the shape does not match.

        Example:
            >>> Contract("b c").try_unpack("b c", (2, 3, 4)) is None
            True
        """
        wanted = _known_keys(self._matcher, keys)
        found = self.try_check(shape, bindings)
        if found is None or any(key not in found for key in wanted):
            return None
        return tuple(found[key] for key in wanted)

    def __str__(self) -> str:
        return written(self._matcher.groups[0])

    def __repr__(self) -> str:
        return f"Contract({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Contract) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __reduce__(self) -> tuple[type["Contract"], tuple[str]]:
        return Contract, (self.text,)


class _Plain:
    """A contract in plain Python.

    All there is without a native core, and the last word where the core is unsure.
    """

    __slots__ = ("matcher",)

    def __init__(self, matcher: Matcher) -> None:
        self.matcher = matcher

    def check(self, bindings: Any, shape: Any) -> Bindings:
        found = self.matcher.decide(bindings, shape)
        if isinstance(found, tuple):
            problem, known = found
            raise explained(self.matcher, problem, [read_shape(shape)], known, at=location())
        return found

    def unpack(self, keys: str | Sequence[str], shape: Any, bindings: Any) -> tuple[int, ...]:
        wanted = _known_keys(self.matcher, keys)
        found = self.check(bindings, shape)
        for key in wanted:
            if key not in found:
                problem = Mismatch(0, f"the shape does not determine `{key}`")
                sizes = [read_shape(shape)]
                raise explained(self.matcher, problem, sizes, found, at=location())
        return tuple([found[key] for key in wanted])


def _keys(keys: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(keys, str):
        return tuple(keys.replace(",", " ").split())
    if isinstance(keys, list | tuple) and all(isinstance(key, str) for key in keys):
        return tuple(keys)
    raise ArgumentError(f"keys are names, as ('b', 'h') or 'b h', got {keys!r}")


def _known_keys(matcher: Matcher, keys: str | Sequence[str]) -> tuple[str, ...]:
    wanted = _keys(keys)
    for key in wanted:
        if key not in matcher.names:
            raise unknown_key(key, matcher.names, written(matcher.groups[0]))
    return wanted


@functools.lru_cache(maxsize=1024)
def _remembered(text: str) -> Contract:
    return Contract(text)


def _parsed(text: str) -> Contract:
    return _remembered(text) if isinstance(text, str) else Contract(text)


# The tracer then takes the contract as a constant: it neither traces the parser
# nor guards every part of the contract at each call. This is the mark that
# torch.compiler.assume_constant_result leaves.
_parsed._dynamo_marked_constant = True  # pyright: ignore[reportFunctionMemberAccess]


def as_contract(contract: str | Contract) -> Contract:
    """The contract itself, or the one that a text describes; texts are cached."""
    return contract if isinstance(contract, Contract) else _parsed(contract)


def assert_shape(
    contract: str | Contract, shape: Any, bindings: Given | None = None
) -> MutableMapping[str, int]:
    """Check a shape against a contract written in place.

    A text is parsed once and cached.

    Example:
        >>> assert_shape("b h w 3", (8, 32, 32, 3))["h"]
        32

    Raises:
        ContractError: the shape does not meet the contract.
        ContractSyntaxError: the text is not a contract.
    """
    return as_contract(contract).check(shape, bindings)


def unpack_shape(
    contract: str | Contract, shape: Any, bindings: Given | None = None
) -> tuple[int, ...]:
    """Check a shape and return the sizes it names, without listing the names again.

    The result has one size for each term with a name, in order: the
    label of a labelled term, else its names. Names given in `bindings`, and
    names that occurred before, are left out.

    Example:
        >>> unpack_shape("b (h p) (w p) c", (2, 12, 8, 3), {"p": 4})
        (2, 3, 2, 3)

    Raises:
        ContractError: the shape does not meet the contract.
    """
    found = as_contract(contract)
    given = read_bindings(bindings)
    keys = [key for key in found._implied_keys if key not in given]
    return found.unpack(tuple(keys), shape, given)
