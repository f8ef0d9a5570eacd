"""The settings that a resumed run must share, and the values that a run can watch."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from torch import Tensor, nn

from hotgrid.cluster import Communicator
from hotgrid.errors import ArgumentError, near
from hotgrid.train._metrics import Metric

from ._batches import Batches, BatchStream
from ._early_stopping import EarlyStopping
from ._guard import LossGuard
from ._optimizer import GroupedOptimizer
from ._settings import Evaluation, Saving


def shape_of(module: nn.Module) -> str:
    """A module as text: a hash of all names, shapes and dtypes."""
    # Modules may keep other things than tensors, which cannot be saved.
    kept = {path: x for path, x in module.state_dict().items() if isinstance(x, Tensor)}
    lines = [f"{path} {tuple(x.shape)} {x.dtype}" for path, x in kept.items()]
    found = hashlib.blake2b("\n".join(lines).encode(), digest_size=8).hexdigest()
    numbers = sum(x.numel() for x in kept.values())
    return f"{len(lines)} tensors of {numbers:,} numbers, {found}"


def expect_alike(ranks: Communicator, given: Mapping[str, str]) -> None:
    """Refuse ranks that were given different settings: each would train something else."""
    if ranks.size == 1:
        return
    of_all = ranks.gather_json(dict(given))
    for rank, found in enumerate(of_all):
        for name in of_all[0] | found:
            here, there = (each.get(name, "none") for each in (found, of_all[0]))
            if here != there:
                raise ArgumentError(
                    f"rank {rank} was given another {name} than rank 0: {here}, there "
                    f"{there}; give all ranks the same"
                )


def settings_of_ranks(
    log_every: int,
    metrics: Sequence[Metric],
    evaluation: Evaluation | None,
    stopping: EarlyStopping | None,
    saving: Saving | None,
    guard: LossGuard,
) -> dict[str, str]:
    """The settings that all ranks must share, as text, or they would wait for each other."""
    checks = "none"
    if evaluation:
        names = ", ".join(each.name for each in evaluation.metrics)
        checks = f"{len(evaluation.batches)} batches every {evaluation.every} steps, {names}"
    return {
        "folder": "no folder" if saving is None else "a folder",
        "log_every": str(log_every),
        "metrics": ", ".join(each.name for each in metrics) or "none",
        "evaluation": checks,
        "early_stopping": str(stopping),
        "saving": str(saving),
        "guard": str(guard),
    }


def identity_of_batches(batches: Batches | BatchStream) -> dict[str, str]:
    """The identity of the batches, which a resumed run must share, if the source has one."""
    identity = getattr(batches, "identity", None)
    return {} if identity is None else {"batches": str(identity)}


def asked_of(own: Mapping[str, str], asked: Mapping[str, object] | None) -> dict[str, str]:
    """The settings that a resumed run must share: the trainer's own, and others as text.

    Raises:
        ArgumentError: A setting has a name that the trainer uses itself.
    """
    if not isinstance(asked, Mapping | None):
        raise ArgumentError(
            f'`asked` is {asked!r}; expected a dict of texts, such as {{"data": "digits"}}'
        )
    found = {str(name): str(value) for name, value in (asked or {}).items()}
    taken = next((name for name in found if name in own), None)
    if taken is not None:
        raise ArgumentError(
            f"`asked` has `{taken}`, which the trainer compares itself; use another name"
        )
    return {**own, **found}


def watched(
    metrics: Sequence[Metric],
    evaluation: Evaluation | None,
    saving: Saving,
    stopping: EarlyStopping | None,
) -> tuple[Saving, EarlyStopping | None]:
    """Return the rules, each with the direction that is better.

    Raises:
        ArgumentError: A value to watch does not exist.
    """
    known: dict[str, Metric] = {}
    if evaluation:
        known = {f"{evaluation.name}/{each.name}": each for each in evaluation.metrics}
    if stopping is not None:
        if stopping.metric not in known:
            raise ArgumentError(
                f"early stopping watches `{stopping.metric}`, which is not evaluated"
                f"{near(stopping.metric, known)}; there are {', '.join(known) or 'none'}"
            )
        stopping = replace(stopping, better=stopping.better or known[stopping.metric].better)
    known |= {f"train/{each.name}": each for each in metrics}
    best = saving.best
    if best is not None and best not in known:
        raise ArgumentError(
            f"`Saving(best={best!r})` names no value of this run{near(best, known)}; there are "
            f"{', '.join(known)}"
        )
    own = None if best is None else known[best].better
    return replace(saving, better=saving.better or own or "lowest"), stopping


def better_of(
    metrics: Sequence[Metric], evaluation: Evaluation | None, saving: Saving
) -> dict[str, str]:
    """Whether the lowest or the highest is the best, for every value that says so."""
    found = {f"train/{each.name}": each.better for each in metrics}
    if evaluation:
        found |= {f"{evaluation.name}/{each.name}": each.better for each in evaluation.metrics}
    if saving.best is not None:
        found[saving.best] = saving.better
    return {name: better for name, better in found.items() if better}


def identity_of_optimizer(optimizer: GroupedOptimizer) -> str:
    """The groups and their values in the first step, which a resumed run must share."""
    optimizer.apply(0)
    # Without the size of their state, which depends on the number of ranks.
    return "; ".join(
        f"{row.name}: {row.optimizer}, {row.elements} parameters, rate {row.rate}, decay "
        f"{row.decay}, clip {row.clip}, {row.settings}"
        for row in optimizer.rows()
    )
