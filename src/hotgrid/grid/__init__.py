"""grid: models of cells and their neighbours, and the engine that runs them.

A model is data plus one pure function; `Simulation` runs it at the memory limit of the
device. Families of models are `life`, `lbm`, `pde` and `neural`; the engine is `model`
(declaring one), `forms` (how a step runs), `run` and `output`.
"""

from . import lbm as lbm, life as life, neural as neural, pde as pde
from .forms import FormExplanation as FormExplanation
from .model import (
    CellVectors as CellVectors,
    Field as Field,
    GridWindow as GridWindow,
    Input as Input,
    Model as Model,
    Neighbours as Neighbours,
    Option as Option,
    Parameter as Parameter,
    PhaseModel as PhaseModel,
    VectorModel as VectorModel,
    Whole as Whole,
    build_model as build_model,
    drawn as drawn,
    mixed as mixed,
    observable as observable,
    options_of as options_of,
    places as places,
    total as total,
    window_shape as window_shape,
)
from .output import (
    LivePicture as LivePicture,
    Observations as Observations,
    Picture as Picture,
    Recorder as Recorder,
    TerminalPicture as TerminalPicture,
    VtkSeries as VtkSeries,
    draw as draw,
    export as export,
)
from .run import (
    Simulation as Simulation,
    SimulationCheckpoints as SimulationCheckpoints,
    Speed as Speed,
    explain_form as explain_form,
    find_model as find_model,
    models as models,
    rollout as rollout,
)
