"""The groups of parameters that a recipe means."""

import re
from typing import Literal

import torch
from torch import Tensor, nn

from hotgrid.nn import Query
from hotgrid.tensors._torch_private import foreach_mul_
from hotgrid.train import (
    SGD,
    AdamW,
    CosineDecay,
    Groups,
    LinearDecay,
    Muon,
    OptimizerSpec,
    StepSchedule,
    Warmup,
    freeze,
    groups,
    local_part,
)
from hotgrid.vision._models._model import VisionModel

from ._recipe import VisionRecipe


def recipe_schedule(recipe: VisionRecipe, steps: int) -> StepSchedule:
    """The shape of the learning rate over a run, 1 at its highest."""
    rising = round(steps * recipe.warmup / recipe.epochs)
    kind = CosineDecay if recipe.shape == "cosine" else LinearDecay
    falling = kind(steps=max(1, steps - rising), end=recipe.end)
    return Warmup(steps=rising).then(falling) if rising else falling


def recipe_optimizer(model: VisionModel, recipe: VisionRecipe, steps: int) -> Groups:
    """Divide the parameters of a model into groups, as a recipe says.

    Vectors have no weight decay, and what the model names. With `layer_decay` every layer has
    a rate of its own. Frozen parameters stay so.
    """
    if recipe.freeze:
        freeze(model, recipe.freeze)
    shape = recipe_schedule(recipe, steps)
    depths = model.layer_ids()
    deepest = max(depths.values())
    members: dict[tuple[int, str], list[str]] = {}
    norms = _norm_parameters(model) if recipe.norm_rate != 1 else set[str]()
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            depth = depths[name] if recipe.layer_decay != 1 else deepest
            kind = "norms" if name in norms else _kind(model, name, parameter, recipe)
            members.setdefault((depth, kind), []).append(name)
    chosen: dict[str | Query, OptimizerSpec | Literal["frozen"]] = {}
    for (depth, kind), names in sorted(members.items()):
        share = recipe.layer_decay ** (deepest - depth)
        layer = f", layer {depth}" if recipe.layer_decay != 1 else ""
        share *= recipe.norm_rate if kind == "norms" else 1.0
        spec = _spec(recipe, kind, recipe.highest * share * shape, f"{kind}{layer}")
        chosen[f"//Param[matches(@path, '^({'|'.join(map(re.escape, names))})$')]"] = spec
    made = groups(model, chosen, rest="frozen")
    return _ClippedTogether(made, recipe.clip) if recipe.clip else made


def _norm_parameters(model: VisionModel) -> set[str]:
    norms = (nn.BatchNorm2d, nn.GroupNorm, nn.LayerNorm)
    return {
        f"{path}.{name}"
        for path, module in model.named_modules()
        if isinstance(module, norms)
        for name, _ in module.named_parameters(recurse=False)
    }


def _kind(model: VisionModel, name: str, parameter: Tensor, recipe: VisionRecipe) -> str:
    if not model.decays(name, parameter):
        return "vectors"
    outer = name.startswith((f"{model.head_name}.", f"{model.first_name}."))
    return "matrices" if recipe.optimizer == "muon" and not outer else "weights"


def _spec(recipe: VisionRecipe, kind: str, rate: StepSchedule, name: str) -> OptimizerSpec:
    # What a step takes off is rate times decay.
    parts = {"vectors": 0.0, "norms": 1 / recipe.norm_rate}
    decay = recipe.decay * parts.get(kind, 1.0)
    if kind == "matrices":
        # Rates of AdamW serve with this scale.
        return Muon(rate=rate, decay=decay, momentum=recipe.momentum, scale="rms", name=name)
    if recipe.optimizer == "sgd":
        return SGD(rate=rate, decay=decay, momentum=recipe.momentum, nesterov=True, name=name)
    return AdamW(rate=rate, decay=decay, betas=recipe.betas, name=name)


class _ClippedTogether(Groups):
    """Groups whose gradients are clipped by the norm of all of them, as recipes mean it."""

    def __init__(self, inner: Groups, limit: float) -> None:
        vars(self).update(vars(inner))
        self._limit = limit

    def clip(self) -> dict[str, Tensor]:
        """Clip all gradients together; return the norm of each group before."""
        norms = super().clip()
        whole = torch.linalg.vector_norm(torch.stack([*norms.values()]))
        share = torch.clamp(self._limit / (whole + 1e-6), max=1.0)
        gradients = [
            local_part(parameter.grad)
            for name, members in self.parameters().items()
            for parameter in members.values()
            if name != "frozen" and parameter.grad is not None
        ]
        foreach_mul_(gradients, share)
        return norms
