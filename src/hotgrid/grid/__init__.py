"""grid: models of cells and their neighbours, and the engine that runs them.

A model is data plus one pure function; `Simulation` runs it at the memory limit
of the device. Families of models live in `life`, `lbm` and `pde`. Stands on
`kernels` and everything below.
"""

from . import lbm as lbm, life as life, pde as pde
from ._catalogue import find_model as find_model, models as models
from ._checkpoints import SimulationCheckpoints as SimulationCheckpoints
from ._export import (
    check_export as check_export,
    export as export,
    export_names as export_names,
)
from ._form_choice import FormExplanation as FormExplanation
from ._layout import (
    ASSUMED_SHARE as ASSUMED_SHARE,
    job_of as job_of,
    planned_depth as planned_depth,
)
from ._model import (
    Field as Field,
    Input as Input,
    Model as Model,
    Parameter as Parameter,
    observable as observable,
    total as total,
    view as view,
)
from ._neighbours import Neighbours as Neighbours
from ._observations import Observations as Observations
from ._options import Option as Option, build_model as build_model, options_of as options_of
from ._picture import Picture as Picture, draw as draw
from ._recorder import Recorder as Recorder
from ._rollout import rollout as rollout
from ._simulation import Simulation as Simulation, explain_form as explain_form
from ._speed import Speed as Speed
