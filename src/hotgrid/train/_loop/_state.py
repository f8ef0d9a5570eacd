"""Everything a checkpoint of a training run holds, and how it is restored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from hotgrid.cluster import Communicator
from hotgrid.config import logger
from hotgrid.errors import ArgumentError, DamagedError
from hotgrid.store import Checkpoints, Shard

from ._average import Average
from ._optimizer import GroupedOptimizer
from ._placement import cut_like, piece
from ._random import random_state, seed_all, set_random_state


class TrainingState:
    """The tensors of a run: module, optimizer, average, and random numbers of every rank."""

    def __init__(
        self,
        module: nn.Module,
        optimizer: GroupedOptimizer,
        average: Average | None,
        ranks: Communicator,
        device: torch.device,
        seed: int,
    ) -> None:
        self._module, self._optimizer, self._average = module, optimizer, average
        self._ranks, self._device, self._seed = ranks, device, seed

    def tensors(self) -> dict[str, Tensor | Shard]:
        """The tensors to save, by name."""
        found = {f"model/{path}": piece(x) for path, x in self._own().items()}
        for name, x in self._optimizer.state().items():
            found[f"optimizer/{name}"] = piece(x)
        if self._average:
            for path, x in self._average.tensors.items():
                found[f"average/{path}"] = piece(x, self._average.live[path])
        for name, x in random_state(self._device).items():
            found[f"random/{self._ranks.rank}/{name}"] = x
        return found

    def slots(self) -> dict[str, Any]:
        """The names, dtypes and shapes of the state of the optimizer, of all ranks."""
        mine = {
            name: [str(x.dtype).removeprefix("torch."), list(x.shape)]
            for name, x in self._optimizer.state().items()
        }
        found: dict[str, Any] = {}
        for each in self._ranks.gather_json(mine) if self._ranks.size > 1 else [mine]:
            found |= each
        return found

    def load(self, checkpoints: Checkpoints) -> tuple[int, dict[str, Any]]:
        """Go back to the newest checkpoint that is good.

        Returns:
            Its step, and the data saved with the tensors.

        Raises:
            StoreError: There is no checkpoint.
            ArgumentError: The checkpoint is of another module or optimizer.
        """
        checkpoints.wait()
        steps: list[int | None] = self._ranks.gather_json(checkpoints.steps())[0]
        # Where there is none, `_load` says so.
        *older, oldest = reversed(steps or [None])
        for step in older:
            try:
                return self._load(checkpoints, step)
            except DamagedError as problem:
                if self._ranks.rank == 0:
                    logger("train").warning("step %d is skipped: %s", step, problem)
        return self._load(checkpoints, oldest)

    def _load(self, checkpoints: Checkpoints, step: int | None) -> tuple[int, dict[str, Any]]:
        found = checkpoints.load(step, ())
        extra = found.extra
        if not isinstance(extra.get("optimizer"), dict) or "position" not in extra:
            raise DamagedError(
                f"step {found.step} was not saved by a `Trainer`; move the checkpoints out "
                "of the folder, or use another folder"
            )
        own = self._own()
        wanted: dict[str, Any] = {f"model/{path}": piece(x) for path, x in own.items()}
        if self._average:
            for path, x in self._average.tensors.items():
                wanted[f"average/{path}"] = piece(x, self._average.live[path])
        slots = {name: self._slot(name, *spec) for name, spec in extra["optimizer"].items()}
        wanted |= {f"optimizer/{name}": part for name, (_, part) in slots.items()}
        mine = f"random/{self._ranks.rank}/"
        known = self._ranks.rank < extra["ranks"]
        if known:
            wanted |= dict.fromkeys(mine + name for name in extra["random"])
        loaded = checkpoints.load(found.step, wanted, early=True)
        self._optimizer.load(
            {
                name: loaded.tensors[f"optimizer/{name}"]
                if like is None
                else cut_like(loaded.tensors[f"optimizer/{name}"], like)
                for name, (like, _) in slots.items()
            }
        )
        if known:
            set_random_state(
                {n: loaded.tensors[mine + n] for n in extra["random"]}, self._device
            )
        else:
            # A rank that did not exist: there is no state of it to restore.
            seed_all(self._seed + found.step, self._ranks.rank)
        return loaded.step, extra

    def random_names(self) -> list[str]:
        """The names of the generators whose state is saved."""
        return list(random_state(self._device))

    def _own(self) -> dict[str, Tensor]:
        module = self._module
        found = module.state_dict(keep_vars=True)
        # By identity: loading fills them in place.
        known = {id(x) for x in (*module.parameters(), *module.buffers())}
        for name, x in found.items():
            if why := _unfit(name, x, id(x) in known):
                raise ArgumentError(f"the state of {type(module).__name__} has `{name}`, {why}")
        saved = {id(x) for x in found.values()}
        for path, parameter in module.named_parameters():
            if parameter.requires_grad and id(parameter) not in saved:
                raise ArgumentError(
                    f"the state of {type(module).__name__} lacks `{path}`, which is trained "
                    "and could not be saved; return it from `state_dict`, or freeze it"
                )
        return found

    def _slot(self, name: str, kind: str, shape: list[int]) -> tuple[Tensor | None, Any]:
        """Where a slot of the optimizer is loaded: the parameter it is cut like, and a part."""
        parameters: Mapping[str, Tensor] = dict(self._module.named_parameters())
        path = name.rpartition("/")[0]
        like = parameters.get(path)
        if like is None or not hasattr(like, "to_local") or list(like.shape) != shape:
            return None, None
        local: Any = like.to_local()  # pyright: ignore[reportAttributeAccessIssue]
        return like, piece(
            local.detach().new_empty(local.shape, dtype=getattr(torch, kind)), like
        )


def _unfit(name: str, value: object, known: bool) -> str:
    """Why a part of the state of a module could not be loaded again; "" if it could."""
    if not isinstance(value, Tensor) or name.rpartition(".")[2] == "_extra_state":
        return "which is no tensor and cannot be saved; keep it in a buffer"
    if not known:
        return (
            "which `state_dict` has computed, so that it could not be loaded again; keep it in "
            "a buffer"
        )
    strides = zip(value.shape, value.stride(), strict=True)
    if any(n > 1 and stride == 0 for n, stride in strides):
        return "an expanded tensor, which could not be loaded again; keep `.contiguous()` of it"
    if value.is_inference():
        return "made in inference mode, which could not be loaded again; keep `.clone()` of it"
    return ""
