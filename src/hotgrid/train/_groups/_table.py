"""The table of groups."""

from collections.abc import Sequence
from typing import NamedTuple


class GroupRow(NamedTuple):
    """One row of the table of groups.

    Attributes:
        name: The name of the group.
        optimizer: The name of its optimizer, or `frozen`.
        tensors: The number of parameter tensors.
        elements: The number of elements in them.
        rate: The learning rate now; None if frozen.
        decay: Weight decay now; None if frozen.
        clip: The largest norm of the gradients; None is no limit.
        state_bytes: The memory of the optimizer's state on this rank.
        settings: The other settings of the optimizer, as text.
    """

    name: str
    optimizer: str
    tensors: int
    elements: int
    rate: float | None
    decay: float | None
    clip: float | None
    state_bytes: int
    settings: str = ""


def written(rows: Sequence[GroupRow]) -> str:
    """The rows as text, with a row of sums."""
    heads = ("group", "optimizer", "tensors", "parameters", "rate", "decay", "clip", "state")
    lines = [
        (
            row.name,
            row.optimizer,
            f"{row.tensors:,}",
            f"{row.elements:,}",
            *("-" if x is None else f"{x:.4g}" for x in (row.rate, row.decay, row.clip)),
            _bytes(row.state_bytes),
        )
        for row in rows
    ]
    trained = sum(row.elements for row in rows if row.rate is not None)
    every = sum(row.elements for row in rows)
    sums = (f"{sum(r.tensors for r in rows):,}", f"{every:,}", "", "", "")
    lines.append(("all", "", *sums, _bytes(sum(row.state_bytes for row in rows))))
    widths = [max(map(len, column)) for column in zip(heads, *lines, strict=True)]
    text = [
        "  ".join(
            cell.ljust(width) if at < 2 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in (heads, *lines)
    ]
    share = 100 * trained / every if every else 0.0
    return "\n".join([*text, f"trained: {trained:,} of {every:,} parameters ({share:.1f} %)"])


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} TiB"
