"""`groups` and `Groups`: the parameters of a model, divided among optimizers by selectors."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from hotgrid.cluster import Communicator, SingleRank
from hotgrid.errors import ArgumentError, near
from hotgrid.train._optimizers import (
    OptimizerSpec,
    Value,
    expect_dense,
    expect_shapes,
    local_part,
)

from ._group import TrainedGroup
from ._split import Selector, Spec, Split, split
from ._table import GroupRow, written

_SHOWN = 8


def groups(
    model: nn.Module,
    specs: Mapping[Selector, Spec],
    rest: Spec | None = None,
    *,
    rates: Mapping[str, Value] | None = None,
    ranks: Communicator | None = None,
) -> "Groups":
    """Divide the parameters of a model among optimizers.

    Every parameter must be in exactly one group. Parameters that already are frozen
    (`requires_grad` is False) stay frozen in whatever group they are.

    The model can be wrapped: compiled, in `data_parallel`, or `fully_sharded`, which must
    come first because it replaces parameters.

    Args:
        model: The model.
        specs: An optimizer, or `"frozen"`, for every selector, an expression that
            `hotgrid.nn.select` takes.
        rest: The same for parameters that no selector names; by default there must be none.
        rates: The values that names in specs stand for: numbers, or functions of the step.
        ranks: The ranks that share the work of `Muon`; gradients must be equal on all of
            them, as `data_parallel` and `fully_sharded` make them. By default each does all.

    Returns:
        The groups; print them to see which optimizer trains which parameters.

    Raises:
        ArgumentError: Groups overlap, parameters are left over, a selector selects nothing,
            an optimizer cannot train a parameter, or a value is wrong. The message names
            the parameters.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2))
        >>> optimizer = groups(
        ...     model,
        ...     {"//Param[@rank=2]": Muon(rate="matrix", decay=0.1, name="matrices")},
        ...     rest=AdamW(rate=3e-4),
        ...     rates={"matrix": 0.02 * Warmup(steps=100)},
        ... )
        >>> optimizer.apply(step=49)
        >>> optimizer.rates()
        {'matrices': 0.01, 'rest': 0.0003}
        >>> print(optimizer.table())
        group     optimizer  tensors  parameters    rate  decay  clip  state
        matrices  Muon             2          48    0.01    0.1     -  192 B
        rest      AdamW            2          10  0.0003      0     -   88 B
        all                        4          58                       280 B
        trained: 58 of 58 parameters (100.0 %)
    """
    if not isinstance(model, nn.Module):
        raise ArgumentError(f"`model` is {model!r}; expected a torch.nn.Module")
    expect_shapes(model)
    made = Groups(split(model, specs, rest), rates or {}, ranks or SingleRank())
    # Parameters that the groups freeze have no gradients.
    expect_dense(model)
    return made


class Groups:
    """Parameters in groups, each with its optimizer. Made by `groups`.

    Attributes:
        names: The names of the groups that are trained, in order.
    """

    def __init__(self, members: Split, rates: Mapping[str, Value], ranks: Communicator) -> None:
        self._groups: list[TrainedGroup] = []
        asleep: dict[str, nn.Parameter] = {}
        for name, spec, parameters in members:
            if not isinstance(spec, OptimizerSpec):
                asleep |= parameters
                continue
            trained = {path: p for path, p in parameters.items() if p.requires_grad}
            asleep |= {path: p for path, p in parameters.items() if path not in trained}
            if not trained:
                raise ArgumentError(
                    f"the group `{name}` would train nothing: all its parameters are frozen "
                    f"({', '.join(list(parameters)[:_SHOWN])}); give it the spec 'frozen', or "
                    "unfreeze them with `requires_grad_()`"
                )
            self._groups.append(TrainedGroup(name, spec, trained, rates, ranks))
        for parameter in asleep.values():
            parameter.requires_grad_(False)
        self._frozen = asleep
        self.names = tuple(group.name for group in self._groups)

    def apply(self, step: int) -> None:
        """Set rates and all other scheduled numbers to their values at a step.

        Nothing counts steps, so a resumed run calls it with its step and has the same values.

        Raises:
            ArgumentError: A function did not return a number of at least 0.
        """
        for group in self._groups:
            group.apply(step)

    def clip(self) -> dict[str, Tensor]:
        """Clip gradients, each group by its own limit.

        Returns:
            The norm of the gradients of every group before, as a tensor without dims on
            their device: nothing waits for it.
        """
        return {group.name: group.clip() for group in self._groups}

    def step(self) -> None:
        """Update every parameter that has a gradient."""
        for group in self._groups:
            group.bound.step(group.values)

    def zero_grad(self) -> None:
        """Drop all gradients."""
        for group in self._groups:
            for parameter in group.parameters.values():
                parameter.grad = None

    def rates(self) -> dict[str, float]:
        """Return the learning rate of every group as it is now."""
        return {group.name: group.values["rate"] for group in self._groups}

    def values(self) -> dict[str, dict[str, float]]:
        """Return all numbers of every group as they are now."""
        return {group.name: dict(group.values) for group in self._groups}

    def parameters(self) -> dict[str, dict[str, nn.Parameter]]:
        """Return the parameters of every group by path; `frozen` are those without one."""
        found = {group.name: dict(group.parameters) for group in self._groups}
        return {**found, "frozen": dict(self._frozen)} if self._frozen else found

    def rows(self) -> list[GroupRow]:
        """Return the table as data."""
        rows = [group.row() for group in self._groups]
        if self._frozen:
            count = sum(p.numel() for p in self._frozen.values())
            none = (None, None, None, 0)
            rows.append(GroupRow("frozen", "-", len(self._frozen), count, *none))
        return rows

    def table(self) -> str:
        """Return a printable table: parameters, optimizer, rate, decay, memory of state."""
        return written(self.rows())

    def __str__(self) -> str:
        return self.table()

    def state(self) -> dict[str, Tensor]:
        """Return the state of all optimizers, by `path/slot`.

        Keys depend on paths alone, not on the order of parameters or groups. Tensors are
        the live ones: copy them to keep them. Those of a `DTensor` parameter are DTensors.

        Example:
            >>> layer = torch.nn.Linear(2, 2)
            >>> sorted(groups(layer, {}, rest=SGD(rate=0.1, momentum=0.9)).state())
            ['bias/momentum', 'weight/momentum']
        """
        return {
            f"{path}/{slot}": tensor
            for group in self._groups
            for path, slots in group.bound.slots.items()
            for slot, tensor in slots.items()
        }

    @torch.no_grad()
    def load(self, state: Mapping[str, Tensor]) -> None:
        """Load a state by copying it; its keys and shapes must be those of `state()`.

        A `DTensor` takes a `DTensor` with the same layout, or the whole tensor.

        Raises:
            ArgumentError: Something is missing, unexpected, or has another shape; the message
                names the paths, and nothing has been changed.
        """
        own = self.state()
        missing = [key for key in own if key not in state]
        unexpected = [key for key in state if key not in own]
        other = [
            f"`{key}` is {tuple(state[key].shape)} instead of {tuple(own[key].shape)}"
            for key in own
            if key in state and own[key].shape != state[key].shape
        ]
        problems = [
            *_said("missing", missing, unexpected, len(own)),
            *_said("unexpected", unexpected, missing, len(state)),
            *other[:_SHOWN],
        ]
        if problems:
            raise ArgumentError(
                f"this is not the state of these optimizers: {'; '.join(problems)}"
            )
        for key, tensor in own.items():
            _fill(tensor, state[key])


def _said(what: str, keys: list[str], others: list[str], total: int) -> list[str]:
    if not keys:
        return []
    shown = [f"`{key}`{near(key, others, ' (near `{}`)', cutoff=0.8)}" for key in keys[:_SHOWN]]
    more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
    return [f"{what} {', '.join(shown)}{more} ({len(keys)} of {total})"]


def _fill(target: Tensor, source: Tensor) -> None:
    if hasattr(target, "to_local") and not hasattr(source, "to_local"):
        from torch.distributed.tensor import distribute_tensor

        source = distribute_tensor(
            source.to(target.device),
            target.device_mesh,  # pyright: ignore[reportAttributeAccessIssue]
            target.placements,  # pyright: ignore[reportAttributeAccessIssue]
            src_data_rank=None,
        )
    local_part(target).copy_(local_part(source))
