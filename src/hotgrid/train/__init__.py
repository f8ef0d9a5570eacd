"""train: optimizers in groups, schedules, weights from files.

Layer: above `nn` and `store`. `groups` divides the parameters of a model among optimizers by
selectors. Optimizers and schedules are data. `load_partial` and `save_weights` are strict
about weights in files; `lora`, `freeze` and `rehead` change a model by selector.
"""

from ._adapters import (
    LoRA as LoRA,
    Trainable as Trainable,
    freeze as freeze,
    lora as lora,
    merge_lora as merge_lora,
    rehead as rehead,
    trainable as trainable,
)
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
from ._records import (
    LoadReport as LoadReport,
    load_partial as load_partial,
    save_weights as save_weights,
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
