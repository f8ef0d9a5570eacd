"""train: optimizers in groups, schedules, weights from files.

Layer: above `nn` and `store`.
"""

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
