"""`capture`: a function of many small operations, launched as one."""

import functools
import inspect
import threading
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from hotgrid.config import current, logger
from hotgrid.errors import ArgumentError, MissingPartError
from hotgrid.tensors._torch_private import (
    DeviceContext,
    any_autocast,
    count_dispatch_modes,
    count_function_modes,
    function_mode_at,
    is_jit_tracing,
    is_zero_tensor,
    tree_leaves,
)

from ._compiling import Graph, Trial, observed, share_memory
from .tune import expect_array, transformed

_PLAIN = (Tensor, Parameter)


def capture(function: Callable[..., Any]) -> "Captured":
    """Return a function that does the same with few launches.

    Small operations take longer to launch than to compute. A captured function is compiled as a
    whole, for each kind of call once; on a GPU the kernels that remain are recorded in a CUDA
    graph and started together. It may be called from several threads. Results are those of the
    plain function, up to rounding where operations were fused. Each call runs it once, also the
    first, with its effects on random numbers and tensors; a function that mutates tensors or
    returns arguments is compiled but not recorded.

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
    """A captured function; call it like the plain one.

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
        # What is compiled takes the object of a method first, so that it need not hold it.
        static = isinstance(function, staticmethod)
        self._plain: Callable[..., Any] = function.__func__ if static else function
        self._object: tuple[object, ...] = ()
        self._state = _State()
        self._methods: dict[int, _Method] = {}
        # Whether its first argument may be the object whose method it is.
        self._unbound = False

    @property
    def _ready(self) -> dict[Hashable, Callable[..., Any]]:
        return self._state.ready

    def __call__(self, *tensors: Tensor, **named: Tensor) -> Any:
        """Compute it.

        Raises:
            ArgumentError: An argument is not a tensor or has no position, they are on several
                devices, or the function cannot be captured: it is not made of tensor
                operations alone.
            MissingPartError: `compile.enabled` is `on` and nothing can be compiled here.
        """
        if named:
            tensors = self._in_order(tensors, named)
        if torch.compiler.is_compiling() or transformed() or _watched_by_others():
            return self.function(*tensors)
        if self._unbound and tensors and not isinstance(tensors[0], Tensor):
            return self.__get__(tensors[0])(*tensors[1:])
        kind = _kind(tensors)
        for number, x in enumerate(tensors):
            if x.is_sparse:  # its key equals that of a dense one
                expect_array(f"tensors[{number}]", x)
            # Subclasses of tensors define their own operations, which a compiled kernel would
            # skip.
            if type(x) not in _PLAIN:
                return self.function(*tensors)
            if x.is_neg() or x.is_conj() or is_zero_tensor(x):
                # Compiled code ignores lazy conjugates and negatives; resolving them here would
                # copy, and mutations would hit the copy.
                return self.function(*tensors)
        state = self._state
        ready = state.ready.get(kind)
        if ready is None:
            with state.lock:
                ready = state.ready.get(kind)
                if ready is None:
                    state.ready[kind], result = self._first(tensors)
                    return result
        return ready(*self._object, *tensors)

    def __set_name__(self, owner: type, name: str) -> None:
        """Store the name of the method that this is."""
        self._attribute = name
        self._unbound = not isinstance(self.function, staticmethod)

    def __get__(self, instance: object, owner: type | None = None) -> "Captured":
        """Return the method of one object, which is compiled for this object alone.

        Nothing is stored in the object: what was compiled is kept here, by a weak reference.

        Raises:
            ArgumentError: The object cannot be weakly referenced.
        """
        bind = getattr(self.function, "__get__", None)
        if instance is None or bind is None:
            return self
        # Part of another compiled function, where torch would lose the object.
        if torch.compiler.is_compiling():
            return bind(instance, owner)
        function = bind(instance, owner)
        if getattr(function, "__self__", None) is not instance:  # a static method
            return self
        kept = self._methods.get(id(instance))
        if kept is None:
            kept = self._kept(instance)
        bound = kept.bound()
        if bound is None:
            bound = object.__new__(Captured)
            vars(bound).update(vars(self))
            bound.function, bound._object, bound._state = function, (instance,), kept.state
            bound._unbound = False
            kept.bound = weakref.ref(bound)
        return bound

    def _kept(self, instance: object) -> "_Method":
        """Cache a method as long as its object lives."""
        methods, key = self._methods, id(instance)
        try:
            kept = _Method(weakref.ref(instance, lambda _: methods.pop(key, None)))
        except TypeError:
            raise ArgumentError(
                f"`{self._attribute}` is captured, which needs an object with weak references; "
                f"got {instance!r}: add `__weakref__` to its `__slots__`, or capture a "
                "function of tensors instead"
            ) from None
        # Another thread may have been first.
        return methods.setdefault(key, kept)

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
            raise ArgumentError(
                f"`{self._name}` is called with wrong arguments: {problem}"
            ) from None
        if bound.kwargs:
            raise ArgumentError(
                f"`{next(iter(bound.kwargs))}` cannot be given by name to the captured "
                f"`{self._name}`: it is keyword-only, or an argument before it is missing"
            )
        return bound.args

    def _first(self, tensors: Sequence[Tensor]) -> tuple[Callable[..., Any], Any]:
        """Run it for the first time; return the function for later calls, and the result."""
        device = _common_device(tensors)
        wanted = torch.is_grad_enabled() and any(x.requires_grad for x in tensors)
        trial = None if current().compile.enabled == "off" else self._compiled(tensors, wanted)
        if trial is not None:
            ready, result, repeatable = trial
        elif device.type == "cuda" and not wanted:
            ready = self._plain
            result, repeatable = observed(ready, (*self._object, *tensors))
        else:
            return self._plain, self.function(*tensors)
        if device.type != "cuda" or wanted or not repeatable or _have_gradients(result):
            return ready, result
        return self._recorded(ready, tensors), result

    def _compiled(
        self, tensors: Sequence[Tensor], wanted: bool
    ) -> tuple[Callable[..., Any], Any, bool] | None:
        """Compile and run it; None where nothing can be compiled, and then it has not run."""
        plain, first, name = self._plain, len(self._object), self._name
        trial = Trial(plain, first)
        given = (*self._object, *(_watched(tensors, name) if wanted else tensors))
        try:
            run, result = trial.run(given)
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
                name,
                reason,
            )
            return None
        except trial.unsupported as problem:
            self.function(*tensors)  # its own error says more, if it has one
            raise ArgumentError(
                f"`function` {name!r} cannot be captured, since it is not made of "
                f"tensor operations alone: {str(problem).splitlines()[0]}"
            ) from problem
        ready = run
        if wanted or _have_gradients(result):
            _refuse_second_gradients(result, name)
            ready = _with_gradients(run, name, first, wanted)
        if trial.changes and len(tensors) > 1:
            ready = plain if trial.shared else _unless_shared(ready, plain, first)
        return ready, result, trial.repeatable

    def _recorded(
        self, ready: Callable[..., Any], tensors: Sequence[Tensor]
    ) -> Callable[..., Any]:
        device, first = tensors[0].device, self._object
        # Restore the generator: warm-ups draw random numbers.
        with torch.cuda.device(device), torch.random.fork_rng([device]):
            own = [x.detach().clone() for x in tensors]
            pairs = zip(own, tensors, strict=True)
            # Copies of expanded and sliced tensors have other strides.
            if ready is not self._plain and any(a.stride() != b.stride() for a, b in pairs):
                ready, _ = Trial(self._plain, len(first)).run((*first, *own))
            graph = Graph(functools.partial(ready, *first) if first else ready, own)
        return (lambda _, *given: graph(*given)) if first else graph


class _State:
    """The compiled variants of one function by key; hold `lock` to add one."""

    def __init__(self) -> None:
        self.ready: dict[Hashable, Callable[..., Any]] = {}
        self.lock = threading.RLock()


class _Method:
    """A captured method of one object, held by a weak reference."""

    def __init__(self, instance: "weakref.ref[object]") -> None:
        self.instance = instance  # drops the method when the object is freed
        self.state = _State()
        self.bound: Callable[[], Captured | None] = lambda: None


def _unless_shared(
    ready: Callable[..., Any], plain: Callable[..., Any], first: int
) -> Callable[..., Any]:
    """Run the plain function if arguments share memory; compiled code assumes they do not."""
    return lambda *given: (plain if share_memory(given[first:]) else ready)(*given)


def _with_gradients(
    run: Callable[..., Any], name: str, first: int, wanted: bool
) -> Callable[..., Any]:
    """Refuse second derivatives; torch's own error names no function."""

    def ready(*given: Any) -> Any:
        tensors = _watched(given[first:], name) if wanted else given[first:]
        result = run(*given[:first], *tensors)
        _refuse_second_gradients(result, name)
        return result

    return ready


class _Refused(torch.autograd.Function):
    """Passes a gradient on and refuses to be differentiated; takes what it depends on."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, x: Tensor, name: str) -> Tensor:
        ctx.name = name
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise ArgumentError(
            f"the gradients of the captured `{ctx.name}` cannot be differentiated; "
            "call its plain `.function` for second derivatives"
        )


_refused: Any = _Refused.apply


def _watched(tensors: Sequence[Tensor], name: str) -> list[Tensor]:
    """The tensors, such that second derivatives raise a clear error."""
    made = {id(x): _watched_one(x, name) for x in tensors if x.requires_grad}
    return [made.get(id(x), x) for x in tensors]


def _watched_one(x: Tensor, name: str) -> Tensor:
    same = x.view_as(x)
    same.register_hook(lambda g: _refused(g, x, name) if torch.is_grad_enabled() else g)
    return same


def _have_gradients(result: Any) -> bool:
    return any(isinstance(x, Tensor) and x.requires_grad for x in tree_leaves(result))


def _refuse_second_gradients(result: Any, name: str) -> None:
    """Refuse derivatives of gradients of tensors that are not arguments, such as weights."""

    def refuse(gradients: tuple[Any, ...], _: Any) -> tuple[Any, ...] | None:
        if not torch.is_grad_enabled():
            return None
        return tuple(g if g is None else _refused(g, g, name) for g in gradients)

    nodes = {x.grad_fn for x in tree_leaves(result) if isinstance(x, Tensor)}
    for node in nodes:
        # Arguments that are returned unchanged have gradients of their own.
        if node is not None and node.name().startswith("CompiledFunction"):
            node.register_hook(refuse)


def _watched_by_others() -> bool:
    """Whether a mode or a tracer sees each operation of this thread, and may change it."""
    if count_dispatch_modes() or is_jit_tracing():
        return True
    count = count_function_modes()
    # Where new tensors go is part of the kind.
    return count > 0 and any(
        type(function_mode_at(n)) is not DeviceContext for n in range(count)
    )


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
    # Autocast and gradient mode are compiled in.
    cast = _autocast_of(device) if any_autocast() else None
    modes = (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), cast)
    count = count_function_modes()
    place = tuple([function_mode_at(n).device for n in range(count)]) if count else None
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
