"""The optimizers of a GPT: Muon for the matrices of its blocks, AdamW for the rest."""

from collections.abc import Callable
from typing import Literal

from hotgrid.chat._model._gpt import GPT
from hotgrid.chat._model._recipe import Recipe
from hotgrid.cluster import Communicator
from hotgrid.nn import Query
from hotgrid.train import WSD, AdamW, CosineDecay, Groups, Muon, OptimizerSpec, groups

# Of the momentum of Muon: its rise and its fall at the end.
_RISE, _LOW, _HIGH, _LAST = 400, 0.85, 0.97, 0.90


def optimizers(model: GPT, recipe: Recipe, *, ranks: Communicator | None = None) -> Groups:
    """Divide the parameters of a GPT among optimizers, as a recipe says.

    Args:
        model: The model.
        recipe: Its rates, its decay, and how many steps they are for.
        ranks: The ranks that share the work of Muon.
    """
    steps = recipe["steps"]
    shape = WSD(
        warmup=recipe["warmup"],
        stable=max(0, steps - recipe["warmup"] - recipe["warmdown"]),
        decay=recipe["warmdown"],
        end=recipe["final"],
    )

    def adamw(name: str, rate: float, betas: tuple[float, float], decay: float = 0.0) -> AdamW:
        return AdamW(rate=rate * shape, betas=betas, eps=1e-10, decay=decay, name=name)

    muon = Muon(
        rate=recipe["matrix_rate"] * shape,
        momentum=_momentum(steps, recipe["warmdown"]),
        decay=recipe["decay"] * CosineDecay(steps=steps),
        variance=0.9,
        cautious=True,
        equilibrate=True,
        renormalise=True,
        name="matrices",
    )
    root, config = type(model).__name__, model.config
    # A table that is also the head changes at the head's pace.
    table = recipe["head_rate" if config.tied else "embedding_rate"]
    chosen: dict[str | Query, OptimizerSpec | Literal["frozen"]] = {
        f"{root}/*[@name='h']//Linear/*[@rank=2]": muon,
        f"{root}/*[@name='embed']": adamw("embedding", table, (0.8, 0.995), 0.001),
    }
    if not config.tied:
        chosen[f"{root}/*[@name='head']"] = adamw(
            "head", recipe["head_rate"], (0.8, 0.96), 0.01
        )
    if config.value_embeddings:
        rate = recipe["embedding_rate"] / 2
        chosen[f"{root}/*[@name='h']//Embedding"] = adamw("values", rate, (0.8, 0.995), 0.01)
    if config.mixing:
        scalar = recipe["scalar_rate"]
        chosen[f"{root}/*[@name='stream_gain']"] = adamw(
            "stream", scalar / 100, (0.8, 0.95), 0.05
        )
        chosen[f"{root}/*[@name='embed_gain']"] = adamw("mixing", scalar, (0.96, 0.95))
    return groups(model, chosen, rest=adamw("rest", 0.2, (0.8, 0.95)), ranks=ranks)


def _momentum(steps: int, warmdown: int) -> Callable[[int], float]:
    rise, start = min(_RISE, steps), steps - warmdown

    def at(step: int) -> float:
        if step >= start and warmdown:
            return _HIGH + (_LAST - _HIGH) * min(1.0, (step - start) / warmdown)
        return _LOW + (_HIGH - _LOW) * min(1.0, step / rise)

    return at
