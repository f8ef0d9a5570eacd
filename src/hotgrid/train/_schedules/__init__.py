"""Schedules: numbers as functions of the step, one file for each."""

from ._combined import Product as Product, Then as Then
from ._constant import Constant as Constant
from ._cosine import CosineDecay as CosineDecay
from ._exponential import ExponentialDecay as ExponentialDecay
from ._linear import LinearDecay as LinearDecay, Warmup as Warmup
from ._noam import Noam as Noam
from ._schedule import StepSchedule as StepSchedule
from ._wsd import WSD as WSD
