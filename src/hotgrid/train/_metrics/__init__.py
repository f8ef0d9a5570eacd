"""Metrics: sums until they are shown."""

from ._accuracy import Accuracy as Accuracy, TopAccuracy as TopAccuracy
from ._bits_per_byte import BitsPerByte as BitsPerByte
from ._gradient_norm import GradientNorm as GradientNorm
from ._ledger import Ledger as Ledger, counts as counts
from ._loss import Loss as Loss
from ._metric import (
    Metric as Metric,
    Seen as Seen,
    Window as Window,
    items_of as items_of,
    metric_from_json as metric_from_json,
)
from ._throughput import (
    ModelFlops as ModelFlops,
    Throughput as Throughput,
    flops_per_item as flops_per_item,
    peak_flops as peak_flops,
)
