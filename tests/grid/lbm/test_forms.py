"""Every form computes the same bits, and gradients match finite differences."""

import pytest
import torch

from hotgrid.grid import Simulation, rollout
from hotgrid.grid.lbm import (
    Cavity,
    ExtrapolationOutlet,
    Flow,
    FullWay,
    HalfWay,
    Karman,
    LatticeBoltzmann,
    Poiseuille,
    Regularized,
    SchaeferTurek,
    Smagorinsky,
    TaylorGreen,
    Wall,
    ZouHePressure,
    ZouHeVelocity,
    ball,
)


def pipe() -> Flow:
    """In 3-D: inlet, outlet, walls, a solid that moves and one that stands."""
    return Flow(
        lattice="D3Q19",
        collision=Smagorinsky(),
        boundaries=[
            ExtrapolationOutlet("x+"),
            Wall("y-"),
            Wall("y+", velocity=(0, 0, 0.05)),
            HalfWay(ball((3, 3, 4), 1.5), velocity=(0.01, 0, 0)),
            FullWay(ball((3, 5, 7), 1.1)),
            ZouHeVelocity("x-", velocity=(0.01, 0, 0.05)),
        ],
        force=(0, 0, 1e-5),
        viscosity=0.05,
    )


MODELS = {
    "karman": (lambda: Karman(reynolds=50), (40, 60)),
    "schaefer-turek": (SchaeferTurek, (44, 60)),
    "cavity": (lambda: Cavity(collision=Regularized()), (12, 14)),
    "poiseuille": (Poiseuille, (9, 7)),
    "taylor-green": (lambda: TaylorGreen(lattice="D3Q27"), (5, 6, 7)),
    "pipe": (pipe, (6, 7, 10)),
}


def state_after(model: LatticeBoltzmann, size: tuple[int, ...], form: str, **more):
    sim = Simulation(model, size=size, form=form, **more)
    sim.run(11)
    return sim.state["f"]


@pytest.mark.parametrize("name", MODELS)
def test_padded_and_rolled_arrays_give_the_same_bits(name: str):
    make, size = MODELS[name]
    rolled = state_after(make(), size, "roll", compiled=False)
    padded = state_after(make(), size, "padded", compiled=False)
    assert torch.equal(rolled, padded)
    assert rolled.abs().max() > 1e-4


@pytest.mark.compiles
@pytest.mark.parametrize("form", [pytest.param("roll", marks=pytest.mark.long), "padded"])
def test_compiled_steps_give_the_same_bits(form: str):
    make, size = MODELS["karman"]
    eager = state_after(make(), size, "roll", compiled=False)
    assert torch.equal(state_after(make(), size, form, compiled=True), eager)


def energy(model: LatticeBoltzmann, size: tuple[int, ...], name: str, value: torch.Tensor):
    """The energy after some steps, as a function of one parameter."""
    start = {"f": model.initial(size, torch.Generator().manual_seed(0))["f"]}
    fitted = model.fitted(size)
    later = rollout(fitted, start, steps=8, params={name: value})
    return model.kinetic_energy(later)


@pytest.mark.parametrize(
    ("model", "size", "name"),
    [
        (Cavity(reynolds=50), (8, 8), "velocity"),
        (Poiseuille(reynolds=10), (8, 2), "reynolds"),
        (Karman(reynolds=20, diameter=0.4), (14, 28), "velocity"),
        (TaylorGreen(reynolds=10, collision=Smagorinsky()), (8, 8), "reynolds"),
        (TaylorGreen(reynolds=10, collision=Regularized()), (8, 8), "reynolds"),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, LatticeBoltzmann) else None,
)
def test_gradients_are_those_of_finite_differences(
    model: LatticeBoltzmann, size: tuple[int, ...], name: str
):
    at = torch.tensor(model.parameters[name], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(energy(model, size, name, at), at)
    h = 1e-5 * at.item()
    with torch.no_grad():
        up, down = (energy(model, size, name, at + s * h) for s in (1, -1))
    assert slope.item() == pytest.approx(((up - down) / (2 * h)).item(), rel=1e-6)
    assert slope.item() != 0


def test_gradients_reach_the_state_through_walls_and_openings():
    flow = Flow(
        boundaries=[
            Wall("y-"),
            Wall("y+"),
            HalfWay(ball((4, 5), 1.5)),
            ZouHeVelocity("x-", velocity=(0, 0.05)),
            ZouHePressure("x+"),
        ],
        viscosity=0.1,
    )
    g = torch.Generator().manual_seed(2)
    f = 0.01 * torch.rand(9, 8, 12, generator=g, dtype=torch.float64)

    def drag(f: torch.Tensor) -> torch.Tensor:
        return flow.drag(rollout(flow, {"f": f}, steps=4))

    f.requires_grad_()
    (slope,) = torch.autograd.grad(drag(f), f)
    along = torch.rand(f.shape, generator=g, dtype=torch.float64)
    with torch.no_grad():
        found = (drag(f + 1e-6 * along) - drag(f - 1e-6 * along)) / 2e-6
    assert (slope * along).sum().item() == pytest.approx(found.item(), rel=1e-7)


def test_runs_resume_to_the_same_bits(tmp_path):
    make, size = MODELS["karman"]
    whole = Simulation(make(), size=size, compiled=False)
    whole.run(6)
    whole.save(tmp_path / "street.safetensors")
    whole.run(5)
    again = Simulation(make(), size=size, compiled=False)
    again.load(tmp_path / "street.safetensors")
    again.run(5)
    assert torch.equal(again.state["f"], whole.state["f"])
