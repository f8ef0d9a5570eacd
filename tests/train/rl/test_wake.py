"""The two environments on the grid engine."""

import pytest
import torch

from hotgrid.grid import Simulation, life
from hotgrid.train import rl
from hotgrid.train.rl._environments import _life, _wake


def test_a_generation_is_that_of_the_grid_engine():
    boards = (torch.rand(5, 8, 8, generator=torch.Generator().manual_seed(0)) < 0.4).float()
    found = boards
    for _ in range(3):
        found = _life._generation(found)
    for at, board in enumerate(boards):
        sim = Simulation(life.Life(), size=(8, 8), compiled=False)
        name = next(iter(sim.state))
        dtype = sim.state[name].dtype
        sim.state = {name: board.to(dtype).reshape(sim.state[name].shape)}
        sim.run(3)
        assert torch.equal(found[at], sim.state[name].reshape(8, 8).float())


@pytest.mark.parametrize(
    ("cells", "over"),
    [
        ([], True),
        ([(2, 2), (2, 3), (3, 2), (3, 3)], True),  # a block stands still
        ([(1, 2), (2, 3), (3, 1), (3, 2), (3, 3)], False),  # a glider moves
    ],
)
def test_an_episode_ends_when_nothing_changes(cells, over):
    env = rl.LifeKeeper()
    state = torch.zeros(1, 2, 8, 8)
    for y, x in cells:
        state[0, 0, y, x] = 1
    found = env.step(state, torch.tensor([64]))
    assert found.terminated.item() is over
    assert found.reward.item() == 1


def test_a_blinker_ends_an_episode_and_a_flip_costs():
    env = rl.LifeKeeper(cost=0.25)
    state = torch.zeros(1, 2, 8, 8)
    state[0, 0, 3, 2:5] = 1
    first = env.step(state, torch.tensor([64]))
    second = env.step(first.state, torch.tensor([64]))
    assert (first.terminated.item(), second.terminated.item()) == (False, True)
    touched = env.step(first.state, torch.tensor([0]))
    assert touched.reward.item() == 0.75


def test_a_spin_pushes_the_fluid_round_and_lifts_the_cylinder():
    """Fluid at rest follows the surface; in a stream the lift changes sign with the spin."""
    surface = _wake._surface("cpu")
    # Every direction is swept as its opposite is, the other way: no net push.
    assert surface.push.sum().item() == pytest.approx(0, abs=1e-5)
    env = rl.Wake(development=300)
    start = env.initial(torch.zeros(1, 1))
    lifts = {}
    for spin in (-0.2, 0.0, 0.2):
        _, force = env.flow(start, torch.full((1,), spin), 150)
        lifts[spin] = force[0].tolist()
    # Counter-clockwise with y up and a stream along x: slower above, so it is pushed down.
    assert lifts[0.2][0] < lifts[0.0][0] < lifts[-0.2][0]
    assert all(drag > 0 for _, drag in lifts.values())


@pytest.mark.long
def test_a_cylinder_at_rest_sheds_vortices():
    env = rl.Wake()
    states, rest = _wake._developed(env)
    assert states.shape == (8, *env.shape)
    lifts = []
    state = states[:1]
    for _ in range(30):
        state, force = env.flow(state, torch.zeros(1), 20)
        lifts.append(force[0, 0].item())
    # The lift goes to both sides, and the drag is that of the reward's zero.
    assert min(lifts) < -0.05 * rest < 0.05 * rest < max(lifts)
    found = env.step(states[:1], torch.zeros(1, 1))
    assert abs(found.reward.item()) < 0.2
