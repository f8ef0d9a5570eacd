"""The training of neural automata: its steps of living cells are those of the engine."""

import importlib

import torch

from hotgrid.grid import rollout
from hotgrid.grid.model import random_numbers
from hotgrid.grid.neural import CellNetwork, NeuralCells


class Blob(NeuralCells):
    """Cells with an alpha around the middle."""

    def initial(self, size, generator):
        cells = torch.rand(self.network.channels, *size, generator=generator)
        cells[:, :3] = cells[:, :, -2:] = 0
        return self.begun(cells, generator)


def test_steps_of_living_cells_have_the_states_and_gradients_of_a_rollout(scripts):
    steps_of_living = importlib.import_module("cell_training").steps_of_living
    draw = torch.Generator().manual_seed(0)
    for around, fire in ((True, 0.5), (False, 1.0)):
        network = CellNetwork.random(6, 8, scale=0.3)
        weights = [x.requires_grad_() for x in network.tensors().values()]
        model = Blob(network, fire=fire, alive=3, alive_around=around, boundary=0.0)
        begun = model.initial((9, 11), draw)
        state = {name: torch.stack([x, x]) for name, x in begun.items()}
        if fire < 1:
            state["random"] = random_numbers((2, 9, 11), draw)
        expected = rollout(model, state, 6, batch=2)
        *_, found = steps_of_living(model, state, 6)
        for name, x in expected.items():
            torch.testing.assert_close(found[name], x)
        slopes = [
            torch.autograd.grad(each["cells"].square().sum(), weights)
            for each in (expected, found)
        ]
        for a, b in zip(*slopes, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_descent_comes_down_and_stops(scripts):
    training = importlib.import_module("cell_training")
    network = CellNetwork.random(4, 8, scale=0.5)
    descent, losses = training.Descent(network, 0.05, iterations=60, minutes=5), []
    while descent.share < 1:
        loss = network.output.square().sum() + network.hidden.square().sum()
        losses.append(loss.item())
        descent.down(loss)
    assert len(losses) == 60
    assert losses[-1] < losses[0] / 4


def test_a_target_is_drawn_and_damage_leaves_a_part(scripts):
    script = importlib.import_module("train_growing_ca")
    picture = script.flower(24)
    assert picture.shape == (4, 24, 24)
    assert 0.3 < picture[3].mean() < 0.6
    assert (picture[:3] <= picture[3] + 1e-6).all()
    assert picture[3, 12, 12] == 1
    draw = torch.Generator().manual_seed(0)
    left = torch.stack([script.undamaged((30, 30), draw) for _ in range(40)]).mean((1, 2))
    assert 0.2 < left.min() < left.max() < 1
