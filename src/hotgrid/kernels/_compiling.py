"""Compiling a function for `capture`, and recording the kernels that it launches."""

import threading
import types
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, cast

import torch
from torch import Tensor

from hotgrid.tensors._torch_private import (
    TorchDispatchMode,
    dynamo,
    inductor_config,
    tracer_config,
    tracing_context,
    tree_leaves,
)

from ._compiler_paths import quote_torch_folder

_BACKEND = "inductor"
_WARMUPS = 3  # what torch wants before a graph is recorded, for allocators and libraries
# In training these change the averages they are given, which torch does not count as such.
_KEEP_AVERAGES = ("batch_norm", "instance_norm")


class Trial:
    """Compiles a function, and finds out whether its kernels can be called directly.

    A compiled function first asks whether everything is as it was when it was compiled,
    which takes ten times longer than starting the kernels. Here the kind of call has been
    looked up already. So if what goes in and out of the compiled graph are the very
    arguments and results of the function, the graph is called and nothing else. A method
    or a module may have changed meanwhile, so that is always asked.

    Args:
        function: The function.
        first: How many of its arguments are not tensors; they come first.

    Attributes:
        failed: What is raised where nothing can be compiled.
        unsupported: What is raised for a function that cannot be.
        repeatable: After a run, whether all that it does is to compute new tensors, so that
            it can be run again without side effects.
        changes: After a run, whether it changes tensors that it was given.
        shared: After a run, whether several of them were in the same memory.
    """

    def __init__(self, function: Callable[..., Any], first: int = 0) -> None:
        quote_torch_folder()
        compiler = dynamo()
        self.failed = compiler.exc.BackendCompilerFailed
        # Where sizes depend on numbers, Inductor may write code that does not know its names.
        self.unsupported = (compiler.exc.TorchDynamoException, NameError)
        self.repeatable = False
        self._lookup = compiler.lookup_backend
        self._graphs: list[Callable[..., Any]] = []
        self.changes = self.shared = False
        self._seen: list[tuple[Sequence[Any], Sequence[Any]]] | None = []
        self._first = first
        self._has_state = first > 0 or not isinstance(
            function, types.FunctionType | types.BuiltinFunctionType
        )
        self._compiled = torch.compile(
            own_code(function), backend=self._backend, fullgraph=True, dynamic=False
        )

    def run(self, arguments: Sequence[Any]) -> tuple[Callable[..., Any], Any]:
        """Run it once; return what to call from then on, and the result."""
        tensors = arguments[self._first :]
        self.shared = share_memory(tensors)
        with warnings.catch_warnings():
            # The tracer looks at every tensor's `grad`, and only a leaf should have one.
            warnings.filterwarnings("ignore", "The .grad attribute of a Tensor")
            result = self._compiled(*arguments)
        seen, self._seen = self._seen or [], None
        known = [x for given, _ in seen for x in given]
        self.repeatable = not self.changes and _all_new(result, [*tensors, *known])
        if self._has_state or len(seen) != 1 or len(self._graphs) != 1:
            return self._compiled, result
        inputs = [_place(x, tensors) for x in seen[0][0]]
        make = maker_of(result)
        outputs = [_place(x, seen[0][1]) for x in ([result] if make is None else result)]
        if None in inputs or None in outputs:
            return self._compiled, result
        run = _direct(self._graphs[0], cast(Any, inputs), cast(Any, outputs), make)
        return run, result

    def _backend(self, graph: Any, examples: Any) -> Callable[..., Any]:
        self.changes = self.changes or any(map(_changes, graph.graph.nodes))
        # Compilers assume that tensors share no memory: a change through another is missed.
        compiled = graph.forward
        if not (self.changes and self.shared):
            built = self._built(graph, examples)
            self.changes = self.changes or _compiled_to_change()
            compiled = compiled if self.changes and self.shared else built
        self._graphs.append(compiled)

        def noted(*inputs: Any) -> Any:
            outputs = compiled(*inputs)
            if self._seen is not None:
                self._seen.append((inputs, outputs))
            return outputs

        return noted

    def _built(self, graph: Any, examples: Any) -> Callable[..., Any]:
        # torch keeps what it has compiled, and forgets there which arguments shared memory, and
        # which are changed.
        tracer, inductor = tracer_config(), inductor_config()
        forgets = self.shared or any(map(_may_change, graph.graph.nodes))
        kept = tracer.enable_autograd_cache and not forgets
        # Inductor's own random numbers differ from those of the plain function.
        with tracer.patch(enable_autograd_cache=kept), inductor.patch(fallback_random=True):
            return self._lookup(_BACKEND)(graph, examples)


def _changes(node: Any) -> bool:
    """Whether a part of a traced function changes one of its arguments."""
    if node.op == "placeholder":
        # What stands for it while tracing is new, and has a version like any tensor.
        return getattr(node.meta.get("example_value"), "_version", 0) > 0
    return getattr(node.target, "__name__", "") in _KEEP_AVERAGES


def _may_change(node: Any) -> bool:
    """Whether a part of a traced function may change one of its arguments."""
    name = str(getattr(node.target, "__name__", node.target))
    schema = getattr(node.target, "_schema", None)
    in_place = name.endswith("_") and not name.endswith("__")
    aside = name == "_get_data_attr" or "mutation" in name or "out" in node.kwargs
    return in_place or aside or (schema is not None and schema.is_mutable)


def _compiled_to_change() -> bool:
    """Whether the compiler has just found changes that leave no version behind.

    So it is through `x.data`, and of lists of tensors such as those of `torch._foreach_add_`.
    """
    found = getattr(tracing_context(), "fw_metadata", None)
    return any(each.mutates_data for each in getattr(found, "input_info", ()))


def _all_new(result: Any, inputs: Sequence[Any]) -> bool:
    """Whether it is a tensor or a tuple of them, none in the memory of an input."""
    results = (result,) if maker_of(result) is None else result
    if not all(isinstance(x, Tensor) for x in results):
        return False
    known = {_memory(x) for x in inputs if isinstance(x, Tensor)}
    return not any(_memory(x) in known for x in results)


def maker_of(result: Any) -> Callable[[list[Any]], Any] | None:
    """Return what makes a tuple like this one out of its items; None if it is no such tuple.

    A named tuple, also one of torch's such as that of `torch.max`, is made again as it was.
    """
    kind = type(result)
    if kind is tuple:
        return tuple
    if kind.__module__ == "torch.return_types":
        return kind
    return getattr(kind, "_make", None) if isinstance(result, tuple) else None


def share_memory(tensors: Sequence[Tensor]) -> bool:
    """Return whether two different ones among them are in the same memory."""
    own = {id(x): x.untyped_storage() for x in tensors if x.numel()}.values()
    ends = sorted([(each.data_ptr(), each.data_ptr() + each.nbytes()) for each in own])
    return any(last > first for (_, last), (first, _) in pairwise(ends))


def _memory(x: Tensor) -> int:
    return x.untyped_storage().data_ptr()


def observed(function: Callable[..., Any], tensors: Sequence[Any]) -> tuple[Any, bool]:
    """Run a function that is not compiled; return the result, and whether it is repeatable."""
    with _Observer() as observer:
        result = function(*tensors)
    return result, not observer.changes and _all_new(result, tensors)


class _Observer(TorchDispatchMode):
    """Finds out whether operations change tensors that they have not made themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.changes = False
        self._made: set[int] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        given = {_memory(x) for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)}
        named = zip(func._schema.arguments, args, strict=False)
        written = [value for each, value in named if _is_written(each)]
        written += [kwargs[each] for each in kwargs if each.startswith("out")]
        targets = {_memory(x) for x in tree_leaves(written) if isinstance(x, Tensor)}
        if not targets <= self._made or any(name in str(func) for name in _KEEP_AVERAGES):
            self.changes = True
        result = func(*args, **kwargs)
        made = {_memory(x) for x in tree_leaves(result) if isinstance(x, Tensor)}
        self._made |= made - given
        return result


def _is_written(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


def _place(x: object, among: Sequence[object]) -> int | None:
    return next((n for n, each in enumerate(among) if each is x), None)


def _direct(
    graph: Callable[..., Any],
    inputs: list[int],
    outputs: list[int],
    make: Callable[[list[Any]], Any] | None,
) -> Callable[..., Any]:
    def run(*tensors: Tensor) -> Any:
        found = graph(*[tensors[n] for n in inputs])
        return found[outputs[0]] if make is None else make([found[n] for n in outputs])

    return run


def own_code(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a copy with its own code: torch compiles one only for a few kinds of calls."""
    if isinstance(function, types.MethodType):
        return types.MethodType(own_code(function.__func__), function.__self__)
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


class Graph:
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
            # Other threads may continue working meanwhile.
            with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
                self._outputs = run(*self._inputs)

    def __call__(self, *tensors: Tensor) -> Any:
        """Copy the arguments in, launch all, and copy the results out."""
        with self._lock, torch.no_grad():
            for own, given in zip(self._inputs, tensors, strict=True):
                own.copy_(given)
            self._graph.replay()
            if isinstance(self._outputs, Tensor):
                return self._outputs.clone()
            make: Any = maker_of(self._outputs)
            return make([x.clone() for x in self._outputs])
