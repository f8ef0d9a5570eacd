"""`Recorded`: a function of many small operations, recorded once and then replayed."""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from hotgrid.tensors._torch_private import (
    TorchDispatchMode,
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
_UNFIT = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)

Call = Callable[[], object]


class Recorded:
    """A function without arguments, which changes tensors in place.

    It is for a CPU what a CUDA graph is for a GPU. Where tensors are small, most of the time
    goes into autograd, views, memory and Python. A replay only calls the kernels, on the
    memory of the recording. They are the same kernels in the same order, so the results are
    equal to the bit, and whether a call is replayed or not makes no difference.

    The first call is a plain one, the second is recorded, and the third is made both ways and
    compared. If they differ, or if the function looks at numbers or needs much memory, all
    further calls are plain.

    Args:
        function: What lasts between two calls must be tensors that change in place.

    Example:
        >>> x = torch.zeros(3)
        >>> count = Recorded(lambda: x.add_(torch.ones(3) * 2))
        >>> for _ in range(5):
        ...     count()
        >>> x, count.replays
        (tensor([10., 10., 10.]), True)
    """

    def __init__(self, function: Callable[[], object]) -> None:
        self._function = function
        self._call: Call = self._first

    @property
    def replays(self) -> bool:
        """Whether the next call is a replay."""
        return isinstance(getattr(self._call, "__self__", None), _Tape)

    def __call__(self) -> None:
        """Do what the function does."""
        self._call()

    def _first(self) -> None:
        self._function()
        self._call = self._second

    def _second(self) -> None:
        with _Recorder() as recorder:
            self._function()
        tape = recorder.tape()
        self._call = self._function if tape is None else partial(self._third, tape)

    def _third(self, tape: "_Tape") -> None:
        # A replay on both sides: what the function does beside torch shows in one of them.
        before = tape.snapshot()
        tape.replay()
        replays = [tape.snapshot()]
        tape.restore(before)
        self._function()
        after = tape.snapshot()
        tape.restore(before)
        tape.replay()
        replays.append(tape.snapshot())
        tape.restore(after)
        same = all(
            torch.equal(x, y) for found in replays for x, y in zip(found, after, strict=True)
        )
        self._call = tape.replay if same else self._function


class _Tape:
    """Calls of kernels, and what they change that lasts."""

    def __init__(
        self,
        calls: Sequence[Call],
        written: Sequence[Tensor],
        random: Sequence[torch.Generator],
    ) -> None:
        self._calls, self._written, self._random = calls, written, random

    @torch.inference_mode()
    def replay(self) -> None:
        for call in self._calls:
            call()

    def snapshot(self) -> list[Tensor]:
        return [x.clone() for x in self._written] + [g.get_state() for g in self._random]

    def restore(self, found: Sequence[Tensor]) -> None:
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
        """What does it again, into the same memory."""
        if self.changed:
            return self._again()
        out: Any = self.results[0] if len(self.results) == 1 else tuple(self.results)
        if self.name in _COPIES:
            return partial(out.copy_, self.args[0])
        for function, name in self._with_out():
            found = partial(function, *self.args, **self.kwargs, **{name: out})
            if self._works(found):
                return found
        if len(self.results) == 1:
            return lambda: out.copy_(self.func(*self.args, **self.kwargs))
        return self._copied

    def _copied(self) -> None:
        found = tree_leaves(self.func(*self.args, **self.kwargs))
        for x, value in zip(self.results, found, strict=True):
            x.copy_(value)

    def _with_out(self) -> list[tuple[Any, str]]:
        """Functions that take the memory of the result: those of Python are called sooner."""
        found = [
            (getattr(place, self.name, None), "out") for place in (torch, *operator_modules)
        ]
        expected = [each.name for each in self.func._schema.arguments]
        packet = self.func.overloadpacket
        for overload in (getattr(packet, name) for name in packet.overloads()):
            arguments = overload._schema.arguments
            outs = [each.name for each in arguments if each.is_out]
            others = [each.name for each in arguments if not each.is_out]
            if len(outs) == 1 and others == [x for x in expected if x in others]:
                found.append((direct_operator(overload), outs[0]))
        return [(function, name) for function, name in found if function is not None]

    def _again(self) -> Call:
        given = (self.args, self.kwargs)
        args, kwargs = tree_map(lambda x: x.clone() if isinstance(x, Tensor) else x, given)
        for place in (Tensor, torch, *operator_modules):
            function = getattr(place, self.name, None)
            if function and self._works(partial(function, *args, **kwargs)):
                return partial(function, *self.args, **self.kwargs)
        return partial(direct_operator(self.func), *self.args, **self.kwargs)

    def _works(self, call: Call) -> bool:
        """Whether a call is understood; it computes something, which nobody reads."""
        generator = self.kwargs.get("generator")
        state = None if generator is None else generator.get_state()
        try:
            with torch.inference_mode(), warnings.catch_warnings():
                # The memory of a result that does not fit is taken anew, with a warning.
                warnings.simplefilter("error")
                call()
        except (TypeError, RuntimeError, ValueError, IndexError, UserWarning):
            return False
        finally:
            if generator is not None:
                generator.set_state(state)
        return True


class _Recorder(TorchDispatchMode):
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

    def tape(self) -> _Tape | None:
        """What can be replayed; None if that is not possible."""
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
        return _Tape(calls[::-1], list(lasting.values()), list(random.values()))


def _depends(func: Any, args: tuple[Any, ...]) -> bool:
    """Whether a number or a shape that comes out depends on numbers."""
    # Places may be given by a mask, and usually are not.
    if func.overloadpacket.__name__ == "index":
        return any(x.dtype == torch.bool for x in _tensors(args[1]))
    return any(tag in func.tags for tag in _UNFIT)


def _tensors(value: Any) -> list[Tensor]:
    return [x for x in tree_leaves(value) if isinstance(x, Tensor)]


def _wrapped(func: Any, args: tuple[Any, ...]) -> list[Any]:
    """Numbers that take the place of tensors as such: torch would make them in every call."""
    kinds = {x.dtype for x in _tensors(args)}
    kind = kinds.pop() if len(kinds) == 1 else torch.bool
    return [
        torch.tensor(value, dtype=kind)
        if type(value) in (int, float) and kind.is_floating_point and str(each.type) == "Tensor"
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
    return torch.empty(0, dtype=torch.uint8, device=x.device).set_(
        storage, 0, (storage.nbytes(),)
    )
