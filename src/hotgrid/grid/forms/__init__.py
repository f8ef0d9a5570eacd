"""forms: the ways to run a step, and the choice between them.

A form keeps the fields of a model and steps them. `roll` is the readable one; the others
give the same bits and are faster somewhere. `padded` holds the form of the CPU, `vectors`
those of cells as vectors. `cut` splits a grid over ranks, `parts` is what one rank stores,
`kernel` turns recorded steps into kernels, `check` refuses steps that forms could not run
alike.
"""

from ._choice import (
    FormExplanation as FormExplanation,
    explained as explained,
)
from ._form import (
    Form as Form,
    Setting as Setting,
    compile_step as compile_step,
)
from ._grid_state import GridState as GridState
from ._memory import free_memory as free_memory
from ._phase import Phase as Phase
from ._roll import whole_step as whole_step
from ._schedule import (
    ParameterSchedule as ParameterSchedule,
    split_start as split_start,
)
from .parts._parts import look_at as look_at, look_box as look_box
