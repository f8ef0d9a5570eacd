"""Large grids compute with denormal numbers as zero on the CPU, alike in every form."""

import pytest
import torch
from torch import Tensor

from hotgrid.cluster import Communicator, run_ranks
from hotgrid.grid import Field, Model, Simulation

LARGE = (96, 192)
SMALL = (24, 48)
TINY = torch.finfo(torch.float32).tiny


class Fading(Model):
    """Halves in a step and spreads to the right."""

    fields = (Field("u"),)

    def step(self, state, inputs, params):
        return {"u": 0.4 * state["u"].here + 0.1 * state["u"][0, -1]}


def start(size: tuple[int, ...]) -> dict[str, Tensor]:
    noise = torch.rand(size, generator=torch.Generator().manual_seed(0))
    return {"u": noise * 2e-34}


def faded(size: tuple[int, ...], **options) -> Tensor:
    sim = Simulation(Fading(), size=size, state=start(size), **options)
    for steps in (1, 7, 5):
        sim.run(steps, progress=False)
    return sim.state["u"]


def denormals(x: Tensor) -> int:
    return int(((x != 0) & (x.abs() < TINY)).sum())


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("form", ["roll", "padded", "strips"])
def test_no_form_leaves_any_on_a_large_grid(form: str, compiled: bool):
    seen = faded(LARGE, form=form, compiled=compiled)
    assert denormals(seen) == 0
    assert torch.equal(seen, faded(LARGE, form="roll", compiled=False))
    assert 0 < (seen == 0).sum() < seen.numel()


def test_small_grids_keep_them():
    assert denormals(faded(SMALL, compiled=False)) > 0


def test_a_part_of_a_large_grid_is_treated_like_the_whole():
    whole = faded(LARGE, compiled=False)

    def part(communicator: Communicator) -> Tensor:
        return faded(
            LARGE, compiled=False, mesh="2x4", depth=2, overlap=True, communicator=communicator
        )

    for seen in run_ranks(8, part):
        assert torch.equal(seen, whole)


def test_a_batch_of_small_grids_is_treated_like_one():
    many = Simulation(
        Fading(), size=SMALL, batch=40, compiled=False,
        state={"u": start(SMALL)["u"].expand(40, *SMALL)},
    )  # fmt: skip
    for steps in (1, 7, 5):
        many.run(steps, progress=False)
    assert torch.equal(many.state["u"][7], faded(SMALL, compiled=False))
