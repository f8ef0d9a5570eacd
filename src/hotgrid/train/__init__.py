"""train: optimizers in groups, and a loop that resumes to the bit. Builds on `nn` and `store`.

A `Trainer` runs a step function `loss(module, batch)`: accumulation, precision, ranks,
averages, metrics, evaluation and checkpoints are around it, never in it. A `Metric` is a
sum until it is shown. A run lives in a folder with `checkpoints/`, `events.jsonl`,
`report.html` and `run.toml`; `hotgrid train show` and `compare` read it.
"""

from ._loop import (
    Batches as Batches,
    BatchStream as BatchStream,
    EarlyStopping as EarlyStopping,
    Evaluation as Evaluation,
    GroupedOptimizer as GroupedOptimizer,
    Guard as Guard,
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
from ._report import (
    RunSummary as RunSummary,
    compare_runs as compare_runs,
    read_events as read_events,
    read_run as read_run,
    text_plot as text_plot,
    write_report as write_report,
)
