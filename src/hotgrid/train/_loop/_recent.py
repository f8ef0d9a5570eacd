"""`Recent`: the steps since faults were last looked for."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from torch import Tensor

from hotgrid.train._metrics import GradientNorm, Ledger, Loss

from ._guard import StepLosses

Numbers: TypeAlias = "list[float]"


class Recent:
    """Steps that were made; their tensors are on the device.

    Lists are flat, since all steps have equally many micro-batches: adding to them is
    what a step pays.

    Attributes:
        positions: The batches.
        losses: Their losses on this rank.
        counted: For the places of losses with a count, the sum of the losses and the count.
        norms: For every step, the norm of the gradient of every group that has one.
        items: The items of each micro-batch, if a metric counts them.
    """

    def __init__(self) -> None:
        self.positions: list[int] = []
        self.losses: list[Tensor] = []
        self.counted: dict[int, tuple[Tensor, Any]] = {}
        self.norms: list[Mapping[str, Tensor]] = []
        self.items: list[Any] = []

    def fetch(self, ledger: Ledger, names: Sequence[str]) -> tuple[Numbers, Numbers]:
        """Copy them to the host, and their rows and all other waiting rows to the ledger.

        Returns:
            The losses of all micro-batches, and the norms of all groups in every step; 0
            for a group without a gradient.
        """
        losses, norms, counted, items = ledger.fetch(
            self.losses,
            [step.get(name, 0.0) for step in self.norms for name in names],
            [x for pair in self.counted.values() for x in pair],
            self.items,
        )
        rows = [(loss, 1.0) for loss in losses]
        for at, total, count in zip(self.counted, counted[::2], counted[1::2], strict=True):
            rows[at] = (total, count)
        found = {Loss().name: rows} | {name: [(n,) for n in items] for name in ledger.counting}
        for place, name in enumerate(names):
            found[GradientNorm(name).name] = [
                (norm, float(name in step))
                for norm, step in zip(norms[place :: len(names)], self.norms, strict=True)
            ]
        ledger.take(found)
        return losses, norms

    def of_ranks(
        self, heard: Sequence[tuple[Numbers, Numbers]], names: Sequence[str], step: int
    ) -> list[StepLosses]:
        """The losses of all ranks, and the norms of the first: all ranks find the same.

        Args:
            heard: The results of `fetch` on every rank.
            names: The groups.
            step: The last of the steps, counted from 1.
        """
        count, groups = len(self.norms), len(names)
        k = len(self.positions) // max(1, count)
        norms = heard[0][1]
        return [
            StepLosses(
                step - count + 1 + at,
                tuple(self.positions[at * k : at * k + k]),
                [losses[at * k : at * k + k] for losses, _ in heard],
                dict(zip(names, norms[at * groups : at * groups + groups], strict=True)),
            )
            for at in range(count)
        ]
