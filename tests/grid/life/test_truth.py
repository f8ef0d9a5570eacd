"""Known facts about Life."""

import pytest
import torch

from hotgrid.grid import Simulation
from hotgrid.grid.life import Life, pattern

from .life_twin import after, random_cells


@pytest.mark.parametrize("name", ["block", "beehive"])
def test_still_lifes_stay(name):
    start = pattern(name).placed((16, 32))
    assert torch.equal(after(Life(), start), start)


@pytest.mark.parametrize(
    ("name", "period"),
    [("blinker", 2), ("toad", 2), ("beacon", 2), ("pulsar", 3), ("pentadecathlon", 15)],
)
def test_oscillators_come_back_after_their_period_and_not_before(name, period):
    start = pattern(name).placed((32, 32))
    sim = Simulation(Life(), (32, 32), state={"cells": start}, compiled=False)
    same = []
    for _ in range(period):
        sim.step()
        same.append(torch.equal(sim.state["cells"], start))
    assert same == [False] * (period - 1) + [True]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("name", "move"),
    [("glider", (1, 1)), ("lwss", (0, -2)), ("mwss", (0, -2)), ("hwss", (0, -2))],
)
def test_spaceships_move_and_come_round_the_torus(name, move, packed):
    start = pattern(name).placed((32, 32))
    for times in (1, 5, 16, 32):
        there = torch.roll(start, [times * m for m in move], (0, 1))
        assert torch.equal(after(Life(packed=packed), start, 4 * times), there)


def test_a_glider_does_not_come_round_on_a_plane():
    start = pattern("glider").placed((32, 32))
    block = pattern("block").placed((32, 32), at=(30, 30))
    assert torch.equal(after(Life(topology="plane"), start, 200), block)


def test_the_gun_sends_a_glider_every_30_steps():
    gun = pattern("gosper gun")
    rows, columns = gun.cells.shape
    seen = [gun.placed((96, 128), at=(0, 0))]
    for _ in range(6):
        seen.append(after(Life(topology="plane"), seen[-1], 30))
    assert [cells.sum().item() for cells in seen] == [36 + 5 * n for n in range(7)]
    assert all(torch.equal(cells[:rows, :columns], gun.cells) for cells in seen)
    # A glider goes 7.5 cells in 30 steps: what was below the gun is 15 cells further in 60.
    for before, later in zip(seen, seen[2:], strict=False):
        assert torch.equal(later[rows + 15 :, 15:], before[rows:-15, :-15])


def test_the_r_pentomino_settles_after_1103_steps_into_116_cells():
    # Its gliders reach 264 cells out by then.
    sim = Simulation(Life(pattern="r pentomino"), (576, 576), compiled=False)
    sim.run(1101, progress=False)
    populations = []
    for _ in range(6):
        populations.append(sim.observe()["population"])
        sim.step()
    assert populations == [118, 118, 116, 116, 116, 116]


def test_diehard_dies_at_130():
    start = pattern("diehard").placed((64, 64))
    assert after(Life(), start, 129).sum() == 2
    assert after(Life(), start, 130).sum() == 0


@pytest.mark.slow
@pytest.mark.compiles
@pytest.mark.usefixtures("insisting")
# Inductor itself still imports what torch has deprecated.
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_the_acorn_settles_after_5206_steps_into_633_cells():
    # By then its gliders are 2499 rows and 2327 columns apart.
    sim = Simulation(Life(pattern="acorn"), (2528, 2368), compiled=True)
    sim.run(5205, progress=False)
    populations = []
    for _ in range(4):
        populations.append(sim.observe()["population"])
        sim.step()
    assert populations == [635, 633, 633, 633]


def test_highlife_makes_two_of_a_replicator_in_12_steps():
    start = pattern("replicator").placed((64, 64))
    copies = [torch.roll(start, (d, d), (0, 1)) for d in (-2, 2)]
    for model in (Life("B36/S23"), Life("highlife", packed=False)):
        assert torch.equal(after(model, start, 12), copies[0] | copies[1])


@pytest.mark.parametrize("size", [(20, 23), (37, 32), (16, 64)])
@pytest.mark.parametrize("neighbourhood", ["moore", "von_neumann"])
def test_fredkin_copies_by_the_law_of_xor(size, neighbourhood):
    """Odd counts alone are sums modulo two, so 2^k steps look 2^k cells far, and only there."""
    model = Life(
        "B13/S13" if neighbourhood != "moore" else "B1357/S1357", neighbourhood=neighbourhood
    )
    start = random_cells(11, *size)
    for k in (0, 1, 2, 3, 5):
        far = torch.zeros_like(start)
        for offset in model.rule.offsets():
            far ^= torch.roll(start, [2**k * o for o in offset], (0, 1))
        assert torch.equal(after(model, start, 2**k), far)
