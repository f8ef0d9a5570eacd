"""train: parameter groups, schedules, weights from files, a loop that resumes bit for bit.

Layer: above `nn` and `store`. `groups` divides the parameters of a model among optimizers by
selectors; optimizers and schedules are data. `load_partial` and `save_weights` are strict
about weights in files; `lora`, `freeze` and `rehead` change a model by selector. A `Trainer`
runs a step function `loss(module, batch)`: accumulation, precision, ranks, averages, metrics
and checkpoints are around it, never in it. A `Metric` is a sum until it is shown. A run is a
folder with `checkpoints/`, `events.jsonl`, `report.html` and `run.toml`.
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
from ._loop import (
    Batches as Batches,
    BatchStream as BatchStream,
    EarlyStopping as EarlyStopping,
    Evaluation as Evaluation,
    GroupedOptimizer as GroupedOptimizer,
    LossGuard as LossGuard,
    OptimizerAdapter as OptimizerAdapter,
    Saving as Saving,
    TensorBatches as TensorBatches,
    Trainer as Trainer,
    TrainingOutcome as TrainingOutcome,
)
from ._metrics import (
    Accuracy as Accuracy,
    BitsPerByte as BitsPerByte,
    GradientNorm as GradientNorm,
    Loss as Loss,
    Metric as Metric,
    ModelFlops as ModelFlops,
    Seen as Seen,
    Throughput as Throughput,
    TopAccuracy as TopAccuracy,
    Window as Window,
    flops_per_item as flops_per_item,
    metric_from_json as metric_from_json,
    peak_flops as peak_flops,
)
from ._optimizers import (
    SGD as SGD,
    AdamW as AdamW,
    ElementwiseSpec as ElementwiseSpec,
    Lion as Lion,
    Muon as Muon,
    OptimizerSpec as OptimizerSpec,
    Value as Value,
    local_part as local_part,
)
from ._records import (
    LoadReport as LoadReport,
    load_partial as load_partial,
    save_weights as save_weights,
)
from ._report import (
    RunSummary as RunSummary,
    compare_runs as compare_runs,
    read_events as read_events,
    read_run as read_run,
    text_plot as text_plot,
    write_report as write_report,
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
