"""`capture`: a function of many small operations, launched as one."""

import functools
import inspect
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.utils._device import DeviceContext

from hotgrid.config import current, logger
from hotgrid.errors import ArgumentError, MissingPartError

from ._compiling import Graph, Trial, observed, share_memory
from .tune import expect_array, transformed

_PLAIN = (Tensor, Parameter)
# None has a public name; all are the very flags that torch's dispatcher asks.
_any_autocast: Any = torch._C._is_any_autocast_enabled
_dispatch_modes: Any = torch._C._len_torch_dispatch_stack
_function_modes: Any = torch._C._len_torch_function_stack
_mode_at: Any = torch._C._get_function_stack_at
_recording: Any = torch._C._is_tracing


def capture(function: Callable[..., Any]) -> "Captured":
    """Return a function that does the same with few launches, whatever it is made of.

    An operation on a small tensor costs far more to start than to compute. A captured
    function is compiled as a whole, for each kind of call once; on a GPU the kernels that
    remain are recorded in a CUDA graph and started together. It may be called from several
    threads. Results are those of the plain function, up to rounding where operations were
    fused. Each call runs it once, also the first, with all that it does to random numbers
    and to tensors; what changes tensors or gives arguments back is compiled but not
    recorded.

    Inside of `torch.func` transforms, `torch.vmap`, forward mode and dispatch modes, while
    `torch.jit.trace` records, and for subclasses of tensors the plain function runs.
    Gradients are compiled; gradients of gradients are refused.

    Args:
        function: Takes tensors of any shapes, all on one device, and returns a tensor or a
            tuple of them. What it does must not depend on the numbers in them, nor on
            anything else that changes; tensors from elsewhere may change in place. It may
            call captured functions and tuned ops. A method is captured for each object,
            whose tensors need not be arguments.

    Returns:
        The captured function; as a decorator it takes the place of the plain one. The
        first call of a kind takes seconds, later ones some 20 us.

    Raises:
        ArgumentError: `function` is not callable.

    Example:
        >>> @capture
        ... def twice(x):
        ...     return x + x
        >>> twice(torch.ones(2))  # doctest: +SKIP
        tensor([2., 2.])
    """
    if isinstance(function, Captured):
        return function
    if not callable(function):
        raise ArgumentError(f"`function` must be callable, got {type(function).__name__}")
    return Captured(function)


class Captured:
    """A function that `capture` has taken over; call it like the plain one.

    Attributes:
        function: The plain one.

    Example:
        >>> capture(torch.square).function is torch.square
        True
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self._attribute = self._name
        self._ready: dict[Hashable, Callable[..., Any]] = {}
        self._lock = threading.RLock()

    def __call__(self, *tensors: Tensor, **named: Tensor) -> Any:
        """Compute it.

        Raises:
            ArgumentError: An argument is no tensor or has no place, they are on several
                devices, or the function cannot be captured: it is not made of tensor
                operations alone.
            MissingPartError: `compile.enabled` is `on` and nothing can be compiled here.
        """
        if named:
            tensors = self._in_order(tensors, named)
        if torch.compiler.is_compiling() or transformed() or _watched_by_others():
            return self.function(*tensors)
        kind = _kind(tensors)
        for number, x in enumerate(tensors):
            if x.is_sparse:  # its kind looks like that of a dense one
                expect_array(f"tensors[{number}]", x)
            # Their own classes say what becomes of these; a kept kernel would not ask.
            if type(x) not in _PLAIN:
                return self.function(*tensors)
            if x.is_neg() or x.is_conj() or x._is_zerotensor():
                # Compiled code reads memory as it is, and these are still to be turned; a copy
                # that is would take the changes meant for them.
                return self.function(*tensors)
        ready = self._ready.get(kind)
        if ready is None:
            with self._lock:
                ready = self._ready.get(kind)
                if ready is None:
                    self._ready[kind], result = self._first(tensors)
                    return result
        return ready(*tensors)

    def __set_name__(self, owner: type, name: str) -> None:
        """Learn which method of a class this is."""
        self._attribute = name

    def __get__(self, instance: object, owner: type | None = None) -> "Captured":
        """Return the method of one object, captured for itself and kept in the object.

        Raises:
            ArgumentError: The object has no `__dict__` to keep it in.
        """
        bind = getattr(self.function, "__get__", None)
        if instance is None or bind is None:
            return self
        held = getattr(instance, "__dict__", None)
        if not isinstance(held, dict):
            raise ArgumentError(
                f"`{self._attribute}` is captured, which needs an object with a `__dict__`; "
                f"got {instance!r}: capture a function of tensors instead"
            )
        bound = held.get(self._attribute)
        if not isinstance(bound, Captured):
            bound = held[self._attribute] = Captured(bind(instance, owner))
        return bound

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the plain function; a copy compiles for itself."""
        return capture, (self.function,)

    @property
    def _name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def _in_order(
        self, tensors: Sequence[Tensor], named: Mapping[str, Tensor]
    ) -> tuple[Tensor, ...]:
        """All arguments by position, as compiled functions take them."""
        try:
            bound = inspect.signature(self.function).bind(*tensors, **named)
        except (TypeError, ValueError) as problem:
            raise ArgumentError(f"`{self._name}` is called wrongly: {problem}") from None
        if bound.kwargs:
            raise ArgumentError(
                f"`{next(iter(bound.kwargs))}` cannot be given by name to the captured "
                f"`{self._name}`: it has no place without others that were left out"
            )
        return bound.args

    def _first(self, tensors: Sequence[Tensor]) -> tuple[Callable[..., Any], Any]:
        """Run it for the first time, once; return what to call from then on, and the result."""
        device = _common_device(tensors)
        wanted = torch.is_grad_enabled() and any(x.requires_grad for x in tensors)
        trial = None if current().compile.enabled == "off" else self._compiled(tensors, wanted)
        if trial is not None:
            ready, result, repeatable = trial
        elif device.type == "cuda" and not wanted:
            ready = self.function
            result, repeatable = observed(ready, tensors)
        else:
            return self.function, self.function(*tensors)
        if device.type != "cuda" or wanted or not repeatable:
            return ready, result
        return self._recorded(ready, tensors), result

    def _compiled(
        self, tensors: Sequence[Tensor], wanted: bool
    ) -> tuple[Callable[..., Any], Any, bool] | None:
        """Compile and run it; None where nothing can be compiled, and then it has not run."""
        trial = Trial(self.function)
        try:
            run, result = trial.run(self._watched(tensors) if wanted else tensors)
        except trial.failed as problem:
            reason = str(getattr(problem, "inner_exception", problem)).splitlines()[0]
            if current().compile.enabled == "on":
                raise MissingPartError(
                    "the setting `compile.enabled` is `on`, but torch.compile does not work "
                    f"here: {reason}; `hotgrid doctor` says what to install"
                ) from problem
            logger("compile").warning(
                "`%s` runs uncompiled, because torch.compile does not work here: %s; "
                "`hotgrid doctor` says what to install",
                self._name,
                reason,
            )
            return None
        except trial.unsupported as problem:
            self.function(*tensors)  # its own error says more, if it has one
            raise ArgumentError(
                f"`function` {self._name!r} cannot be captured, since it is not made of "
                f"tensor operations alone: {str(problem).splitlines()[0]}"
            ) from problem
        ready = (lambda *given: run(*self._watched(given))) if wanted else run
        if trial.changes and len(tensors) > 1:
            ready = self.function if trial.shared else self._unless_shared(ready)
        return ready, result, trial.repeatable

    def _unless_shared(self, ready: Callable[..., Any]) -> Callable[..., Any]:
        """Compiled code that changes tensors takes each for one in memory of its own."""
        return lambda *given: (self.function if share_memory(given) else ready)(*given)

    def _recorded(
        self, ready: Callable[..., Any], tensors: Sequence[Tensor]
    ) -> Callable[..., Any]:
        device = tensors[0].device
        # The random numbers of warm-ups are given back.
        with torch.cuda.device(device), torch.random.fork_rng([device]):
            own = [x.detach().clone() for x in tensors]
            pairs = zip(own, tensors, strict=True)
            # Copies of expanded and sliced tensors lie differently.
            if ready is not self.function and any(a.stride() != b.stride() for a, b in pairs):
                ready, _ = Trial(self.function).run(own)
            return Graph(ready, own)

    def _watched(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The tensors, such that a derivative of their gradients is refused in clear words."""
        made = {id(x): _watched(x, self._name) for x in tensors if x.requires_grad}
        return [made.get(id(x), x) for x in tensors]


class _Refused(torch.autograd.Function):
    """Gives a gradient on, and has none itself; what it depends on is named beside it."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, x: Tensor, name: str) -> Tensor:
        ctx.name = name
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise ArgumentError(
            f"the gradients of the captured `{ctx.name}` have no gradients of their own; "
            "call its plain `.function` where those are wanted"
        )


def _watched(x: Tensor, name: str) -> Tensor:
    same = x.view_as(x)
    refused: Any = _Refused.apply
    same.register_hook(lambda g: refused(g, x, name) if torch.is_grad_enabled() else g)
    return same


def _watched_by_others() -> bool:
    """Whether somebody wants to see each operation of this thread, and may change it."""
    if _dispatch_modes() or _recording():
        return True
    count = _function_modes()
    # Where new tensors go is part of the kind.
    return count > 0 and any(type(_mode_at(n)) is not DeviceContext for n in range(count))


def _kind(tensors: Sequence[Tensor]) -> Hashable:
    try:
        layouts = tuple(
            [(x.dtype, x.device, x.shape, x.stride(), x.requires_grad) for x in tensors]
        )
    except (AttributeError, RuntimeError):
        if all(isinstance(x, Tensor) for x in tensors):
            for number, x in enumerate(tensors):
                expect_array(f"tensors[{number}]", x)
        raise ArgumentError(
            "a captured function takes tensors only; got "
            + ", ".join(type(x).__name__ for x in tensors)
        ) from None
    device = layouts[0][1].type if layouts else ""
    # A graph belongs to the stream that its copies are queued on.
    queue = torch.cuda.current_stream() if device == "cuda" else None
    # A tensor that is given twice goes into the compiled graph once.
    names = [id(x) for x in tensors]
    twins = tuple(map(names.index, names)) if len(set(names)) < len(names) else None
    # What is cast, and what is noted for gradients, is compiled in.
    cast = _autocast_of(device) if _any_autocast() else None
    modes = (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), cast)
    count = _function_modes()
    place = tuple([_mode_at(n).device for n in range(count)]) if count else None
    return (layouts, twins, modes, current().compile.enabled, queue, place)


def _autocast_of(device: str) -> Hashable:
    if not torch.amp.is_autocast_available(device) or not torch.is_autocast_enabled(device):
        return None
    return torch.get_autocast_dtype(device)


def _common_device(tensors: Sequence[Tensor]) -> torch.device:
    devices = {x.device for x in tensors}
    if len(devices) != 1:
        known = ", ".join(sorted(map(str, devices))) or "none"
        raise ArgumentError(
            f"a captured function takes tensors on one device, and at least one; got {known}"
        )
    return devices.pop()
