"""Ising: spins that align below a critical temperature."""

from collections.abc import Mapping, Sequence
from typing import Self

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid.model import (
    Brush,
    Field,
    Input,
    Model,
    Neighbours,
    Parameter,
    Planes,
    State,
    drawn,
    next_random,
    observable,
    once,
    places,
    random_numbers,
    total,
    view,
    window_shape,
)

_BESIDE = ((-1, 0), (1, 0), (0, -1), (0, 1))


class Ising(Model):
    """Spins of +1 and -1 that prefer their neighbours' direction, in a bath of heat.

    A step draws half of the spins, as on the black squares of a chessboard, from their
    distribution given the other half (heat bath, Glauber 1963); the next step draws the
    white ones. Random numbers are in the state, so a run is the same in every form. Periodic,
    sides must be even; the critical temperature is 2.269.

    Example:
        >>> sim = Simulation(Ising(temperature=1.0), size=(32, 32), compiled=False)
        >>> sim.run(200).steps
        200
        >>> sim.observe()["energy"] < -1.5
        True
    """

    fields = (
        Field("spin", dtype=torch.int8),
        Field("turn", dtype=torch.int8),
        Field("random", dtype=torch.int32),
    )
    inputs = (Input("colour", dtype=torch.int8),)
    ranks = (2,)
    differentiable = False
    windowed = True
    picture = "spins"
    temperature = Parameter(
        2.269185, "temperature, in units of the coupling", above=0, high=100
    )
    field = Parameter(0.0, "magnetic field, in units of the coupling", low=-10, high=10)

    def check(self, size: tuple[int, ...]) -> None:
        """Refuse odd sides, on which two neighbours have the same colour."""
        if any(n % 2 for n in size):
            raise ArgumentError(f"the sides of an Ising model must be even, got {size}")

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """Draw the spins of one colour."""
        spin, turn, random = (
            state["spin"],
            state["turn"].here,
            next_random(state["random"].here),
        )
        temperature = params["temperature"]
        around = sum(spin[offset].to(temperature.dtype) for offset in _BESIDE)
        up = torch.sigmoid(2 * (around + params["field"]) / temperature)
        # A random number does not fit into half precision.
        wide = torch.promote_types(up.dtype, torch.float32)
        drawn = (random.to(wide) * 2.0**-32 + 0.5 < up.to(wide)).to(torch.int8) * 2 - 1
        chosen = inputs["colour"].here == turn
        return {
            "spin": torch.where(chosen, drawn, spin.here),
            "turn": 1 - turn,
            "random": random,
        }

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """Spins at random, as at a very high temperature."""

        def coins(shape: tuple[int, ...]) -> Tensor:
            return torch.randint(0, 2, shape, generator=generator, dtype=torch.int8)

        spin = drawn(size, coins) * 2 - 1
        turn = torch.zeros(window_shape(size), dtype=torch.int8)
        return {"spin": spin, "turn": turn, "random": random_numbers(size, generator)}

    def static(self, size: tuple[int, ...]) -> dict[str, Tensor]:
        """The colours of a chessboard."""
        rows, columns = ((x % 2).to(torch.int8) for x in places(size))
        return {"colour": rows[:, None] ^ columns}

    def brushes(self) -> Sequence[Brush]:
        """On turns spins up, off turns them down."""
        return (Brush("spin", "Spin up", "states"),)

    def painted(self, state: State, brush: str, mask: Tensor, value: float) -> State:
        """Turn spins: there are no others than +1 and -1."""
        return {"spin": state["spin"].masked_fill(mask, 1 if value > 0 else -1)}

    def within(
        self, whole: tuple[int, ...], offset: tuple[int, ...], size: tuple[int, ...]
    ) -> Self:
        """The model itself: views and strokes see single cells."""
        return self

    @view
    def spins(self, state: State) -> Tensor:
        """The spins, `[*space]`: +1 and -1."""
        return state["spin"]

    @observable(over="mean")
    def magnetisation(self, state: State) -> Tensor:
        """The mean spin."""
        return total(state["spin"]) / state["spin"].numel()

    @observable(over="mean")
    def energy(self, state: State) -> Tensor:
        """The energy of a spin: -2 where all are aligned."""
        spin = state["spin"].to(torch.int32)
        field = self.parameters["field"]
        return (-total(spin * self._beside(state)) - field * total(spin)) / spin.numel()

    @once(reach=1)
    def _beside(self, state: State) -> Tensor:
        spin = state["spin"].to(torch.int32)
        return spin.roll(1, 0) + spin.roll(1, 1)
