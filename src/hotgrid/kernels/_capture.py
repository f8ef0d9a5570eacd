"""`capture`: a function of many small operations, launched as one."""

import functools
import threading
import types
from collections.abc import Callable, Hashable, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from hotgrid.config import current, logger
from hotgrid.errors import ArgumentError, MissingPartError

_BACKEND = "inductor"
_WARMUPS = 3  # what torch wants before a graph is recorded, for allocators and libraries


def capture(function: Callable[..., Any]) -> "Captured":
    """Return a function that does the same with few launches, whatever it is made of.

    An operation on a small tensor costs far more to start than to compute. A captured
    function is compiled as a whole, for each kind of call once; on a GPU the kernels that
    remain are recorded in a CUDA graph and started together. It may be called from several
    threads. Results are those of the plain function, up to rounding where operations were
    fused, and are new tensors each time.

    Args:
        function: Takes tensors of any shapes, all on one device, and returns a tensor or a
            tuple of them. It must depend on nothing else, not on the numbers in them for
            what it does, and must not change them. It may call captured functions and
            tuned ops.

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
        self._ready: dict[Hashable, Callable[..., Any]] = {}
        self._lock = threading.RLock()

    def __call__(self, *tensors: Tensor) -> Any:
        """Compute it.

        Raises:
            ArgumentError: An argument is no tensor, they are on several devices, or the
                function cannot be captured: it is not made of tensor operations alone.
            MissingPartError: `compile.enabled` is `on` and nothing can be compiled here.
        """
        if torch.compiler.is_compiling():
            return self.function(*tensors)
        kind = _kind(tensors)
        ready = self._ready.get(kind)
        if ready is not None:
            return ready(*tensors)
        with self._lock:
            if kind not in self._ready:
                self._ready[kind] = self._prepared(tensors)
            return self._ready[kind](*tensors)

    def _prepared(self, tensors: Sequence[Tensor]) -> Callable[..., Any]:
        device = _common_device(tensors)
        if device.type != "cuda" or _differentiated(tensors):
            return self._compiled(tensors)
        # Compiled for the graph's own tensors: those of expanded ones lie differently.
        with torch.cuda.device(device):
            own = [x.detach().clone() for x in tensors]
            return _Graph(self._compiled(own), own)

    def _compiled(self, tensors: Sequence[Tensor]) -> Callable[..., Any]:
        """The function compiled for one kind of call, or itself where that cannot be."""
        if current().compile.enabled == "off":
            return self.function
        trial = _Trial(self.function)
        try:
            return trial.run(tensors)
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
                getattr(self.function, "__name__", self.function),
                reason,
            )
            return self.function
        except trial.unsupported as problem:
            self.function(*tensors)  # its own error says more, if it has one
            raise ArgumentError(
                f"`function` {getattr(self.function, '__name__', self.function)!r} cannot be "
                f"captured, since it is not made of tensor operations alone: "
                f"{str(problem).splitlines()[0]}"
            ) from problem


class _Trial:
    """Compiles a function, and finds out whether its kernels can be called directly.

    A compiled function first asks whether everything is as it was when it was compiled,
    which takes ten times longer than starting the kernels. Here the kind of call has been
    looked up already. So if what goes in and out of the compiled graph are the very
    arguments and results of the function, the graph is called and nothing else.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        from torch._dynamo import exc, lookup_backend  # takes seconds, so not before needed

        self.failed = exc.BackendCompilerFailed
        self.unsupported = exc.Unsupported
        self._lookup = lookup_backend
        self._graphs: list[Callable[..., Any]] = []
        self._seen: list[tuple[Sequence[Any], Sequence[Any]]] | None = []
        self._compiled = torch.compile(
            _own_code(function), backend=self._backend, fullgraph=True, dynamic=False
        )

    def run(self, tensors: Sequence[Tensor]) -> Callable[..., Any]:
        """Run it once, and return what to call from then on."""
        result = self._compiled(*tensors)
        seen, self._seen = self._seen or [], None
        if len(seen) != 1 or len(self._graphs) != 1:
            return self._compiled
        inputs = [_place(x, tensors) for x in seen[0][0]]
        several = isinstance(result, tuple)
        outputs = [_place(x, seen[0][1]) for x in (result if several else [result])]
        if None in inputs or None in outputs:
            return self._compiled
        return _direct(self._graphs[0], cast(Any, inputs), cast(Any, outputs), several)

    def _backend(self, graph: Any, examples: Any) -> Callable[..., Any]:
        compiled = self._lookup(_BACKEND)(graph, examples)
        self._graphs.append(compiled)

        def noted(*inputs: Any) -> Any:
            outputs = compiled(*inputs)
            if self._seen is not None:
                self._seen.append((inputs, outputs))
            return outputs

        return noted


def _place(x: object, among: Sequence[object]) -> int | None:
    return next((n for n, each in enumerate(among) if each is x), None)


def _direct(
    graph: Callable[..., Any], inputs: list[int], outputs: list[int], several: bool
) -> Callable[..., Any]:
    def run(*tensors: Tensor) -> Any:
        found = graph(*[tensors[n] for n in inputs])
        return tuple([found[n] for n in outputs]) if several else found[outputs[0]]

    return run


class _Graph:
    """A CUDA graph with tensors of its own: arguments are copied in, results copied out."""

    def __init__(self, run: Callable[..., Any], inputs: Sequence[Tensor]) -> None:
        self._lock = threading.Lock()
        self._inputs = inputs
        with torch.no_grad():
            aside = torch.cuda.Stream()
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                for _ in range(_WARMUPS):
                    run(*self._inputs)
            torch.cuda.current_stream().wait_stream(aside)
            self._graph = torch.cuda.CUDAGraph()
            # Other threads may go on working meanwhile.
            with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
                self._outputs = run(*self._inputs)

    def __call__(self, *tensors: Tensor) -> Any:
        with self._lock, torch.no_grad():
            for own, given in zip(self._inputs, tensors, strict=True):
                own.copy_(given)
            self._graph.replay()
            if isinstance(self._outputs, Tensor):
                return self._outputs.clone()
            return tuple(x.clone() for x in self._outputs)


def _kind(tensors: Sequence[Tensor]) -> Hashable:
    try:
        layouts = tuple(
            [(x.dtype, x.device, x.shape, x.stride(), x.requires_grad) for x in tensors]
        )
    except AttributeError:
        raise ArgumentError(
            "a captured function takes tensors only; got "
            + ", ".join(type(x).__name__ for x in tensors)
        ) from None
    # A graph belongs to the stream that its copies are queued on.
    queue = torch.cuda.current_stream() if layouts and layouts[0][1].type == "cuda" else None
    # A tensor that is given twice goes into the compiled graph once.
    names = [id(x) for x in tensors]
    twins = tuple(map(names.index, names)) if len(set(names)) < len(names) else None
    return (layouts, twins, torch.is_grad_enabled(), current().compile.enabled, queue)


def _common_device(tensors: Sequence[Tensor]) -> torch.device:
    devices = {x.device for x in tensors}
    if len(devices) != 1:
        known = ", ".join(sorted(map(str, devices))) or "none"
        raise ArgumentError(
            f"a captured function takes tensors on one device, and at least one; got {known}"
        )
    return devices.pop()


def _differentiated(tensors: Sequence[Tensor]) -> bool:
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


def _own_code(function: Callable[..., Any]) -> Callable[..., Any]:
    """A copy with its own code: torch compiles one code only for a few kinds of calls."""
    if not isinstance(function, types.FunctionType):
        return function
    copy = types.FunctionType(
        function.__code__.replace(),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy
