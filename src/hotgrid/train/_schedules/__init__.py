"""Schedules: numbers as functions of the step, one file for each."""

from ._cosine import CosineDecay as CosineDecay
from ._exponential import ExponentialDecay as ExponentialDecay
from ._linear import LinearDecay as LinearDecay, Warmup as Warmup
from ._noam import Noam as Noam
from ._schedule import (
    Constant as Constant,
    Product as Product,
    StepSchedule as StepSchedule,
    Then as Then,
)
from ._wsd import WSD as WSD
