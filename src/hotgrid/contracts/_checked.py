"""`checked`: contracts for the arguments and the result of a function, together."""

import functools
import inspect
import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from hotgrid.errors import ArgumentError, ContractError, near

from ._contract import Contract, as_contract, traced_as
from ._explain import explained, location
from ._matcher import Bindings, Matcher, native_matcher, read_shape, undecided
from ._solve import Mismatch

P = ParamSpec("P")
R = TypeVar("R")
Text = str | Contract


def checked(
    arguments: Mapping[str, Text] | None = None,
    /,
    *,
    returns: Text | Sequence[Text] | None = None,
    bind: str | Sequence[str] = (),
    **more: Text,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Check the shapes of several arguments and of the result with each call.

    The contracts are read together: a name means the same size in all of them,
    and one argument can settle what another leaves open. An argument that is
    None is not checked.

    Arguments:
        arguments: contracts by parameter name, for names that clash with the
            keywords below; usually left out.
        returns: the contract of the result, or several for a tuple.
        bind: parameters whose values are sizes. A dotted name reaches into an
            argument: `"self.window"` binds `window`.
        **more: contracts by parameter name.

    Example:
        >>> @checked(x="b (h win) (w win) c", bind="win", returns="n win win c")
        ... def partition(x, win):
        ...     b, h, w, c = x.shape
        ...     x = x.reshape(b, h // win, win, w // win, win, c)
        ...     return x.swapaxes(2, 3).reshape(-1, win, win, c)

    Raises:
        ArgumentError: at once, when a name is not a parameter of the function.
        ContractError: from the call, when the shapes do not fit together.
    """
    contracts = {**(arguments or {}), **more}
    bound = bind.replace(",", " ").split() if isinstance(bind, str) else list(bind)

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        before = _Inputs(function, contracts, bound)
        after = None if returns is None else _Outputs(function, returns)
        if inspect.iscoroutinefunction(function):
            return _awaiting(function, before, after)

        @functools.wraps(function)
        def checking(*args: P.args, **kwargs: P.kwargs) -> R:
            found = before.check(args, kwargs)
            result = function(*args, **kwargs)
            if after is not None:
                after.check(result, found)
            return result

        return checking

    return decorate


def _awaiting(function: Any, before: "_Inputs", after: "_Outputs | None") -> Any:
    """The same for a coroutine: its result is checked when it is available."""

    @functools.wraps(function)
    async def checking(*args: Any, **kwargs: Any) -> Any:
        found = before.check(args, kwargs)
        result = await function(*args, **kwargs)
        if after is not None:
            after.check(result, found)
        return result

    return checking


class _Parameter:
    """Where an argument of a call is found: by place, by name, or by default."""

    __slots__ = ("default", "name", "named", "place")

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        parameters = inspect.signature(function).parameters
        listed = [
            n for n, p in parameters.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]
        if name not in listed:
            raise ArgumentError(
                f"`{name}` is not a parameter of `{_called(function)}`{near(name, listed)} "
                f"(its parameters are {', '.join(listed) or 'none'})"
            )
        parameter = parameters[name]
        self.name = name
        by_place = parameter.kind is not parameter.KEYWORD_ONLY
        self.place = listed.index(name) if by_place else sys.maxsize
        self.named = parameter.kind is not parameter.POSITIONAL_ONLY
        self.default = None if parameter.default is parameter.empty else parameter.default

    def of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if self.place < len(args):
            return args[self.place]
        return kwargs.get(self.name, self.default) if self.named else self.default


class _Inputs:
    """The argument contracts of one function."""

    __slots__ = ("bound", "called", "fast", "matcher", "names", "parameters", "texts")

    def __init__(
        self, function: Callable[..., Any], contracts: Mapping[str, Text], bound: list[str]
    ) -> None:
        self.names = tuple(contracts)
        self.parameters = tuple(_Parameter(function, name) for name in contracts)
        self.called = _called(function)
        self.texts = tuple(as_contract(text).text for text in contracts.values())
        self.matcher = _joint(self.texts)
        native = native_matcher(self.matcher) if self.texts else None
        self.fast = native.try_match_present if native else undecided
        self.bound = []
        for path in bound:
            root, _, rest = path.partition(".")
            name = path.rpartition(".")[2]
            self.bound.append((name, _Parameter(function, root), rest))

    def _shapes(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        return [parameter.of(args, kwargs) for parameter in self.parameters]

    def _bindings(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> dict[str, int] | None:
        found: dict[str, int] = {}
        for name, parameter, rest in self.bound:
            value = parameter.of(args, kwargs)
            for part in rest.split(".") if rest else ():
                value = getattr(value, part, None)
            if value is not None:
                found[name] = _size(name, value)
        return found or None

    def _traced_check(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Mapping[str, int]:
        bindings, shapes = self._bindings(args, kwargs), self._shapes(args, kwargs)
        found = _joint(self.texts).decide_present(bindings, *shapes)
        if isinstance(found, tuple):
            raise ContractError(f"{found[0].reason} (argument {self.names[found[0].group]})")
        return found

    @traced_as(_traced_check)
    def check(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, int]:
        shapes = self._shapes(args, kwargs)
        bindings = self._bindings(args, kwargs)
        found = self.fast(bindings, *shapes)
        if found is not None:
            return found
        decided = self.matcher.decide_present(bindings, *shapes)
        return _raised(self.matcher, decided, shapes, self.names, self.called)


class _Outputs:
    """The result contracts of one function."""

    __slots__ = ("called", "fast", "many", "matcher", "names", "texts")

    def __init__(self, function: Callable[..., Any], returns: Text | Sequence[Text]) -> None:
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise ArgumentError(
                f"`{_called(function)}` is a generator and has no one result; leave `returns` "
                f"out and check inside it with `assert_shape`"
            )
        self.called = _called(function)
        self.many = not isinstance(returns, str | Contract)
        texts = [returns] if isinstance(returns, str | Contract) else list(returns)
        self.texts = tuple(as_contract(text).text for text in texts)
        self.matcher = _joint(self.texts)
        native = native_matcher(self.matcher) if self.texts else None
        self.fast = native.try_match if native else undecided
        self.names = tuple(f"result {i}" if self.many else "result" for i in range(len(texts)))

    def _shapes(self, result: Any) -> Sequence[Any]:
        if not self.many:
            return (result,)
        if not isinstance(result, tuple | list) or len(result) != len(self.names):
            raise ContractError(
                f"`{self.called}` should return {len(self.names)} values, one for each "
                f"contract in `returns`, and returned {type(result).__name__}"
            )
        return result

    def _traced_check(self, result: Any, bindings: Mapping[str, int]) -> None:
        found = _joint(self.texts).decide(bindings, *self._shapes(result))
        if isinstance(found, tuple):
            raise ContractError(f"{found[0].reason} ({self.names[found[0].group]})")

    @traced_as(_traced_check)
    def check(self, result: Any, bindings: Mapping[str, int]) -> None:
        shapes = self._shapes(result)
        if self.fast(bindings, *shapes) is None:
            if any(shape is None for shape in shapes):
                raise ContractError(f"`{self.called}` returned None, against {self.texts}")
            decided = self.matcher.decide(bindings, *shapes)
            _raised(self.matcher, decided, shapes, self.names, self.called)


@functools.lru_cache(maxsize=1024)
def _remembered_joint(texts: tuple[str, ...]) -> Matcher:
    return Matcher(tuple(as_contract(text)._matcher.groups[0] for text in texts))


def _joint(texts: tuple[str, ...]) -> Matcher:
    return _remembered_joint(texts)


# A constant to the tracer, like the contracts in it; see `_contract._parsed`.
_joint._dynamo_marked_constant = True  # pyright: ignore[reportFunctionMemberAccess]


def _size(name: str, value: Any) -> int:
    try:
        # Integers are not converted: under torch.compile they may be symbols.
        size = value if isinstance(value, int) else operator.index(value)
    except TypeError:
        raise ArgumentError(
            f"`bind` names `{name}`, which must be a size, got {value!r}"
        ) from None
    if size < 0:
        raise ArgumentError(f"`bind` names `{name}`, and a size cannot be negative")
    return size


def _raised(
    matcher: Matcher,
    decided: Bindings | tuple[Mismatch, Bindings],
    shapes: Sequence[Any],
    names: Sequence[str],
    called: str,
) -> Mapping[str, int]:
    """Return the decision, or raise it if it is a mismatch."""
    if not isinstance(decided, tuple):
        return decided
    problem, known = decided
    sizes = [None if shape is None else read_shape(shape) for shape in shapes]
    raise explained(
        matcher, problem, sizes, known, arguments=names, function=called, at=location()
    )


def _called(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", repr(function))
