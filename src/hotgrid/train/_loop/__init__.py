"""The training loop and its parts."""

from ._batches import (
    Batches as Batches,
    BatchStream as BatchStream,
    TensorBatches as TensorBatches,
)
from ._early_stopping import EarlyStopping as EarlyStopping
from ._guard import LossGuard as LossGuard
from ._optimizer import (
    GroupedOptimizer as GroupedOptimizer,
    OptimizerAdapter as OptimizerAdapter,
)
from ._settings import Evaluation as Evaluation, Saving as Saving
from ._trainer import Trainer as Trainer, TrainingOutcome as TrainingOutcome
