"""Making the form of a grid that is cut over ranks."""

from collections.abc import Sequence

import torch

from hotgrid.cluster import Communicator, Mesh, world
from hotgrid.errors import ArgumentError
from hotgrid.grid.forms._form import Setting

from ._cut import CutForm
from ._far_inputs import with_far_inputs
from ._layout import agreed_depth
from ._overlap import OverlappedForm
from ._phased import PhasedForm, expect_phased


def laid_out(
    mesh: Mesh | str | Sequence[int],
    communicator: Communicator | None,
    device: torch.device,
    axes: int,
) -> tuple[Mesh, Communicator]:
    """A mesh over a grid with a number of axes, and its ranks.

    Raises:
        ArgumentError: Mesh, ranks and axes do not fit; the message says what would.
    """
    layout = Mesh(mesh)
    if communicator is not None and not isinstance(communicator, Communicator):
        raise ArgumentError(f"`communicator` must be a Communicator, got {communicator!r}")
    ranks = communicator or world(device)
    layout.over(axes).check_ranks(ranks.size)
    return layout, ranks


def cut_form(
    setting: Setting,
    layout: Mesh,
    ranks: Communicator,
    depth: int | None,
    overlap: bool | None,
    form: str | None = None,
) -> CutForm:
    """This rank's form of a grid that is cut over a mesh.

    Raises:
        ArgumentError: Grid and depth do not fit the mesh; the message says what would.
    """
    if setting.phased:
        expect_phased(setting, depth, overlap)
        return PhasedForm(setting, ranks, layout, 1, form)
    narrow = _too_narrow(setting, layout)
    if overlap is None:
        # Cores that compute also carry the messages; a GPU has others for them.
        overlap = setting.device.type == "cuda" and layout.ranks > 1 and not narrow
    elif overlap and narrow:
        raise ArgumentError(f"`overlap` True is impossible here: {narrow}; leave out `overlap`")
    depth = agreed_depth(setting, layout, depth, ranks)
    if layout.ranks > 1:
        setting = with_far_inputs(setting)
    return (OverlappedForm if overlap else CutForm)(setting, ranks, layout, depth, form)


def _too_narrow(setting: Setting, layout: Mesh) -> str:
    """Why blocks cannot be stepped without their margins; empty where they can.

    A mirror at the centre of the last cell shows the cells behind it, one more than the radius.
    """
    mesh, least = layout.over(setting.rank), setting.model.radius + 1
    for axis, count in enumerate(mesh.largest_margin(setting.size)):
        for field in setting.model.fields if mesh.shape[axis] > 1 else ():
            if count < least and "mirror" in field.faces(setting.rank)[axis]:
                return (
                    f"the field `{field.name}` is mirrored along axis {axis}, where mesh "
                    f"`{layout}` leaves blocks of {count} cells, and a radius of "
                    f"{setting.model.radius} needs {least}"
                )
    return ""
