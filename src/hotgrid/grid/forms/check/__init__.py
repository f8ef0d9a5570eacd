"""check: whether a step is one that every form runs alike."""

from ._step_check import (
    check_step as check_step,
    constants_of as constants_of,
)
