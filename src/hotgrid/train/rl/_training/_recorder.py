"""`Recorder`: notes the operations of a function, and makes a `Tape` of their kernels."""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from hotgrid.tensors._torch_private import (
    LightDispatchMode,
    direct_operator,
    operator_modules,
    tree_leaves,
    tree_map,
)

# More memory than this is not kept: operations are large then, and their calls cost little.
_LARGEST = 2**28
# They take a shape, and look at no number.
_EMPTY = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
_FILLED = {"zeros", "ones", "full", "arange", "scalar_tensor", "zeros_like", "ones_like",
           "full_like", "new_zeros", "new_ones", "new_full"}  # fmt: skip
_COPIES = {"_to_copy", "clone"}
# They take a tensor as well as a number.
_EITHER = {"lt", "le", "gt", "ge", "eq", "ne", "remainder"}
_UNFIT = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)

Call = Callable[[], object]


class Tape:
    """Calls of kernels, and the lasting memory that they change."""

    def __init__(
        self,
        calls: Sequence[Call],
        written: Sequence[Tensor],
        random: Sequence[torch.Generator],
    ) -> None:
        self._calls, self._written, self._random = calls, written, random

    @torch.inference_mode()
    def replay(self) -> None:
        """Call all kernels."""
        for call in self._calls:
            call()

    def snapshot(self) -> list[Tensor]:
        """Return a copy of what they change, and the states of generators."""
        return [x.clone() for x in self._written] + [g.get_state() for g in self._random]

    def restore(self, found: Sequence[Tensor]) -> None:
        """Go back to a snapshot."""
        for x, value in zip(self._written, found, strict=False):
            x.copy_(value)
        for generator, value in zip(self._random, found[len(self._written) :], strict=True):
            generator.set_state(value)


class _Operation:
    """One operation of a recording, with the memory it reads, makes and changes."""

    def __init__(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        # Without the history of autograd, which is not needed again.
        self.func, self.name = func, func.overloadpacket.__name__
        self.args, self.kwargs = tree_map(_bare, (_wrapped(func, args), kwargs))
        self.results: list[Tensor] = [_bare(x) for x in tree_leaves(result)]
        # Of a pattern for a new tensor only the shape counts.
        given = () if self.name in _FILLED | _EMPTY else (args, kwargs)
        self.reads = {_memory(x) for x in _tensors(given)}
        named = [*zip(func._schema.arguments, args, strict=False)]
        named += [
            (each, kwargs[each.name]) for each in func._schema.arguments if each.name in kwargs
        ]
        self.changed = [
            _bare(x)
            for each, value in named
            if each.alias_info is not None and each.alias_info.is_write
            for x in _tensors(value)
        ]
        self.writes = {_memory(x) for x in self.changed}
        self.makes = {_memory(x) for x in self.results} - self.reads

    def call(self) -> Call:
        """A call that repeats it, into the same memory; Python functions are called faster."""
        if self.changed:
            return self._again()
        out: Any = self.results[0] if len(self.results) == 1 else tuple(self.results)
        if self.name in _COPIES:
            return partial(out.copy_, self.args[0])
        named = _functions(self.name)
        ways = [self._made(each, out=out) for each in named]
        ways += [partial(self._copied, self._made(each)) for each in named]
        ways += [self._made(each, **{name: out}) for each, name in self._direct()]
        ways += [partial(self._copied, self._made(self.func))]
        return next(way for way in ways if self._works(way))

    def _made(self, function: Callable[..., Any], **out: Any) -> Call:
        return partial(function, *self.args, **self.kwargs, **out)

    def _copied(self, call: Call) -> None:
        for x, y in zip(self.results, tree_leaves(call()), strict=True):
            x.copy_(y)

    def _direct(self) -> list[tuple[Any, str]]:
        """Operators that take the memory of the result, and the name of that argument."""
        found = []
        expected = [each.name for each in self.func._schema.arguments]
        packet = self.func.overloadpacket
        for overload in (getattr(packet, name) for name in packet.overloads()):
            arguments = overload._schema.arguments
            outs = [each.name for each in arguments if each.is_out]
            others = [each.name for each in arguments if not each.is_out]
            if len(outs) == 1 and others == [x for x in expected if x in others]:
                found.append((direct_operator(overload), outs[0]))
        return found

    def _again(self) -> Call:
        name, args = self.name, self.args
        lists = [x for x in args if isinstance(x, list)]
        if name.startswith("_foreach_") and all(len(x) == 1 for x in lists):
            name = name.removeprefix("_foreach_")
            args = [x[0] if isinstance(x, list) else x for x in args]
        copies, kwargs = tree_map(
            lambda x: x.clone() if isinstance(x, Tensor) else x, (args, self.kwargs)
        )
        for function in _functions(name):
            if self._works(partial(function, *copies, **kwargs)):
                return partial(function, *args, **self.kwargs)
        return partial(direct_operator(self.func), *self.args, **self.kwargs)

    def _works(self, call: Call) -> bool:
        """Whether a call is understood; it computes something, which is never read."""
        generator = self.kwargs.get("generator")
        state = None if generator is None else generator.get_state()
        try:
            with torch.inference_mode(), warnings.catch_warnings():
                # The memory of a result that does not fit is allocated again, with a warning.
                warnings.simplefilter("error")
                call()
        except (TypeError, RuntimeError, ValueError, IndexError, UserWarning):
            return False
        finally:
            if generator is not None:
                generator.set_state(state)
        return True


class Recorder(LightDispatchMode):
    """Notes every operation, those of the backward pass among them."""

    def __init__(self) -> None:
        super().__init__()
        self._operations: list[_Operation] = []
        self._bytes, self._fit = 0, True

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if self._fit:
            self._note(func, args, kwargs or {}, result)
        return result

    def _note(self, func: Any, args: tuple[Any, ...], kwargs: Any, result: Any) -> None:
        leaves = [x for x in tree_leaves(result) if x is not None]
        found = [x for x in leaves if isinstance(x, Tensor)]
        self._fit = len(found) == len(leaves) and not _depends(func, args)
        if not self._fit:
            self._operations.clear()
            return
        made = _Operation(func, args, kwargs, found)
        new = {_memory(x): x.untyped_storage().nbytes() for x in made.results}
        self._bytes += sum(new[each] for each in made.makes)
        if self._bytes > _LARGEST:
            self._fit = False
            self._operations.clear()
        # What neither makes nor changes memory is a view.
        elif made.makes or made.changed:
            self._operations.append(made)

    def tape(self) -> Tape | None:
        """The calls to replay; None if that is not possible."""
        if not self._fit:
            return None
        own = {each for made in self._operations for each in made.makes}
        written = {each for made in self._operations for each in made.writes}
        lasting = {
            _memory(x): _whole(x)
            for made in self._operations
            for x in made.changed
            if _memory(x) not in own
        }
        if sum(x.nbytes for x in lasting.values()) > _LARGEST:
            return None
        still: set[int] = set()
        for made in self._operations:
            alone = made.name in _FILLED or (made.reads and made.reads <= still)
            if alone and not made.makes & written:
                still |= made.makes
        needed, calls = set(lasting), []
        for made in reversed(self._operations):
            if not (made.makes | made.writes) & needed:
                continue
            needed |= made.reads
            if made.name not in _EMPTY and not (made.makes and made.makes <= still):
                calls.append(made.call())
        random = {id(g): g for made in self._operations if (g := made.kwargs.get("generator"))}
        return Tape(calls[::-1], list(lasting.values()), list(random.values()))


def _depends(func: Any, args: tuple[Any, ...]) -> bool:
    """Whether a number or a shape that comes out depends on numbers."""
    # Places may be given by a mask, and usually are not.
    if func.overloadpacket.__name__ == "index":
        return any(x.dtype == torch.bool for x in _tensors(args[1]))
    return any(tag in func.tags for tag in _UNFIT)


def _tensors(value: Any) -> list[Tensor]:
    return [x for x in tree_leaves(value) if isinstance(x, Tensor)]


def _functions(name: str) -> list[Any]:
    """The functions of torch that have this name."""
    places = (torch, Tensor, *operator_modules)
    return [getattr(place, name) for place in places if hasattr(place, name)]


def _wrapped(func: Any, args: tuple[Any, ...]) -> list[Any]:
    """Arguments with numbers as tensors where they stand for one: torch would make them."""
    kinds = {x.dtype for x in _tensors(args)}
    kind = kinds.pop() if len(kinds) == 1 else torch.bool
    types = (int, float) if kind.is_floating_point else (int,)
    either = func.overloadpacket.__name__ in _EITHER
    return [
        torch.tensor(value, dtype=kind)
        if kind != torch.bool
        and type(value) in types
        and (either or str(each.type) == "Tensor")
        else value
        for each, value in zip(func._schema.arguments, args, strict=False)
    ]


def _bare(x: Any) -> Any:
    return x.detach() if isinstance(x, Tensor) else x


def _memory(x: Tensor) -> int:
    return x.untyped_storage().data_ptr()


def _whole(x: Tensor) -> Tensor:
    """All memory of a tensor as bytes."""
    storage = x.untyped_storage()
    return torch.empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),), (1,))
