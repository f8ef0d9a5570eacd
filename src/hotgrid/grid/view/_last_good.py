"""The last state that was seen to be finite: where a run goes back to when it diverges."""

from torch import Tensor

from hotgrid.grid.forms import Form
from hotgrid.grid.run import finite


class LastGood:
    """A copy of a state. Parameters and cells must not change by hand until it is used."""

    def __init__(self) -> None:
        self._state: dict[str, Tensor] | None = None
        self._step = 0

    def keep(self, form: Form, step: int) -> None:
        """Copy the present state."""
        self._state, self._step = _copied(form), step

    def forget(self) -> None:
        """Something else than steps has changed the state."""
        self._state = None

    def go_back(self, form: Form, bad: int) -> int | None:
        """Return to the last step whose numbers are finite, found by halving.

        Args:
            form: Holds a state that is not finite.
            bad: The step of that state.

        Returns:
            The step of the state that it holds now; None if nothing is known.
        """
        if self._state is None:
            return None
        while bad - self._step > 1:
            half = (bad - self._step) // 2
            form.restore(self._state)
            form.run(half)
            if form.everywhere(finite(form.own())):
                self._state, self._step = _copied(form), self._step + half
            else:
                bad = self._step + half
        form.restore(self._state)
        return self._step


def _copied(form: Form) -> dict[str, Tensor]:
    return {name: x.clone() for name, x in form.own().items()}
