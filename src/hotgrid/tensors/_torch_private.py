"""Every private name of torch that hotgrid uses; no other module may name one.

A name without another note is used as torch 2.13 has it. hotgrid allows torch 2.11 to 2.13, so
a new version of torch means going through this file; tests/project/test_torch_private.py
checks that there is no second place.
"""

import contextlib
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.utils import _device, _python_dispatch, _pytree

_C: Any = torch._C
_functorch: Any = _C._functorch

TorchDispatchMode = _python_dispatch.TorchDispatchMode  # the base of modes that see every op
DeviceContext = _device.DeviceContext  # what `with torch.device(...)` enters
tree_flatten, tree_unflatten = _pytree.tree_flatten, _pytree.tree_unflatten
tree_leaves, tree_map = _pytree.tree_leaves, _pytree.tree_map

# The state of a thread, as torch's dispatcher reads it.
count_dispatch_modes: Callable[[], int] = _C._len_torch_dispatch_stack
count_function_modes: Callable[[], int] = _C._len_torch_function_stack
function_mode_at: Callable[[int], Any] = _C._get_function_stack_at
any_autocast: Callable[[], bool] = _C._is_any_autocast_enabled
is_jit_tracing: Callable[[], bool] = _C._is_tracing
jit_tracing_state: Callable[[], Any] = _C._get_tracing_state  # unlike the last, dynamo knows it
current_transform: Callable[[], Any] = _functorch.peek_interpreter_stack  # vmap, grad, ...
is_transformed_tensor: Callable[[Any], bool] = _functorch.is_functorch_wrapped_tensor
is_zero_tensor: Callable[[Tensor], bool] = Tensor._is_zerotensor  # zeros without memory
DisableTorchFunction: Any = _C.DisableTorchFunction

# Dispatch keys, for computing below a mode as torch itself does.
is_key_excluded: Callable[[Any], bool] = _C._dispatch_tls_is_dispatch_key_excluded
included_keys: Callable[[], Any] = _C._dispatch_tls_local_include_set
excluded_keys: Callable[[], Any] = _C._dispatch_tls_local_exclude_set
ForceDispatchKeys: Any = _C._ForceDispatchKeyGuard
DispatchKey: Any = _C.DispatchKey
DispatchKeySet: Any = _C.DispatchKeySet

# CUDA; a build for CPUs lacks these, hence the defaults.
current_cuda_device: Callable[[], int] = getattr(
    _C, "_cuda_getDevice", torch.cuda.current_device
)
TORCH_LIBRARY: str = _C.__file__  # the shared library that knows torch's OpenMP

OpOverload: Any = torch._ops.OpOverload  # the type of `torch.ops.aten.add.Tensor`

# Operators over lists of tensors: one launch for many small ones.
_torch: Any = torch
foreach_add_: Callable[..., None] = _torch._foreach_add_
foreach_copy_: Callable[..., None] = _torch._foreach_copy_
foreach_lerp: Callable[..., list[Tensor]] = _torch._foreach_lerp
foreach_lerp_: Callable[..., None] = _torch._foreach_lerp_
foreach_mul_: Callable[..., None] = _torch._foreach_mul_
foreach_sign_: Callable[..., None] = _torch._foreach_sign_

# Where Python finds operators, besides `torch` itself.
operator_modules: tuple[Any, ...] = (_C._nn, _C._linalg, _C._special)


class LightDispatchMode(TorchDispatchMode):
    """A mode whose first use does not import torch's compiler, which takes a second."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


def direct_operator(overload: Any) -> Callable[..., Any]:
    """Return an operator such as `torch.ops.aten.add.Tensor` without its frame in Python."""
    return overload._op


@contextlib.contextmanager
def without_onednn() -> Iterator[None]:
    """Compute without oneDNN; torch's own context sets more than that, and warns."""
    before = _C._get_mkldnn_enabled()
    _C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        _C._set_mkldnn_enabled(before)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread: waking others takes longer than little work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def in_forward_mode() -> bool:
    """Return whether forward-mode differentiation is on in this thread."""
    return forward_ad._current_level >= 0


def cuda_stream_getter() -> Callable[[int], int]:
    """Return a function that gives the handle of the current stream of a GPU."""
    return _C._cuda_getCurrentRawStream


def cuda_driver_version() -> int:
    """Return the version of the CUDA driver; 0 if it is unknown."""
    return getattr(_C, "_cuda_getDriverVersion", lambda: 0)()


def hold_cuda(cycles: int) -> None:
    """Keep the current stream of a GPU busy for a number of cycles."""
    torch.cuda._sleep(cycles)


def tensor_guards() -> Any:
    """Return the check of tensors against earlier ones that torch's compiler uses."""
    return _C._dynamo.guards.TensorGuards


def without_dispatch_modes() -> Any:
    """Return a context in which no dispatch mode of this thread is active."""
    return _python_dispatch._disable_current_modes()


def fake_tensors() -> Any:
    """Return a mode whose tensors have a shape, a type and a device, and no memory."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode(allow_non_fake_inputs=True)


def is_fake(x: Tensor) -> bool:
    """Return whether a tensor is one of `fake_tensors`."""
    from torch._subclasses.fake_tensor import FakeTensor

    return isinstance(x, FakeTensor)


def autograd_kernel(operator: Any, backward: Any, setup_context: Any) -> Callable[..., Any]:
    """Return what `torch.library.register_autograd` would register."""
    from torch._library.autograd import Info, make_autograd_impl

    return make_autograd_impl(operator, Info(backward, setup_context))


def dynamo() -> Any:
    """Return `torch._dynamo`, for its errors and backends; the first import takes seconds."""
    import torch._dynamo

    return torch._dynamo


def inductor_config() -> Any:
    """Return the settings of Inductor."""
    from torch._inductor import config

    return config


def tracer_config() -> Any:
    """Return the settings of AOTAutograd."""
    from torch._functorch import config

    return config


def tracing_context() -> Any:
    """Return what torch knows of the graph that it compiles; None outside of a compiler."""
    from torch._guards import TracingContext

    return TracingContext.try_get()


def compiled_modules() -> list[Any]:
    """Return the modules that Inductor has written and loaded."""
    from torch._inductor.codecache import PyCodeCache

    return list(getattr(PyCodeCache, "modules", []))


def decompositions(operators: list[Any]) -> dict[Any, Callable[..., Any]]:
    """Return operators of torch written as simpler ones."""
    from torch._decomp import get_decompositions

    return get_decompositions(operators)


def gloo_group(store: Any, rank: int, size: int, timeout: float) -> Any:
    """Return a process group for one rank of several in this process, through Gloo."""
    import torch.distributed as dist

    options = dist.ProcessGroupGloo._Options()  # pyright: ignore[reportAttributeAccessIssue]
    options._devices = [dist.ProcessGroupGloo.create_device(hostname="127.0.0.1")]
    options._timeout = timedelta(seconds=timeout)
    backend = dist.ProcessGroupGloo(store, rank, size, options)
    group = dist.ProcessGroup(store, rank, size)
    kind = dist.ProcessGroup.BackendType.GLOO
    group._register_backend(torch.device("cpu"), kind, backend)
    group._set_default_backend(kind)
    return group
