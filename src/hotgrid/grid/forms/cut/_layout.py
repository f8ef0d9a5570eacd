"""How to split a grid: what the planner must know about a model, and what it chooses."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from hotgrid.config import current, logger
from hotgrid.errors import ArgumentError
from hotgrid.grid.forms._form import Setting
from hotgrid.grid.forms._phase import Phase
from hotgrid.grid.model import Field, Input, Model, Whole, has_phase, whole_number

if TYPE_CHECKING:
    from hotgrid.cluster import Communicator, Mesh
    from hotgrid.cluster.plan import Device, Job, Link

ASSUMED_SHARE = 0.9
"""The share of a copy that compiled steps of most models reach, if nothing was measured."""
# Two cores that take a GB/s each through the loopback, and GPUs joined by PCIe.
_ASSUMED_LINKS = {"cpu": "1GB/s,150us", "cuda": "25GB/s,20us"}
_ASSUMED_DEVICES = {"cpu": "(64GB,20GB/s)", "cuda": "A100"}


def job_of(
    model: Model, size: Sequence[int], storage: torch.dtype, share: float = ASSUMED_SHARE
) -> "Job":
    """The cost of a model on a grid of any size, for the planner; nothing of it is made.

    Arguments:
        model: The model.
        size: The grid, as users give it.
        storage: The floating type that fields are kept in.
        share: The part of a copy's bandwidth that its steps reach.

    Raises:
        ArgumentError: Some fields are periodic and others are not.

    Example:
        >>> from hotgrid.grid.pde import Heat
        >>> job_of(Heat(), (64, 64), torch.float32).bytes_moved_per_cell
        8
    """
    running = model.fitted(tuple(size))
    stored = running.stored_size(tuple(size))
    return _job(running, stored, storage, share, math.prod(size) / math.prod(stored))


def _job(
    running: Model,
    stored: tuple[int, ...],
    storage: torch.dtype,
    share: float,
    updates: float = 1.0,
    batch: int = 1,
) -> "Job":
    # The cluster is imported only if a grid is split.
    from hotgrid.cluster.plan import Job

    def width(kinds: Sequence[Field | Input]) -> int:
        return sum(kind.components * (kind.dtype or storage).itemsize for kind in kinds)

    fields, inputs = batch * width(running.fields), width(running.inputs)
    return Job(
        size=stored,
        bytes_moved_per_cell=2 * fields + inputs,
        # Two buffers, and the last state that is known to be good.
        bytes_stored_per_cell=3 * fields + inputs,
        bytes_sent_per_cell=fields,
        reach=lambda depth: running.reach(depth, len(stored)),
        periodic=joined_ends(running, len(stored)),
        share=share,
        updates_per_cell=updates,
        **_transforms_of(running, len(stored), storage, batch),
    )


# Transforms take time in proportion to cells, so a small grid tells what they are.
_TRIAL_SIDE = 8


def _transforms_of(
    model: Model, rank: int, storage: torch.dtype, batch: int
) -> "dict[str, Any]":
    """The transforms of a phase, counted on a small grid."""
    if not has_phase(model):
        return {}
    size = (_TRIAL_SIDE,) * rank
    dtype = torch.promote_types(storage, torch.float32)
    setting = Setting(
        model=model,
        size=size,
        batch=(),
        device=torch.device("cpu"),
        dtype=dtype,
        storage=dtype,
        inputs=model.static(size),
        params={name: torch.tensor(x, dtype=dtype) for name, x in model.parameters.items()},
        compiled=False,
    )
    whole = Whole(size)
    fields = [torch.ones(f.components, *size, dtype=f.dtype or dtype) for f in model.fields]
    fixed = [
        setting.inputs[i.name].reshape(i.components, *size).to(i.dtype or dtype)
        for i in model.inputs
    ]
    with torch.no_grad():
        Phase(setting, whole)(fields, fixed, list(setting.params.values()))
    return {
        "modes_per_cell": batch * whole.transformed / math.prod(size),
        "transforms": whole.transforms,
    }


def joined_ends(model: Model, rank: int) -> tuple[bool, ...]:
    """For each axis, whether all fields are periodic along it.

    Raises:
        ArgumentError: Some fields are periodic along an axis and others are not.
    """
    joined = {field.joined(rank) for field in model.fields}
    if len(joined) > 1:
        raise ArgumentError(
            f"some fields of {type(model).__name__} are periodic and others are not; such a "
            "model cannot be split over a mesh: leave out `mesh`"
        )
    return joined.pop()


def planned_depth(
    job: "Job",
    mesh: "Mesh | str | Sequence[int]",
    device: torch.device | str,
    depth: int | None = None,
) -> int:
    """The steps between two exchanges that this machine's planner finds best.

    Based on what `hotgrid plan --calibrate` measured here, or else on typical values. Hosts may
    differ in that, so let one rank decide for all. A `depth` that is given is only held
    against the mesh.

    Raises:
        ArgumentError: The mesh does not fit the grid, or the depth the mesh.

    Example:
        >>> from hotgrid.grid.pde import Heat
        >>> planned_depth(job_of(Heat(), (64, 64), torch.float32), "1", "cpu")
        1
    """
    from hotgrid.cluster import Mesh
    from hotgrid.cluster.plan import best_plan

    layout = Mesh(mesh).over(len(job.size))
    machine, link = _machine(torch.device(device), layout.ranks)
    return best_plan(job, machine, link, layout.ranks, mesh=layout, depth=depth).best.depth


def agreed_depth(
    setting: Setting, mesh: "Mesh", wanted: int | None, ranks: "Communicator"
) -> int:
    """The steps between two exchanges: as requested, or as rank 0 plans."""
    set_depth = current().cluster.margin_depth
    if wanted is None and set_depth != "auto":
        wanted = set_depth
    if wanted is not None:
        return whole_number("depth", wanted, 1)
    if ranks.size == 1:
        return 1
    from hotgrid.cluster import all_or_raise

    def planned() -> int:
        if ranks.rank:
            return 0
        batch = math.prod(setting.batch)
        job = _job(setting.model, setting.size, setting.storage, ASSUMED_SHARE, batch=batch)
        return planned_depth(job, mesh, setting.device)

    # If the first rank cannot plan, the others must not wait for it.
    return ranks.gather_json(all_or_raise(ranks, planned))[0]


def _machine(device: torch.device, ranks: int) -> "tuple[Device, Link]":
    """The machine as measured here, or typical values."""
    from hotgrid.cluster.plan import load_calibration, parse_devices, parse_link

    kind = "cuda" if device.type == "cuda" else "cpu"
    try:
        found = load_calibration()
    except ArgumentError as problem:
        logger("cluster").warning("%s", problem)
        found = None
    usual = parse_link(_ASSUMED_LINKS[kind])
    if found is not None and found.kind == kind:
        here = found.device()
        shared = here if kind == "cuda" else here.shared(min(ranks, found.cores))
        return shared, found.link or usual
    return parse_devices(_ASSUMED_DEVICES[kind])[1], usual
