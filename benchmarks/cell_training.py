"""What trainings of neural automata share: steps of living cells, and normalised gradients."""

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from hotgrid.grid import CellVectors, rollout
from hotgrid.grid.model import State, next_random
from hotgrid.grid.neural import CellNetwork, NeuralCells
from hotgrid.grid.neural._cell_network import perceived
from hotgrid.grid.neural._neural_cells import fires

# Until which share of the training, and by how much less than the rate.
_FALLING = ((0.5, 1.0), (0.8, 0.3), (1.0, 0.1))
_BETWEEN_FILES = 100
_AROUND = tuple(product((-1, 0, 1), repeat=2))


class Descent:
    """Adam over the weights of a network, with the gradient of each tensor scaled to 1.

    A rollout of many steps has gradients of very different sizes, which this evens out.

    Arguments:
        network: What is trained; its tensors change in place.
        rate: The learning rate at first; it falls twice.
        iterations: After how many it is done.
        minutes: After which time it is done.
    """

    def __init__(
        self, network: CellNetwork, rate: float, iterations: int, minutes: float
    ) -> None:
        self._tensors = [x.requires_grad_() for x in network.tensors().values()]
        self._optimizer = torch.optim.Adam(self._tensors, lr=rate, betas=(0.9, 0.95))
        self._rate, self._iterations, self._seconds = rate, iterations, 60 * minutes
        self._began = time.monotonic()
        self.count = 0

    @property
    def seconds(self) -> float:
        """How long it has taken."""
        return time.monotonic() - self._began

    @property
    def share(self) -> float:
        """How much of the training is done."""
        return max(self.count / self._iterations, self.seconds / self._seconds)

    @property
    def keeps(self) -> bool:
        """Whether it is time to write a file."""
        return self.count % _BETWEEN_FILES == 0

    def down(self, loss: Tensor) -> None:
        """One step; none where the loss is not finite."""
        self.count += 1
        scale = next(scale for until, scale in _FALLING if min(self.share, 1.0) <= until)
        self._optimizer.param_groups[0]["lr"] = self._rate * scale
        self._optimizer.zero_grad()
        loss.backward()
        if not all(bool(x.grad.isfinite().all()) for x in self._tensors if x.grad is not None):
            return
        for x in self._tensors:
            if x.grad is not None:
                x.grad /= x.grad.norm() + 1e-8
        self._optimizer.step()


def steps_of_living(
    model: NeuralCells, state: Mapping[str, Tensor], steps: int
) -> Iterator[State]:
    """The states after each step, batch first, with gradients.

    They are those of `rollout` for zeros beyond the ends. But only cells are computed that are
    alive, since a step clears the others: of most pictures less than half. And a step has few
    operations, whose launch would take most of the time on small grids.
    """
    cells, random = state["cells"], state.get("random")
    runs, channels, rows, columns = cells.shape
    width = columns + 2
    inside = functional.pad(cells.new_ones(rows, columns), (1, 1, 1, 1))
    flat = functional.pad(cells, (1, 1, 1, 1)).movedim(1, -1).reshape(-1, channels)
    bank = filter_bank(model.network.filters).to(flat)
    around = torch.tensor([y * width + x for y, x in _AROUND], device=flat.device)[:, None]
    net = model.network
    for _ in range(steps):
        mature = flat.detach()[:, model.alive] > model.threshold
        alive = mature.view(runs, 1, rows + 2, width).float()
        if model.alive_around:
            alive = functional.max_pool2d(alive, 3, 1, 1)
        places = (alive * inside).view(-1).nonzero()[:, 0]
        seen = flat.index_select(0, (around + places).view(-1)).view(len(_AROUND), -1)
        found = (bank @ seen).view(len(bank), -1, channels).movedim(0, 1).flatten(1)
        # Not `linear`, which takes several times as long for so few cells on a CPU.
        hidden = (found @ net.hidden.T + net.hidden_bias).relu()
        change = hidden @ net.output.T + net.output_bias
        if random is not None:
            random = next_random(random)
            numbers = functional.pad(random, (1, 1, 1, 1)).view(-1)
            change = change * fires(numbers[places], model.fire)[:, None]
        flat = torch.zeros_like(flat).index_copy(0, places, flat[places] + change)
        wide = flat.view(runs, rows + 2, width, channels).movedim(-1, 1)
        now = {"cells": wide[..., 1:-1, 1:-1]}
        yield now if random is None else {**now, "random": random}


def filter_bank(filters: Sequence[str]) -> Tensor:
    """What each filter makes of the nine cells around, `[filters, 9]`."""
    single = torch.eye(len(_AROUND))
    handle = CellVectors(lambda at: single[_AROUND.index((at[0], at[1]))][:, None], 2, 1)
    return perceived(handle, filters).T


def compare(model: NeuralCells, state: Mapping[str, Tensor]) -> None:
    """Hold `steps_of_living` against `rollout`, for three steps."""
    with torch.no_grad():
        *_, found = steps_of_living(model, state, 3)
        expected = rollout(model, state, 3, batch=len(state["cells"]))
    for name, x in expected.items():
        torch.testing.assert_close(found[name], x)


def begun(out: Path, network: CellNetwork, **more: Tensor) -> None:
    """Write a network to begin with, unless there is a file to go on from."""
    if out.exists():
        print(f"going on from {out}")
    else:
        network.save(out, **more)
