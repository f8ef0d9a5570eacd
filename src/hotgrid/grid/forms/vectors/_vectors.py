"""Cells as vectors: shifts of whole arrays with channels last, and products by matrices."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from hotgrid.grid.forms._form import Form, Setting
from hotgrid.grid.forms._roll import GraphForm, RollForm
from hotgrid.grid.model import Model, State, VectorModel

from ._vector_step import channels_last


class VectorForm(RollForm):
    """Whole arrays with channels last in memory."""

    name = "vectors"

    def __init__(self, setting: Setting) -> None:
        model = setting.model
        if isinstance(model, VectorModel):
            model = model.placed(setting.device, setting.dtype)
        super().__init__(replace(setting, model=model))

    @staticmethod
    def drawback(setting: Setting) -> str:
        """None: products of matrices dominate, and shifts along a row move whole cells."""
        return ""

    def load(self, state: State) -> None:
        """Copy a state, each cell's channels next to each other."""
        rank = self.setting.rank
        super().load(
            {
                name: channels_last(x, rank)
                .clone(memory_format=torch.contiguous_format)
                .movedim(-1, -rank - 1)
                for name, x in state.items()
            }
        )


class VectorGraphForm(VectorForm, GraphForm):
    """The same, many steps in one launch: for grids too small to fill a GPU."""

    name = "vector_graph"
    leaves_old = False

    @staticmethod
    def drawback(setting: Setting) -> str:
        """It is for compiled steps that are shorter than their launch."""
        return GraphForm.drawback(setting)


def forms_of_vectors(model: Model) -> Sequence[type[Form]]:
    """The forms that only models of vectors have."""
    return (VectorGraphForm, VectorForm) if isinstance(model, VectorModel) else ()
