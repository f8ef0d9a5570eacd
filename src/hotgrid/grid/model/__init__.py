"""model: declaring a model: its fields, inputs, parameters, observables and one step.

A model in a file of its own needs nothing else. The checks of arguments that all models
and forms share are here too.
"""

from ._boundary import (
    BOUNDARIES as BOUNDARIES,
    FieldBoundary as FieldBoundary,
    FieldFace as FieldFace,
    beyond as beyond,
    faces as faces,
    seen_beyond as seen_beyond,
)
from ._brush import Brush as Brush
from ._checks import (
    brief as brief,
    checked_device as checked_device,
    checked_path as checked_path,
    checked_size as checked_size,
    expect_callable as expect_callable,
    expect_flag as expect_flag,
    expect_whole as expect_whole,
    given_tensors as given_tensors,
    named_tensors as named_tensors,
    whole_number as whole_number,
)
from ._colour_codes import coded_colours as coded_colours, colour_codes as colour_codes
from ._declared import checked_model as checked_model
from ._model import (
    Field as Field,
    Input as Input,
    Model as Model,
    Planes as Planes,
    State as State,
)
from ._neighbours import (
    Look as Look,
    Neighbours as Neighbours,
)
from ._options import (
    Option as Option,
    build_model as build_model,
    options_of as options_of,
)
from ._parameter import (
    Parameter as Parameter,
    parameters_read as parameters_read,
)
from ._phase import (
    PhaseModel as PhaseModel,
    has_phase as has_phase,
    is_local as is_local,
)
from ._random import (
    next_random as next_random,
    random_numbers as random_numbers,
    uniform as uniform,
)
from ._seen import (
    SeenState as SeenState,
    observed as observed,
    once as once,
    pictured as pictured,
)
from ._shown import (
    Over as Over,
    observable as observable,
    total as total,
    view as view,
)
from ._vectors import (
    CellVectors as CellVectors,
    VectorModel as VectorModel,
    mixed as mixed,
    said_step as said_step,
)
from ._whole import Whole as Whole
from ._window import (
    GridWindow as GridWindow,
    drawn as drawn,
    in_window as in_window,
    places as places,
    window_on as window_on,
    window_shape as window_shape,
)
