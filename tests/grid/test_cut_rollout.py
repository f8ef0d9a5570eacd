"""Gradients through a grid that is cut over ranks: those of one process."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from hotgrid.cluster import Communicator, HaloExchange, Mesh, all_reduce, join, run_ranks, take
from hotgrid.errors import ArgumentError
from hotgrid.grid import Model, lbm, pde, rollout

SIZE = (16, 24)


def obstacle(size: tuple[int, ...]) -> Tensor:
    solid = torch.zeros(size, dtype=torch.bool)
    solid[6:9, 9:14] = True
    return solid


def channel() -> Model:
    """Solid, force, walls: whatever a flow may have beside streaming."""
    return lbm.Flow(
        boundaries=(lbm.Wall("y-"), lbm.Wall("y+", velocity=(0, 0.02)), lbm.HalfWay(obstacle)),
        force=(0.0, 1e-4),
        viscosity=0.1,
    )


def whole_gradient(model: Model, start: Tensor, weights: Tensor, steps: int) -> list[Tensor]:
    f = start.clone().requires_grad_()
    rate = torch.tensor(model.parameters["viscosity"], dtype=f.dtype, requires_grad=True)
    after = rollout(model, {"f": f}, steps, {"viscosity": rate})["f"]
    gradients = torch.autograd.grad((after * weights).sum(), [f, rate])
    return [after.detach(), *gradients]


def cut_gradient(
    make: Callable[[], Model], start: Tensor, weights: Tensor, mesh: str, margin: int,
    steps: int, remat: int | None = None,
) -> list[Tensor]:  # fmt: skip
    def part(ranks: Communicator) -> list[Tensor]:
        model = make()
        halo = HaloExchange(ranks, mesh, SIZE, margin)
        f = take(start, halo.block).requires_grad_()
        rate = torch.tensor(model.parameters["viscosity"], dtype=f.dtype, requires_grad=True)
        after = rollout(model, {"f": f}, steps, {"viscosity": rate}, remat=remat, halo=halo)
        loss = (after["f"] * take(weights, halo.block)).sum()
        of_f, of_rate = torch.autograd.grad(loss, [f, rate])
        return [after["f"].detach(), of_f, all_reduce(of_rate, ranks)]

    found = run_ranks(Mesh(mesh).ranks, part)
    blocks = Mesh(mesh).blocks(SIZE)
    return [
        join([each[0] for each in found], blocks),
        join([each[1] for each in found], blocks),
        found[0][2],
    ]


@pytest.mark.parametrize(
    ("mesh", "margin", "remat"),
    [
        pytest.param("2", 1, None, marks=pytest.mark.long),
        pytest.param("2x2", 3, None, marks=pytest.mark.long),
        ("3x1", 4, 10),
    ],
)
def test_a_gradient_through_fifty_steps_is_that_of_one_process(mesh, margin, remat):
    generator = torch.Generator().manual_seed(0)
    start = channel().initial(SIZE, generator)["f"].double()
    start += 1e-3 * torch.rand(start.shape, generator=generator, dtype=torch.float64)
    weights = torch.rand(start.shape, generator=generator, dtype=torch.float64)
    alone = whole_gradient(channel(), start, weights, 50)
    cut = cut_gradient(channel, start, weights, mesh, margin, 50, remat)
    assert torch.equal(alone[0], cut[0])
    torch.testing.assert_close(cut[1], alone[1], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(cut[2], alone[2], rtol=1e-10, atol=1e-10)
    assert cut[1].abs().max() > 0.1


def test_margins_that_no_step_fits_into_are_reported():
    def part(ranks: Communicator) -> None:
        halo = HaloExchange(ranks, "2", (8, 8), 0)
        with pytest.raises(ArgumentError, match="read 1 cells away, but the margins"):
            rollout(pde.Heat(), {"u": torch.zeros(4, 8)}, 1, halo=halo)

    run_ranks(2, part)


def test_ends_that_differ_are_reported():
    def part(ranks: Communicator) -> None:
        halo = HaloExchange(ranks, "2", (8, 8), 1, periodic=False)
        with pytest.raises(ArgumentError, match="give it `periodic=True`"):
            rollout(pde.Heat(), {"u": torch.zeros(4, 8)}, 1, halo=halo)

    run_ranks(2, part)


def test_cells_of_another_block_are_reported():
    def part(ranks: Communicator) -> None:
        halo = HaloExchange(ranks, "2", (8, 8), 1)
        with pytest.raises(ArgumentError, match="4, 8"):
            rollout(pde.Heat(), {"u": torch.zeros(8, 8)}, 1, halo=halo)

    run_ranks(2, part)
