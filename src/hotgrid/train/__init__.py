"""train: optimizers in groups, schedules, weights from files.

Layer: above `nn` and `store`.
"""

from ._groups import GroupRow as GroupRow, Groups as Groups, groups as groups
from ._optimizers import (
    SGD as SGD,
    AdamW as AdamW,
    ElementwiseSpec as ElementwiseSpec,
    Lion as Lion,
    Muon as Muon,
    OptimizerSpec as OptimizerSpec,
    Value as Value,
)
from ._schedules import (
    WSD as WSD,
    Constant as Constant,
    CosineDecay as CosineDecay,
    ExponentialDecay as ExponentialDecay,
    LinearDecay as LinearDecay,
    Noam as Noam,
    Product as Product,
    StepSchedule as StepSchedule,
    Then as Then,
    Warmup as Warmup,
)
