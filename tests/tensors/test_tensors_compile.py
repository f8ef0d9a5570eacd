"""Every function of the package inside torch.compile: one graph, same values and gradients."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from hotgrid.tensors import (
    Slices,
    expect_dim,
    map_windows,
    meshgrid_stack,
    outer_dim,
    prod_dims,
    ravel_index,
    shift,
    slice_dim,
    slice_fill,
    windows,
)

pytestmark = pytest.mark.compiles

INNER = Slices("1:-1, ..., 1:")


def window_sum(w: Tensor) -> Tensor:
    return w.sum((-2, -1))


CASES: dict[str, Callable[[Tensor], Tensor]] = {
    "shift periodic": lambda x: shift(x, (1, -2)),
    "shift edge": lambda x: shift(x, (1, -20), boundary="edge"),
    "shift number": lambda x: shift(x, (-1, 20), boundary=0.5),
    "shift by size": lambda x: shift(x, x.shape[-1] // 2, boundary="edge"),
    "shift complex": lambda x: shift(x.to(torch.complex128), 1, boundary=1j).imag,
    "windows": lambda x: windows(x, 3, 2, dims=(0, 2)),
    "windows none": lambda x: windows(x, (30, 2)),
    "map_windows valid": lambda x: map_windows(window_sum, x, (3, 2)),
    "map_windows periodic": lambda x: map_windows(window_sum, x, (3, 2), boundary="periodic"),
    "map_windows around twice": lambda x: map_windows(
        window_sum, x, (30, 1), boundary="periodic"
    ),
    "map_windows edge": lambda x: map_windows(window_sum, x, (3, 2), (2, 1), boundary="edge"),
    "map_windows number": lambda x: map_windows(window_sum, x, (3, 2), boundary=1),
    "meshgrid_stack": lambda x: meshgrid_stack(x[0, 0], x[0, :, 0], dim=-1),
    "outer_dim": lambda x: outer_dim(x, x[:1], 1),
    "prod_dims": lambda x: prod_dims(x, (0, -1)),
    "Slices": INNER,
    "Slices from text": lambda x: x[Slices("1, ..., ::2").index],
    "slice_dim": lambda x: slice_dim(x, -1, "1:-1"),
    "slice_dim by size": lambda x: slice_dim(x, 1, slice(0, x.shape[1] // 2)),
    "slice_fill": lambda x: slice_fill(x, "1:, ..., ::2", 3),
    "slice_fill tensor": lambda x: slice_fill(x, (..., 2), x[..., 0]),
    "ravel_index": lambda x: ravel_index((x[0].long(), x[1].long()), x.shape[1:]),
    "ravel_index ints": lambda x: x.flatten()[ravel_index((1, -2, 3), x.shape)],
    "ravel_index broadcast": lambda x: ravel_index((x[0].long(), x[1, 0].long()), x.shape[1:]),
    "expect_dim": lambda x: x.sum(expect_dim(x, -2)),
}
# One case of each function in `make test`; the others in `make test-slow`.
FIRST = {
    *("shift by size", "windows", "map_windows periodic", "meshgrid_stack", "outer_dim"),
    *("prod_dims", "Slices", "slice_dim by size", "slice_fill", "ravel_index", "expect_dim"),
}
ONE_OF_EACH = [
    name if name in FIRST else pytest.param(name, marks=pytest.mark.long) for name in CASES
]


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def check(compiled: Callable[[Tensor], Tensor], eager: Callable[[Tensor], Tensor], x: Tensor):
    got, expected = compiled(x), eager(x)
    assert torch.equal(got, expected)
    if expected.requires_grad:
        (got_gradient,) = torch.autograd.grad(got.square().sum(), x)
        (gradient,) = torch.autograd.grad(expected.square().sum(), x)
        torch.testing.assert_close(got_gradient, gradient)


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_one_graph_for_one_shape(name: str):
    compiled = torch.compile(CASES[name], backend="aot_eager", fullgraph=True, dynamic=False)
    x = torch.randn(4, 5, 6, dtype=torch.float64, requires_grad=True)
    check(compiled, CASES[name], x)


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_one_graph_for_all_shapes(name: str):
    compiled = torch.compile(CASES[name], backend="aot_eager", fullgraph=True, dynamic=True)
    check(compiled, CASES[name], torch.randn(4, 5, 6, dtype=torch.float64, requires_grad=True))
    with torch.compiler.set_stance("fail_on_recompile"):
        other = torch.randn(5, 7, 9, dtype=torch.float64, requires_grad=True)
        check(compiled, CASES[name], other)
