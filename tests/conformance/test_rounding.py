"""Functions that are not rounded exactly: forms agree closely, and meshes bit for bit."""

import pytest
import torch

from hotgrid.cluster import Communicator, Mesh, run_ranks
from hotgrid.grid import Field, Model, Simulation

SIZE = (61, 67)
# Units in the last place by which the results of one step may differ between forms.
UNITS = 64


class Curved(Model):
    """A step of functions whose last bits depend on the code that computes them."""

    fields = (Field("u"), Field("v"))

    def initial(self, size, generator):
        return {name: torch.rand(size, generator=generator) + 0.5 for name in "uv"}

    def step(self, state, inputs, params):
        u, v = state["u"], state["v"]
        a = torch.sin(u[0, 1]) + torch.exp(-v.here) + torch.tanh(u[1, 0])
        b = torch.pow(u.here, 1.7) + torch.sigmoid(v[-1, 0]) + torch.sqrt(v[0, -1])
        return {"u": 0.5 + a / (1 + a.abs()), "v": 0.5 + b / (1 + torch.atan2(b, a).abs() + b)}


def state_after(steps: int, **options) -> torch.Tensor:
    sim = Simulation(Curved(), size=SIZE, device="cpu", **options)
    sim.run(steps, progress=False)
    return torch.stack(list(sim.state.values()))


@pytest.mark.compiles
def test_forms_agree_within_some_units_in_the_last_place():
    exact = state_after(1, form="roll", compiled=False, dtype=torch.float64)
    for form in ("roll", "padded"):
        for compiled in (False, True):
            found = state_after(1, form=form, compiled=compiled)
            worst = (found.double() - exact).abs().max() / torch.finfo(torch.float32).eps
            assert worst < UNITS, (form, compiled)


@pytest.mark.compiles
@pytest.mark.parametrize("mesh", ["2x1", pytest.param("1x3", marks=pytest.mark.long)])
def test_a_mesh_gives_the_bits_of_the_same_compiled_form(mesh: str):
    whole = state_after(20, form="padded", compiled=True)

    def part(communicator: Communicator) -> torch.Tensor:
        return state_after(
            20, form="padded", compiled=True, mesh=mesh, depth=2, communicator=communicator
        )

    for found in run_ranks(Mesh(mesh).ranks, part, timeout=240):
        assert torch.equal(found, whole)
