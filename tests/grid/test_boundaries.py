"""Boundaries of fields: physics that follows from them, gradients, and sizes they need."""

import pytest
import torch

import hotgrid as hg
from hotgrid.errors import ArgumentError
from hotgrid.grid import pde, rollout


class Bounded(pde.Heat):
    """Heat in a box."""

    def __init__(self, boundary, **parameters: float) -> None:
        super().__init__(**parameters)
        self.fields = (hg.Field("u", boundary=boundary),)


def run(boundary, size=(6, 5), steps=900, form="roll", rate=0.2) -> torch.Tensor:
    made = hg.Simulation(
        Bounded(boundary, rate=rate), size=size, form=form, compiled=False, dtype=torch.float64
    )
    made.run(steps)
    return made.state["u"]


@pytest.mark.parametrize("form", ["roll", "padded"])
def test_no_heat_leaves_through_a_face_without_gradient(form: str) -> None:
    start = run("neumann", steps=0)
    end = run("neumann", form=form)
    torch.testing.assert_close(end, torch.full_like(end, float(start.mean())))


@pytest.mark.parametrize("form", ["roll", "padded"])
def test_between_two_temperatures_there_is_a_line(form: str) -> None:
    # Beyond the ends are cells of 0 and 1, so 6 cells are 1/7, 2/7, ...
    end = run(((0.0, 1.0), "periodic"), form=form)
    line = torch.arange(1, 7, dtype=torch.float64)[:, None] / 7
    torch.testing.assert_close(end.cpu(), line.expand(6, 5))


def test_a_mirror_at_a_cell_is_half_of_an_even_grid() -> None:
    # A periodic grid of 2 (n - 1) cells that is even has the same cells as n with mirrors.
    half = torch.rand(9, dtype=torch.float64)
    whole = torch.cat((half, half[1:-1].flip(0)))
    found = []
    for boundary, u in (("mirror", half), ("periodic", whole)):
        made = hg.Simulation(
            Bounded(boundary), size=u.shape, state={"u": u}, compiled=False, dtype=u.dtype
        )
        made.run(50)
        found.append(made.state["u"])
    torch.testing.assert_close(found[0], found[1][:9], rtol=0, atol=1e-15)


def test_gradients_flow_through_every_face() -> None:
    model = Bounded((("mirror", "neumann"), (0.5, "mirror")))
    start = torch.rand(5, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda u: rollout(model, {"u": u}, steps=3)["u"], (start,), atol=1e-6
    )


def test_sizes_and_forms_that_do_not_suit() -> None:
    with pytest.raises(
        ArgumentError, match=r"boundary mirror: with a radius of 1 .* at least 2"
    ):
        hg.Simulation(Bounded("mirror"), size=(1, 8))
    with pytest.raises(ArgumentError, match="is for 1 axes, but the grid has 2"):
        hg.Simulation(Bounded(("mirror",)), size=(8, 8))
    with pytest.raises(ArgumentError, match="first axis of the field `u` has the boundary"):
        hg.Simulation(Bounded("neumann"), size=(8, 8), form="strips")
