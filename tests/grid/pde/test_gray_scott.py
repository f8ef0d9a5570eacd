"""Gray-Scott: steady states, a numpy twin, growth, and the balance of mass."""

import math

import numpy as np
import pytest
import torch

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.pde import GrayScott

SIZES = {1: (48,), 2: (24, 32), 3: (10, 12, 8)}


def simulation(model: GrayScott, size: tuple[int, ...], **options: object) -> Simulation:
    return Simulation(
        model,
        size=size,
        dtype=torch.float64,
        compiled=False,
        device="cpu",
        **options,  # pyright: ignore[reportArgumentType]
    )


def steady(feed: float, kill: float) -> tuple[float, float]:
    """The homogeneous state in which food is eaten as fast as it is fed."""
    u = 0.5 * (1 - math.sqrt(1 - 4 * (feed + kill) ** 2 / feed))
    return u, feed * (1 - u) / (feed + kill)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_food_alone_stays_as_it_is(rank: int):
    size = SIZES[rank]
    sim = simulation(GrayScott(), size, state={"u": torch.ones(size), "v": torch.zeros(size)})
    sim.run(20)
    assert sim.state["u"].eq(1).all()
    assert sim.state["v"].eq(0).all()


def test_a_homogeneous_steady_state_stays_as_it_is():
    feed, kill = 0.04, 0.05
    u, v = steady(feed, kill)
    assert v > 0.1
    size = SIZES[2]
    state = {
        "u": torch.full(size, u, dtype=torch.float64),
        "v": torch.full(size, v, dtype=torch.float64),
    }
    sim = simulation(GrayScott(feed=feed, kill=kill), size, state=state)
    sim.run(50)
    for name, start in state.items():
        torch.testing.assert_close(sim.state[name], start, rtol=0, atol=1e-14)


def twin(u: np.ndarray, v: np.ndarray, model: GrayScott, steps: int):
    """The equations once more, with numpy, each term on its own."""
    p = model.parameters

    def spread(x: np.ndarray) -> np.ndarray:
        second = [np.roll(x, 1, axis) - 2 * x + np.roll(x, -1, axis) for axis in range(x.ndim)]
        return np.sum(second, axis=0)

    for _ in range(steps):
        du = p["diffusion_u"] * spread(u) - u * v**2 + p["feed"] * (1 - u)
        dv = p["diffusion_v"] * spread(v) + u * v**2 - (p["feed"] + p["kill"]) * v
        u, v = u + du, v + dv
    return u, v


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_fifty_steps_are_those_of_a_numpy_twin(rank: int):
    model = GrayScott(feed=0.037, kill=0.06, diffusion_u=0.15, diffusion_v=0.07)
    sim = simulation(model, SIZES[rank], seed=3)
    start = sim.state
    sim.run(50)
    u, v = twin(start["u"].numpy(), start["v"].numpy(), model, 50)
    np.testing.assert_allclose(sim.state["u"], u, rtol=0, atol=1e-13)
    np.testing.assert_allclose(sim.state["v"], v, rtol=0, atol=1e-13)


def test_a_pattern_grows_from_its_seeds():
    sim = simulation(GrayScott(), (48, 48))
    covered = [sim.observe()["covered"]]
    assert covered[0] < 0.3
    for _ in range(3):
        sim.run(300)
        covered.append(sim.observe()["covered"])
    assert covered == sorted(covered)
    assert covered[-1] > 1.5 * covered[0]


def test_without_seeds_nothing_grows():
    size = (16, 16)
    sim = simulation(GrayScott(), size, state={"v": torch.full(size, 1e-3)})
    sim.run(300)
    assert sim.observe()["eater"] < 1e-6


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_mass_changes_by_what_is_fed_and_what_is_removed(rank: int):
    """Spreading and eating only move mass from one place or substance to another."""
    model = GrayScott()
    feed, kill = model.parameters["feed"], model.parameters["kill"]
    sim = simulation(model, SIZES[rank])
    cells = math.prod(SIZES[rank])
    for _ in range(10):
        before = sim.observe()
        sim.step()
        after = sim.observe()
        fed = feed * (cells - before["food"])
        removed = (feed + kill) * before["eater"]
        gained = after["food"] + after["eater"] - before["food"] - before["eater"]
        assert gained == pytest.approx(fed - removed, abs=1e-10)


def test_seeds_are_few_and_depend_on_the_seed():
    first, again, other = (simulation(GrayScott(), (64, 64), seed=s) for s in (1, 1, 2))
    assert torch.equal(first.view("v"), again.view("v"))
    assert not torch.equal(first.view("v"), other.view("v"))
    assert 0 < first.observe()["covered"] < 0.05


@pytest.mark.parametrize(("name", "limit"), [("diffusion_u", 0.1621), ("diffusion_v", 0.157)])
def test_a_diffusion_that_is_unstable_in_so_many_dims_is_refused(name: str, limit: float):
    text = f"`{name}` must be at most {limit} for steps to be stable in 3 dims, got 0.165"
    with pytest.raises(ArgumentError, match=text):
        simulation(GrayScott(**{name: 0.165}), SIZES[3])


def test_noise_in_food_does_not_grow_at_the_limit():
    noise = 1e-3 * torch.randn(SIZES[2], generator=torch.Generator().manual_seed(0))
    state = {"u": 1 + noise, "v": torch.zeros(SIZES[2])}
    with pytest.raises(ArgumentError, match=r"`diffusion_u` must be at most 0.225"):
        simulation(GrayScott(diffusion_u=0.25, feed=0.2), SIZES[2])
    sim = simulation(GrayScott(diffusion_u=0.2249, feed=0.2), SIZES[2], state=state)
    sim.run(300)
    assert (sim.state["u"] - 1).abs().max().item() < 1e-3
