"""Optimizers as data: the settings, the state and the update of each, in one file each."""

from ._adamw import AdamW as AdamW
from ._lion import Lion as Lion
from ._muon import Muon as Muon
from ._sgd import SGD as SGD
from ._spec import (
    Bound as Bound,
    ElementwiseSpec as ElementwiseSpec,
    OptimizerSpec as OptimizerSpec,
    Value as Value,
    is_cut as is_cut,
    local_part as local_part,
)
from ._suited import expect_dense as expect_dense, expect_shapes as expect_shapes
