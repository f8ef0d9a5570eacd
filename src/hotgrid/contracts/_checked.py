"""`checked`: contracts for the arguments and the result of a function, together."""

import functools
import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from hotgrid.errors import ArgumentError, ContractError

from ._contract import Contract, as_contract, traced_as
from ._explain import explained, location, nearest
from ._matcher import Matcher, native_matcher, read_shape, undecided

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

        @functools.wraps(function)
        def checking(*args: P.args, **kwargs: P.kwargs) -> R:
            found = before.check(args, kwargs)
            result = function(*args, **kwargs)
            if after is not None:
                after.check(result, found)
            return result

        return checking

    return decorate


class _Parameter:
    """Where an argument of a call is found: by place, by name, or by default."""

    __slots__ = ("default", "name", "place")

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        parameters = inspect.signature(function).parameters
        listed = [
            n for n, p in parameters.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]
        if name not in listed:
            raise ArgumentError(
                f"`{name}` is not a parameter of `{_called(function)}`{nearest(name, listed)} "
                f"(its parameters are {', '.join(listed) or 'none'})"
            )
        parameter = parameters[name]
        self.name = name
        by_place = parameter.kind is not parameter.KEYWORD_ONLY
        self.place = listed.index(name) if by_place else len(parameters) + 1000
        self.default = None if parameter.default is parameter.empty else parameter.default

    def of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if self.place < len(args):
            return args[self.place]
        return kwargs.get(self.name, self.default)


class _Inputs:
    """The argument contracts of one function."""

    __slots__ = ("bound", "fast", "matcher", "names", "parameters")

    def __init__(
        self, function: Callable[..., Any], contracts: Mapping[str, Text], bound: list[str]
    ) -> None:
        self.names = tuple(contracts)
        self.parameters = tuple(_Parameter(function, name) for name in contracts)
        groups = [as_contract(text)._matcher.groups[0] for text in contracts.values()]
        self.matcher = Matcher(tuple(groups))
        self.fast = _fast(self.matcher)
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
                value = getattr(value, part)
            if value is not None:
                found[name] = operator.index(value)
        return found or None

    def _traced_check(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Mapping[str, int]:
        bindings, shapes = self._bindings(args, kwargs), self._shapes(args, kwargs)
        found = self.matcher.decide_present(bindings, *shapes)
        if isinstance(found, tuple):
            raise ContractError(f"{found[0].reason} (argument {self.names[found[0].group]})")
        return found

    @traced_as(_traced_check)
    def check(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, int]:
        shapes = self._shapes(args, kwargs)
        bindings = self._bindings(args, kwargs)
        found = self.fast(bindings, *shapes)
        if found is None:
            return _decided(self.matcher, bindings, shapes, self.names)
        return found


class _Outputs:
    """The result contracts of one function."""

    __slots__ = ("called", "fast", "many", "matcher", "names")

    def __init__(self, function: Callable[..., Any], returns: Text | Sequence[Text]) -> None:
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            raise ArgumentError(
                f"`{_called(function)}` returns before its result exists; leave `returns` "
                f"out and check inside it with `assert_shape`"
            )
        self.called = _called(function)
        self.many = not isinstance(returns, str | Contract)
        texts = [returns] if isinstance(returns, str | Contract) else list(returns)
        self.matcher = Matcher(tuple(as_contract(text)._matcher.groups[0] for text in texts))
        self.fast = _fast(self.matcher)
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
        found = self.matcher.decide_present(bindings, *self._shapes(result))
        if isinstance(found, tuple):
            raise ContractError(f"{found[0].reason} ({self.names[found[0].group]})")

    @traced_as(_traced_check)
    def check(self, result: Any, bindings: Mapping[str, int]) -> None:
        shapes = self._shapes(result)
        if self.fast(bindings, *shapes) is None:
            _decided(self.matcher, bindings, shapes, self.names)


def _fast(matcher: Matcher) -> Callable[..., Mapping[str, int] | None]:
    native = native_matcher(matcher) if matcher.groups else None
    return native.try_match_present if native else undecided


def _decided(
    matcher: Matcher, bindings: Any, shapes: Sequence[Any], names: Sequence[str]
) -> Mapping[str, int]:
    found = matcher.decide_present(bindings, *shapes)
    if isinstance(found, tuple):
        sizes = [None if shape is None else read_shape(shape) for shape in shapes]
        problem, known = found
        raise explained(matcher, problem, sizes, known, arguments=names, at=location())
    return found


def _called(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", repr(function))
