"""Digits that classify themselves: what they agree on, and what they cannot know."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from hotgrid.cluster import run_ranks
from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.model import coded_colours
from hotgrid.grid.neural import CellNetwork, DigitsCA
from hotgrid.grid.neural._drawn_digits import BOX, drawn_digit


def simulation(ink: Tensor, **options) -> Simulation:
    model = DigitsCA()
    cells = torch.zeros(model.network.channels, *ink.shape)
    cells[0] = ink
    plain = {"state": {"cells": cells}, "compiled": False, "device": "cpu"}
    return Simulation(model, size=tuple(ink.shape), **{**plain, **options})


def side_by_side(order=range(10)) -> Tensor:
    return torch.cat([drawn_digit(i) for i in order], 1)


def elected(sim: Simulation) -> tuple[list[int], list[float]]:
    """What most cells of each digit vote for, and the share of those that do."""
    found, agreed = [], []
    for votes in sim.view("vote").split(BOX, 1):
        counts = torch.bincount(votes[votes >= 0], minlength=10)
        found.append(int(counts.argmax()))
        agreed.append(float(counts.max() / counts.sum()))
    return found, agreed


def test_drawn_digits_are_recognised_by_almost_all_of_their_cells():
    sim = simulation(side_by_side())
    assert sim.observe()["decided"] == 0
    sim.run(60)
    found, agreed = elected(sim)
    assert sum(a == b for a, b in enumerate(found)) >= 8
    assert sum(agreed) / 10 >= 0.9
    assert sim.observe()["decided"] > 0.6 * sim.observe()["ink"]


def test_a_digit_that_is_changed_into_another_changes_its_mind():
    sim = simulation(side_by_side())
    sim.run(60)
    before = elected(sim)[0]
    order = [3, 7, 8, 5, 9, 6, 0, 2, 1, 4]
    ink = side_by_side(order) > 0
    sim.paint("ink", ~ink, 0.0)
    sim.paint("ink", ink, 1.0)
    sim.run(80)
    found, agreed = elected(sim)
    assert sum(a == b for a, b in zip(found, order, strict=True)) >= 7
    assert sum(a == b for a, b in zip(found, before, strict=True)) <= 2
    assert sum(agreed) / 10 >= 0.85


def test_ink_stays_and_cells_without_it_stay_empty():
    sim = simulation(side_by_side())
    sim.run(30)
    cells, ink = sim.state["cells"], side_by_side()
    assert torch.equal(cells[0], ink)
    assert (cells[:, ink == 0] == 0).all()
    assert (cells[1:, ink > 0] != 0).any(0).all()
    assert sim.observe()["ink"] == ink.sum()


def test_a_digit_knows_neither_its_place_nor_its_neighbours():
    alone = simulation(drawn_digit(5))
    crowded = torch.zeros(47, 61)
    crowded[9 : 9 + BOX, 20 : 20 + BOX] = drawn_digit(5)
    crowded[9 : 9 + BOX, 40 : 40 + BOX] = drawn_digit(3)
    crowded[28:46, 20:38] = drawn_digit(8)[1:-1, 1:-1]
    among = simulation(crowded)
    for sim in (alone, among):
        sim.run(40)
    found = among.state["cells"][:, 9 : 9 + BOX, 20 : 20 + BOX]
    assert torch.equal(found, alone.state["cells"])


def test_news_travel_one_cell_in_a_step_and_along_ink_alone():
    line = torch.zeros(20, 40)
    line[3, 2:38] = 1.0
    line[3, 20] = 0.0
    longer = line.clone()
    longer[3, 1] = 1.0
    sims = [simulation(ink) for ink in (line, longer)]
    for steps in (5, 40):
        for sim in sims:
            sim.run(steps - sim.step_count)
        changed = (sims[0].state["cells"] != sims[1].state["cells"]).any(0).nonzero()[:, 1]
        assert changed.min() == 1
        assert changed.max() <= min(1 + steps, 19)
    assert changed.max() > 6


def test_it_begins_with_every_digit_and_places_for_more():
    sim = Simulation(DigitsCA(), compiled=False, device="cpu", seed=3)
    rows = [row.split(BOX, 1) for row in sim.state["cells"][0].split(BOX)]
    boxes = torch.stack([box for row in rows for box in row])
    assert boxes.shape[0] == 24
    assert (boxes.amax((1, 2)) == 0).sum() == 4
    assert not boxes[:, [0, -1]].any()
    assert not boxes[:, :, [0, -1]].any()
    drawn = torch.stack([drawn_digit(i) for i in range(10)])
    # Each is most like itself without its slant; some are like a neighbour.
    alike = torch.einsum("nyx,dyx->nd", boxes, drawn).argmax(1)
    assert len(set(alike.tolist())) >= 7


def test_a_grid_of_any_size_holds_whole_digits():
    sim = Simulation(DigitsCA(), size=(2 * BOX + 7, 3 * BOX + 4), compiled=False, device="cpu")
    ink = sim.state["cells"][0]
    assert not ink[:4].any()
    assert not ink[-4:].any()
    assert not ink[:, :3].any()
    with pytest.raises(ArgumentError, match=r"20 x 20 cells .* into \(19, 40\)"):
        Simulation(DigitsCA(), size=(19, 40))


def test_colours_are_those_of_votes_over_white():
    sim = simulation(drawn_digit(7))
    ink = drawn_digit(7) > 0
    first = coded_colours()[sim.view("colour").long()]
    assert (first[~ink] == 1).all()
    assert (first[ink] - 0.2).abs().max() < 0.101
    cells = torch.zeros_like(sim.state["cells"])
    cells[0] = 1.0
    for digit in range(10):
        cells[digit - 10, :, digit] = 1.0
    sim.state = {"cells": cells}
    assert len(sim.view("colour")[0].unique()) == 11
    assert sim.view("vote")[0, :10].tolist() == list(range(10))
    assert sim.view("certainty")[0, :11].tolist() == [1.0] * 10 + [0.0]


def test_the_brush_draws_and_erases_on_a_mesh_too():
    stroke = torch.zeros(BOX, 2 * BOX, dtype=torch.bool)
    stroke[8:12, 4:-4] = True

    def painted(communicator=None):
        cut = {} if communicator is None else {"mesh": "1x2", "communicator": communicator}
        sim = simulation(side_by_side((4, 6)), **cut)
        sim.run(20)
        before = sim.state["cells"]
        sim.paint("ink", stroke, 1.0)
        drawn = sim.state["cells"]
        sim.run(5)
        sim.paint("ink", stroke, 0.0)
        return before, drawn, sim.state["cells"]

    before, drawn, erased = whole = painted()
    new = stroke & (before[0] == 0)
    assert torch.equal(drawn[:, ~new], before[:, ~new])
    assert (drawn[0, new] == 1).all()
    assert (drawn[1:, new] == 0).all()
    assert (erased[:, stroke] == 0).all()
    for found in run_ranks(2, painted):
        assert all(torch.equal(a, b) for a, b in zip(found, whole, strict=True))


def changing_ink(path: Path) -> None:
    CellNetwork.random(20, 8, scale=1.0).save(path)


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda path: None, "is not a cell network file: .*No such file"),
        (lambda path: CellNetwork.random(10, 4).save(path), "a network of 10 channels"),
        (changing_ink, "changes the first channel, ink"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(tmp_path: Path, write, said):
    path = tmp_path / "mine.safetensors"
    write(path)
    with pytest.raises(ArgumentError, match=said) as refused:
        DigitsCA(str(path))
    assert str(path) in str(refused.value)


def test_a_network_of_ones_own_is_read_from_a_file(tmp_path: Path):
    path = tmp_path / "mine.safetensors"
    CellNetwork.random(14, 6).save(path)
    assert DigitsCA(str(path)).network.channels == 14
    assert DigitsCA(str(path)).choices() != DigitsCA().choices()
