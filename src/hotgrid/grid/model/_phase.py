"""`PhaseModel`: a model whose step is a phase on whole arrays and nothing else."""

from abc import abstractmethod
from collections.abc import Mapping

from torch import Tensor

from ._model import Model, Planes, State
from ._neighbours import Neighbours
from ._whole import Whole


class PhaseModel(Model):
    """A model whose cells depend on the whole grid: it has a `phase`, and no local step.

    Example:
        >>> class Smooth(PhaseModel):
        ...     fields = (Field("u"),)
        ...     rate = Parameter(0.1, low=0)
        ...     def phase(self, whole, state, inputs, params):
        ...         modes, (ky, kx) = whole.rfft(state["u"]), whole.wavenumbers()
        ...         decay = (-params["rate"] * (kx * kx + ky * ky)).exp()
        ...         return {"u": whole.irfft(modes * decay)}
        >>> sim = Simulation(Smooth(), size=(8, 8), device="cpu")
        >>> sim.run(3).steps
        3
    """

    radius = 0

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> Mapping[str, Planes]:
        """Every field as it is."""
        return {name: handle.here for name, handle in state.items()}

    @abstractmethod
    def phase(
        self,
        whole: Whole,
        state: State,
        inputs: State,
        params: Mapping[str, Tensor],
    ) -> Mapping[str, Tensor]:
        """The next value of fields; see `Model.phase`."""


def has_phase(model: Model) -> bool:
    """Whether steps of a model end with a phase on whole arrays."""
    return type(model).phase is not Model.phase


def is_local(model: Model) -> bool:
    """Whether a model has a step of its own besides its phase."""
    return type(model).step is not PhaseModel.step
