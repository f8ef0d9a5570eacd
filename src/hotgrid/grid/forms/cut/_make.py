"""Making the form of a grid that is cut over ranks."""

from collections.abc import Sequence

from hotgrid.cluster import Communicator, Mesh, world
from hotgrid.errors import ArgumentError
from hotgrid.grid.forms._form import Setting

from ._cut import CutForm
from ._far_inputs import with_far_inputs
from ._layout import agreed_depth
from ._overlap import OverlappedForm
from ._phased import PhasedForm, expect_phased


def cut_form(
    setting: Setting,
    mesh: Mesh | str | Sequence[int],
    depth: int | None,
    overlap: bool | None,
    communicator: Communicator | None,
    form: str | None = None,
) -> CutForm:
    """This rank's form of a grid that is cut over a mesh.

    Raises:
        ArgumentError: Mesh, ranks, grid and depth do not fit; the message says what would.
    """
    layout = Mesh(mesh)
    if communicator is not None and not isinstance(communicator, Communicator):
        raise ArgumentError(f"`communicator` must be a Communicator, got {communicator!r}")
    ranks = communicator or world(setting.device)
    layout.over(setting.rank).check_ranks(ranks.size)
    if setting.phased:
        expect_phased(setting, depth, overlap)
        if layout.ranks > 1:
            setting = with_far_inputs(setting)
        return PhasedForm(setting, ranks, layout, 1, form)
    if overlap is None:
        # Cores that compute also carry the messages; a GPU has others for them.
        overlap = setting.device.type == "cuda" and layout.ranks > 1
    depth = agreed_depth(setting, layout, depth, ranks)
    if layout.ranks > 1:
        setting = with_far_inputs(setting)
    return (OverlappedForm if overlap else CutForm)(setting, ranks, layout, depth, form)
