"""run: a simulation from its first step to its last, and what is saved."""

from ._catalogue import (
    find_model as find_model,
    models as models,
)
from ._checkpoints import SimulationCheckpoints as SimulationCheckpoints
from ._live_control import LiveControl as LiveControl, Moment as Moment
from ._outcome import RunOutcome as RunOutcome
from ._pace import (
    finite as finite,
    wait_for as wait_for,
)
from ._perform import (
    perform as perform,
    prepared as prepared,
)
from ._rollout import rollout as rollout
from ._simulation import (
    Simulation as Simulation,
    explain_form as explain_form,
)
from ._speed import Speed as Speed
