"""Lenia: the neighbourhood, its own form, and the glider."""

import math

import pytest
import torch

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.neural import Lenia


def test_weights_are_those_of_the_ring_and_add_up_to_one():
    model = Lenia()
    weights = {offset: weight for weight, offsets in model.rings for offset in offsets}
    assert math.fsum(weights.values()) == pytest.approx(1)
    assert max(map(math.hypot, *zip(*weights, strict=True))) < model.radius
    # Twice as far from the ring of half the radius on either side is the same weight.
    assert weights[0, 4] == pytest.approx(weights[0, 9])
    assert weights[0, 6] / weights[0, 3] == pytest.approx(
        math.exp(1 / (3 / 13 * 10 / 13) - 1 / (6 / 13 * 7 / 13))
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sums_of_rings_have_the_bits_of_whole_arrays(dtype):
    found = []
    for form in ("ring_sums", "roll"):
        sim = Simulation(Lenia(), size=(40, 48), dtype=dtype, form=form, compiled=False)
        sim.run(3, progress=False)
        found.append(sim.state["cells"])
    assert torch.equal(*found)


def test_it_is_run_by_its_own_form_without_compiling():
    sim = Simulation(Lenia(), size=(40, 48))
    assert (sim.form, sim.compiled) == ("ring_sums", False)


def test_a_creature_turned_by_a_quarter_flies_sideways():
    ways = []
    for turned in (False, True):
        sim = Simulation(Lenia(), size=(48, 48), compiled=False)
        cells = sim.state["cells"]
        sim.state = {"cells": cells.rot90() if turned else cells}
        sim.run(20, progress=False)
        ways.append(sim.state["cells"])
    assert torch.allclose(ways[0].rot90(), ways[1], atol=1e-4)


def test_orbia_are_scaled_with_the_radius():
    masses = {r: Simulation(Lenia(r), size=(60, 60), compiled=False).observe() for r in (13, 6)}
    share = masses[6]["mass"] / 4 / masses[13]["mass"]
    assert share == pytest.approx((6 / 13) ** 2, rel=0.15)


def test_a_random_start_is_a_cloud_that_the_seed_decides():
    first, second, other = (
        Simulation(Lenia(4, start="random"), size=(24, 32), seed=s, compiled=False).state[
            "cells"
        ]
        for s in (1, 1, 2)
    )
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    assert 0 <= first.min() < first.max() <= 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"radius": 1}, "`radius` must be at least 2"),
        ({"start": "soup"}, "`start` must be `orbium` or `random`, got 'soup'"),
        ({"width": 0}, "`width` must be above 0"),
    ],
)
def test_what_is_wrong_is_said(options, said):
    with pytest.raises(ArgumentError, match=said):
        Lenia(**options)


def test_a_grid_must_hold_an_orbium():
    with pytest.raises(ArgumentError, match="does not fit into"):
        Simulation(Lenia(), size=(8, 8), compiled=False)
