"""FitzHugh-Nagumo: a numpy twin, rest, the threshold, and spirals that live on."""

import numpy as np
import pytest
import torch

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.pde import FitzhughNagumo

SIZES = {1: (48,), 2: (24, 32), 3: (10, 12, 8)}


def simulation(model: FitzhughNagumo, size: tuple[int, ...], **options: object) -> Simulation:
    return Simulation(
        model,
        size=size,
        dtype=torch.float64,
        compiled=False,
        device="cpu",
        **options,  # pyright: ignore[reportArgumentType]
    )


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_fifty_steps_are_those_of_a_numpy_twin(rank: int):
    model = FitzhughNagumo(diffusion=0.3, threshold=0.1, pace=0.02, decay=0.7, dt=0.25)
    sim = simulation(model, SIZES[rank])
    u, v = (sim.state[name].numpy() for name in ("u", "v"))
    sim.run(50)
    for _ in range(50):
        spread = sum(
            np.roll(u, 1, axis) - 2 * u + np.roll(u, -1, axis) for axis in range(u.ndim)
        )
        du = 0.3 * spread + u * (1 - u) * (u - 0.1) - v
        dv = 0.02 * (u - 0.7 * v)
        u, v = u + 0.25 * du, v + 0.25 * dv
    np.testing.assert_allclose(sim.state["u"], u, rtol=0, atol=1e-13)
    np.testing.assert_allclose(sim.state["v"], v, rtol=0, atol=1e-13)


@pytest.mark.parametrize(("push", "fires"), [(0.04, False), (0.2, True)])
def test_a_push_above_the_threshold_fires(push: float, fires: bool):
    size = (8, 8)
    state = {"u": torch.full(size, push), "v": torch.zeros(size)}
    sim = simulation(FitzhughNagumo(), size, state=state)
    highest = 0.0
    for _ in range(20):
        sim.run(10)
        highest = max(highest, sim.state["u"].max().item())
    assert (highest > 0.5) is fires


def test_a_broken_front_lives_on_as_spirals():
    sim = Simulation(FitzhughNagumo(), size=(96, 96), compiled=False, device="cpu")
    sim.run(1200)
    assert 300 < sim.observe()["excited"] < 6000


def test_a_diffusion_that_is_unstable_with_this_step_is_refused():
    text = "`diffusion` must be at most 0.4764 for steps to be stable in 3 dims, got 0.5"
    with pytest.raises(ArgumentError, match=text):
        simulation(FitzhughNagumo(diffusion=0.5), SIZES[3])


def test_a_step_that_overshoots_in_recovery_is_refused():
    with pytest.raises(ArgumentError, match=r"`dt` must be at most 0.1 for steps"):
        simulation(FitzhughNagumo(pace=1, decay=10, dt=0.11), SIZES[1])


@pytest.mark.parametrize(
    "parameters",
    [{}, {"dt": 1, "diffusion": 0.13}, {"pace": 1, "decay": 3.3}],
    ids=["defaults", "diffusion at its limit", "recovery at its limit"],
)
def test_noise_does_not_grow_where_cells_fire(parameters: dict[str, float]):
    size = (16, 16) if parameters else (8, 8, 8)
    noise = 1e-6 * torch.randn(size, generator=torch.Generator().manual_seed(0))
    state = {"u": 0.95 + noise, "v": torch.zeros(size)}
    sim = simulation(FitzhughNagumo(**parameters), size, state=state)
    sim.run(60)
    assert float(sim.state["u"].std()) < 1e-5
