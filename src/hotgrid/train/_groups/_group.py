"""One group: parameters, their optimizer, and its numbers."""

import dataclasses
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from hotgrid.cluster import Communicator
from hotgrid.tensors._torch_private import foreach_mul_
from hotgrid.train._optimizers import OptimizerSpec, Value, is_cut, local_part

from ._table import GroupRow
from ._values import GroupValue


class TrainedGroup:
    """Parameters with an optimizer.

    Args:
        name: The name of the group.
        spec: The optimizer.
        parameters: By path; all of them are trained.
        named: The values that names stand for.
        ranks: The ranks that share the work of the optimizer.
    """

    def __init__(
        self,
        name: str,
        spec: OptimizerSpec,
        parameters: Mapping[str, nn.Parameter],
        named: Mapping[str, Value],
        ranks: Communicator,
    ) -> None:
        for path, parameter in parameters.items():
            spec.check(path, parameter)
        self.name, self.spec, self.parameters = name, spec, dict(parameters)
        given = spec.values if spec.clip is None else {**spec.values, "clip": spec.clip}
        self._settings = {
            key: GroupValue(f"`{key}` of the group `{name}`", value, named, zero=key != "clip")
            for key, value in given.items()
        }
        self.values = {key: setting.at(0) for key, setting in self._settings.items()}
        self._moving = {k: each for k, each in self._settings.items() if not each.is_fixed}
        self._cut = any(map(is_cut, parameters.values()))
        self.bound = spec.bind(self.parameters, ranks)

    def apply(self, step: int) -> None:
        """Set every number to its value at a step."""
        for key, setting in self._moving.items():
            self.values[key] = setting.at(step)

    @torch.no_grad()
    def clip(self) -> Tensor:
        """Return the norm of all gradients, and scale them down to `clip` if it is larger."""
        gradients = [p.grad for p in self.parameters.values() if p.grad is not None]
        norm = _norm(gradients, self._cut)
        limit = self.values.get("clip")
        if limit is not None and gradients:
            # As torch does, and without asking the device for the norm.
            share = torch.clamp(limit / (norm + 1e-6), max=1.0)
            for device, parts in _by_device(gradients, self._cut).items():
                foreach_mul_(parts, share.to(device))
        return norm

    def row(self) -> GroupRow:
        """Return the row of the table."""
        slots = [x for each in self.bound.slots.values() for x in each.values()]
        return GroupRow(
            name=self.name,
            optimizer=type(self.spec).__name__,
            tensors=len(self.parameters),
            elements=sum(p.numel() for p in self.parameters.values()),
            rate=self.values["rate"],
            decay=self.values["decay"],
            clip=self.values.get("clip"),
            state_bytes=sum(local_part(x).numel() * x.element_size() for x in slots),
            settings=_settings(self.spec, self.values),
        )


def _settings(spec: OptimizerSpec, values: Mapping[str, float]) -> str:
    """The settings of a spec that have no column in a row: present values and fixed ones."""
    shown = {"rate", "decay", "clip", "name", "implementation", "compiled"}
    fixed = {
        each.name: getattr(spec, each.name)
        for each in dataclasses.fields(spec)
        if each.name not in shown and each.name not in values and each.name != "betas"
    }
    given = {key: value for key, value in values.items() if key not in shown} | fixed
    return ", ".join(f"{key} {value}" for key, value in given.items())


def _norm(gradients: list[Tensor], any_cut: bool) -> Tensor:
    cut = [g for g in gradients if any_cut and is_cut(g)]
    whole = [g for g in gradients if not (any_cut and is_cut(g))]
    norms = [torch.nn.utils.get_total_norm(whole)] if whole else []
    if cut:
        norms.append(torch.nn.utils.get_total_norm(cut).full_tensor())  # pyright: ignore
    if not norms:
        return torch.zeros(())
    return norms[0] if len(norms) == 1 else torch.linalg.vector_norm(torch.stack(norms))


def _by_device(gradients: list[Tensor], any_cut: bool) -> dict[torch.device, list[Tensor]]:
    found: dict[torch.device, list[Tensor]] = {}
    for gradient in gradients:
        mine = local_part(gradient) if any_cut else gradient
        if mine.numel():
            found.setdefault(mine.device, []).append(mine)
    return found
