"""Train the automaton that comes with hotgrid whose digits classify themselves.

    python benchmarks/train_digits_ca.py --data FOLDER --out FILE [--device cuda]
        [--batch 32] [--steps 20] [--hidden 64] [--iterations 20000] [--minutes 25]

FOLDER has the four IDX files of MNIST, plain or as `.gz`. Digits are reduced to 20 x 20 cells
with ink or without, a little turned, slanted and resized. They are not shifted: cells do not
know where they are. A fifth of the digits is drawn by strokes instead, as in the model. Cells
of ink learn to vote for their digit (Randazzo et al. 2020): squared error in the later half of
a rollout, with noise in every step. Digits come from a pool, so that votes hold; of each batch
a quarter is fresh, and a quarter is changed into another digit, with what its cells remember.

FILE is written every 100 iterations; a FILE that is there is trained on. At the end digits of
the test set are classified. Copy FILE to src/hotgrid/grid/neural/digits_ca.safetensors.
"""

from argparse import Namespace
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from cell_training import Descent, begun, filter_bank
from options import parser
from report import report
from torch import Tensor
from torch.nn import functional

from hotgrid.data import IdxFiles
from hotgrid.grid import rollout
from hotgrid.grid.neural import CellNetwork, SamplePool
from hotgrid.grid.neural._digits_ca import DigitsCA
from hotgrid.grid.neural._drawn_digits import BOX, drawn_digit

FILTERS = ("identity", "sobel_y", "sobel_x", "laplacian")
_DRAWN_SHARE = 0.2
# Uniform, for its draws take a fifth of the time.
_NOISE = 0.035
# Shades above which a pixel is ink; one in between is drawn for each digit.
_INK = (0.2, 0.45)
_AROUND = tuple(product((-1, 0, 1), repeat=2))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--channels", type=int, default=20)
    options.add_argument("--hidden", type=int, default=64)
    options.add_argument("--batch", type=int, default=32)
    options.add_argument("--pool", type=int, default=512)
    options.add_argument("--steps", type=int, default=20, help="of a rollout")
    options.add_argument("--iterations", type=int, default=20_000)
    options.add_argument("--minutes", type=float, default=25.0, help="it ends by then")
    options.add_argument("--rate", type=float, default=2e-3)
    options.add_argument("--tests", type=int, default=2000, help="digits of the test set")
    given = options.parse_args()
    torch.manual_seed(0)
    begun(given.out, CellNetwork.random(given.channels, given.hidden, FILTERS))
    model = DigitsCA(str(given.out))
    model = model.with_network(model.network.to(given.device))
    compare(model)
    descent = train(model.network, Digits(given.data, given.device), given)
    with torch.no_grad():
        row = {"iterations": descent.count, "seconds": round(descent.seconds)}
        row |= score(model.network, *mnist(given.data, "t10k", given.device), given.tests)
    facts = {name: getattr(given, name) for name in ("device", "hidden", "batch", "steps")}
    report("digits-ca", [row], **facts)


def train(network: CellNetwork, digits: "Digits", given: Namespace) -> Descent:
    ink, labels = digits.draw(given.pool)
    start = {"cells": fresh(ink, network.channels), "label": labels}
    pool = SamplePool({name: x[0] for name, x in start.items()}, given.pool)
    pool.put(torch.arange(given.pool), start)
    descent = Descent(network, given.rate, given.iterations, given.minutes)
    part = given.batch // 4
    while descent.share < 1:
        places, state = pool.draw(given.batch)
        cells, labels = state["cells"], state["label"]
        ink, labels[: 2 * part] = digits.draw(2 * part)
        cells[: 2 * part, 0] = ink
        cells[:part, 1:] = 0.0
        living = Living(cells[:, 0])
        wanted = functional.one_hot(labels, 10).to(cells)[living.run]
        seen = [*living.steps(network, living.taken(cells), given.steps, _NOISE)]
        flat = seen[-1]
        errors = [(x[:, -10:] - wanted).square().mean() for x in seen[given.steps // 2 :]]
        beyond = (flat - flat.clamp(-2, 2)).abs().mean()
        descent.down(torch.stack(errors).mean() + 0.1 * beyond)
        pool.put(places, {"cells": living.put(flat), "label": labels})
        if descent.keeps:
            network.save(given.out)
            right = living.right(flat, labels)
            shares = [x.mean().item() for x in right.split([part, part, len(right) - 2 * part])]
            print(
                f"{descent.count} {descent.seconds:.0f} s: error {errors[-1]:.4f}, right of "
                "fresh {:.2f}, changed {:.2f}, kept {:.2f}".format(*shares),
                flush=True,
            )
    network.save(given.out)
    return descent


class Living:
    """The cells with ink of some digits, without the others: they never change.

    Arguments:
        ink: 1 where there is ink and 0 elsewhere, `[runs, rows, columns]`.
    """

    def __init__(self, ink: Tensor) -> None:
        self._ink = ink > 0.5
        self.run = self._ink.nonzero()[:, 0]
        count = len(self.run)
        # Cells that have none are number `count`, a cell of zeros.
        numbers = torch.full(ink.shape, count, device=ink.device)
        numbers[self._ink] = torch.arange(count, device=ink.device)
        wide = functional.pad(numbers, (1, 1, 1, 1), value=count)
        rows, columns = ink.shape[1:]
        around = torch.stack(
            [wide[:, 1 + y :, 1 + x :][:, :rows, :columns][self._ink] for y, x in _AROUND], 1
        )
        # Cell j is at offset o of cell i where i is at offset -o of j.
        back = around.flip(1) * len(_AROUND) + torch.arange(len(_AROUND), device=ink.device)
        back = back.clamp(max=count * len(_AROUND))
        self._around, self._back = around.view(-1), back.view(-1)

    def taken(self, cells: Tensor) -> Tensor:
        """Its cells `[cells, channels]` of whole digits `[runs, channels, rows, columns]`."""
        return cells.movedim(1, -1)[self._ink]

    def put(self, flat: Tensor) -> Tensor:
        """Whole digits of its cells, without gradients."""
        whole = flat.new_zeros(*self._ink.shape, flat.shape[1])
        whole[self._ink] = flat.detach()
        return whole.movedim(-1, 1)

    def steps(
        self, network: CellNetwork, flat: Tensor, count: int, noise: float = 0.0
    ) -> Iterator[Tensor]:
        """Its cells after each step; those of `rollout`, if there is no noise."""
        keep = torch.ones(network.channels, device=flat.device)
        keep[0] = 0.0
        filters = filter_bank(network.filters).to(flat)
        weight = network.hidden.view(network.width, len(filters), network.channels)
        hidden = torch.einsum("hfc,fo->och", weight, filters).flatten(0, 1)
        output, bias = (network.output * keep[:, None]).T, network.output_bias * keep
        for _ in range(count):
            seen = _Seen.apply(flat, self._around, self._back)
            inside = torch.addmm(network.hidden_bias, seen, hidden).relu()
            flat = flat + torch.addmm(bias, inside, output)
            if noise:
                flat = flat + noise * keep * (2 * torch.rand_like(flat) - 1)
            yield flat

    def after(self, network: CellNetwork, cells: Tensor, count: int) -> Tensor:
        """Its cells of whole digits after some steps."""
        flat = self.taken(cells)
        for later in self.steps(network, flat, count):
            flat = later
        return flat

    def votes(self, flat: Tensor) -> Tensor:
        """How many cells of each digit vote for what, `[runs, 10]`."""
        votes = functional.one_hot(flat[:, -10:].argmax(1), 10).float()
        found = votes.new_zeros(len(self._ink), 10)
        return found.index_add(0, self.run, votes)

    def right(self, flat: Tensor, labels: Tensor) -> Tensor:
        """1 for digits of which most cells vote for the label, 0 for the others."""
        return (self.votes(flat).argmax(1) == labels).float()


class _Seen(torch.autograd.Function):
    """The nine cells around each. The gradient is gathered, too: it takes half of the time."""

    @staticmethod
    def forward(ctx: Any, flat: Tensor, around: Tensor, back: Tensor) -> Tensor:
        ctx.save_for_backward(back)
        return functional.pad(flat, (0, 0, 0, 1)).index_select(0, around).view(len(flat), -1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (back,) = ctx.saved_tensors
        [grad] = grads
        parts = functional.pad(grad.view(-1, grad.shape[1] // len(_AROUND)), (0, 0, 0, 1))
        found = parts.index_select(0, back).view(len(grad), len(_AROUND), -1)
        return found.sum(1), None, None


class Digits:
    """Digits to train with, without end: written ones, turned and resized, and drawn ones."""

    def __init__(self, data: Path, device: str, drawn: int = 2000) -> None:
        self._written, self._labels = mnist(data, "train", device)
        draw = torch.Generator().manual_seed(1)
        by_stroke = [drawn_digit(i % 10, draw) for i in range(drawn)]
        self._drawn = torch.stack(by_stroke).to(device)

    def draw(self, count: int) -> tuple[Tensor, Tensor]:
        """Ink `[count, BOX, BOX]` and labels."""
        device = self._drawn.device
        which = torch.randint(len(self._written), (count,), device=device)
        turn, slant, wide, high = torch.rand(4, count, device=device) - 0.5
        rows = [1 + 0.3 * wide, 0.4 * turn + 0.3 * slant, 0 * turn]
        more = [-0.4 * turn, 1 + 0.3 * high, 0 * turn]
        change = torch.stack([torch.stack(rows, -1), torch.stack(more, -1)], 1)
        ink = reduced(self._written[which], change, *_INK)
        other = torch.randint(len(self._drawn), (count,), device=device)
        by_stroke = torch.rand(count, device=device) < _DRAWN_SHARE
        ink = torch.where(by_stroke[:, None, None], self._drawn[other], ink)
        return ink, torch.where(by_stroke, other % 10, self._labels[which])


def mnist(data: Path, part: str, device: str) -> tuple[Tensor, Tensor]:
    """Pictures `[digits, 28, 28]` as bytes, and labels."""
    names = {"pixels": f"{part}-images-idx3-ubyte", "label": f"{part}-labels-idx1-ubyte"}
    paths = {key: data / name for key, name in names.items()}
    packed = {key: path.with_name(f"{path.name}.gz") for key, path in paths.items()}
    files = {key: str(path if path.exists() else packed[key]) for key, path in paths.items()}
    samples = IdxFiles(files).open()
    pictures = [samples.read(i, ["pixels"])["pixels"] for i in range(len(samples))]
    labels = torch.tensor(samples.values("label"))
    return torch.from_numpy(np.stack(pictures)).to(device), labels.to(device)


def reduced(pictures: Tensor, change: Tensor, low: float, high: float) -> Tensor:
    """Ink of pictures after a linear change of coordinates, `[digits, BOX, BOX]`."""
    count = len(pictures)
    grid = functional.affine_grid(change, [count, 1, BOX, BOX], align_corners=False)
    shades = functional.grid_sample(pictures[:, None] / 255, grid, align_corners=False)[:, 0]
    limit = low + (high - low) * torch.rand(count, 1, 1, device=shades.device)
    # The darkest pixels are ink in any case: no digit is empty.
    return (shades >= torch.minimum(limit, shades.amax((1, 2), keepdim=True))).float()


def fresh(ink: Tensor, channels: int) -> Tensor:
    """Cells `[digits, channels, rows, columns]` that know of nothing but their ink."""
    return functional.pad(ink[:, None], (0, 0, 0, 0, 0, channels - 1))


def score(network: CellNetwork, pictures: Tensor, labels: Tensor, tests: int) -> dict[str, Any]:
    """Shares of test digits that are right, and of their cells that agree.

    After 40 steps, after 200, and 60 steps after each was changed into another.
    """
    pictures, labels = pictures[:tests], labels[:tests]
    middle = sum(_INK) / 2
    same = torch.eye(2, 3, device=pictures.device).expand(len(pictures), 2, 3)
    ink = reduced(pictures, same, middle, middle)
    cells, living = fresh(ink, network.channels), Living(ink)
    found: dict[str, Any] = {"tests": len(labels)}
    for steps, name in ((40, "after 40"), (160, "after 200")):
        flat = living.after(network, cells, steps)
        cells = living.put(flat)
        found |= measured(living, flat, labels, name)
    ink, labels = ink.roll(1, 0), labels.roll(1)
    cells[:, 0] = ink
    living = Living(ink)
    flat = living.after(network, cells, 60)
    return found | measured(living, flat, labels, "changed")


def measured(living: Living, flat: Tensor, labels: Tensor, name: str) -> dict[str, float]:
    """The share of digits that are right, and of cells that vote with most of their digit."""
    votes = living.votes(flat)
    agree = (votes.amax(1) / votes.sum(1)).mean().item()
    return {name: living.right(flat, labels).mean().item(), f"{name}, agree": agree}


def compare(model: DigitsCA) -> None:
    """Hold `Living.steps` against `rollout`, for three steps with a random rule."""
    network, device = model.network, model.network.output.device
    random = CellNetwork.random(network.channels, network.width, network.filters, scale=0.3)
    random.output[0] = 0.0
    ink = torch.stack([drawn_digit(i) for i in range(10)]).to(device)
    cells = ink[:, None] * torch.randn(network.channels, BOX, BOX, device=device)
    cells[:, 0] = ink
    living = Living(ink)
    random = random.to(device)
    *_, flat = living.steps(random, living.taken(cells), 3)
    expected = rollout(model.with_network(random), {"cells": cells}, 3, batch=len(cells))
    torch.testing.assert_close(living.put(flat), expected["cells"], rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    main()
