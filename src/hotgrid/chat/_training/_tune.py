"""`tune`: teach a model to answer."""

import copy
import hashlib
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import torch

from hotgrid.chat._model._folder import LanguageModel, about, save_model
from hotgrid.chat._model._gpt import GPT
from hotgrid.chat._model._recipe import Recipe
from hotgrid.chat._model._vocabulary import beginning
from hotgrid.cluster import Communicator, world
from hotgrid.config import logger
from hotgrid.errors import ArgumentError
from hotgrid.kernels import CodebookLinear
from hotgrid.train import WSD, AdamW, Groups, groups, lora, merge_lora

from ._conversations import ConversationData, ConversationEncoder, survey
from ._loader import HeldOutRows, TextBatches, held_out_rows
from ._optimizer import optimizers
from ._pretrain import tokenizer_bytes
from ._run import FINISHED, RunSettings, Work, carry_out, digest

_ADAPTED = "//Attention//Linear | //MLP//Linear"
# Rates of pretraining are far too large for a model that has learned.
_FULL, _PART = 0.1, 1e-3


@dataclass(frozen=True)
class Tuning:
    """The settings of fine-tuning.

    Args:
        method: `full` trains all parameters, `select` those that a selector names, `lora`
            small matrices beside those of the selector.
        select: A selector, as in `hotgrid.nn.select`; by default all matrices of the blocks.
        rank: The rank of the matrices of `lora`.
        alpha: Strength of `lora`; by default the rank.
        epochs: How often all conversations are read.
        steps: How many steps to make instead.
        batch_tokens: Tokens of a step; by default 8 rows.
        context: Tokens of a row; by default those of the model.
        rate: With `full` a factor of the rates of pretraining, by default 0.1; else the rate
            of AdamW, by default 0.001.

    Raises:
        ArgumentError: Options do not go together.
    """

    method: Literal["full", "select", "lora"] = "full"
    select: str | None = None
    rank: int = 8
    alpha: float | None = None
    epochs: float = 2.0
    steps: int | None = None
    batch_tokens: int | None = None
    context: int | None = None
    rate: float | None = None

    def __post_init__(self) -> None:
        if self.method not in ("full", "select", "lora"):
            raise ArgumentError(f"`method` is {self.method!r}; choose full, select or lora")
        if self.method == "full" and self.select is not None:
            raise ArgumentError("`select` is for the methods select and lora; full trains all")
        if self.method == "select" and self.select is None:
            raise ArgumentError("the method select needs `select`, such as '//MLP//Linear'")
        if self.epochs <= 0:
            raise ArgumentError(f"`epochs` must be above 0, got {self.epochs:g}")


def tune(
    language: LanguageModel, data: ConversationData, run: RunSettings, tuning: Tuning
) -> LanguageModel:
    """Train a model on conversations, of which replies alone count.

    Conversations are packed into rows and do not see each other.

    Args:
        language: The model; it stays as it is.
        data: The conversations.
        run: The folder, the device and so on.
        tuning: What is trained.

    Returns:
        The tuned model, which is also written to `model` in the folder of the run.

    Raises:
        ArgumentError: There is no conversation, the model is compressed, a selector selects
            nothing, or the run cannot be resumed.
        DamagedError: A row is not a conversation.
    """
    if any(isinstance(each, CodebookLinear) for each in language.model.modules()):
        raise ArgumentError(f"{language.name!r} is compressed; fine-tune the original model")
    # In 16 bits most steps would round to no change.
    model = copy.deepcopy(language.model).to(run.where(), torch.float32)
    encoding = language.encoding
    context = tuning.context or model.config.context
    ranks = world(run.where())
    batch = tuning.batch_tokens or 8 * context
    rows, accumulate = run.shared(batch // context, ranks.size)
    total, _, skipped = survey(data, encoding, context)
    if skipped and ranks.rank == 0:
        logger("chat").warning(
            "%d conversations are skipped: no reply begins within %d tokens (--context)",
            skipped,
            context,
        )
    steps = tuning.steps or max(1, math.ceil(tuning.epochs * total / batch))
    torch.manual_seed(run.seed)
    optimizer, adapters = _optimizer(model, tuning, steps, batch, ranks)
    batches = TextBatches(
        data.shards(seed=run.seed),
        ConversationEncoder(encoding, hold_out=data.hold_out, most=context),
        encoding,
        rows=rows,
        context=context,
        isolate=True,
        rank=ranks.rank,
        ranks=ranks.size,
        seed=run.seed,
        rest="drop",
        counts=True,
    )
    card = {
        **language.card,
        "name": Path(run.folder).name,
        "base": language.name,
        "tuned": True,
        "tuned on": [Path(each).name for each in data.paths],
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    asked = {
        "base": _weights_digest(language.model),
        "tuning": str(tuning),
        "data": f"{total} tokens, hold_out {data.hold_out}",
    }
    work = Work(
        model,
        optimizer,
        batches,
        _valid(language, data, context, rows),
        steps,
        accumulate,
        asked,
        about(model.config, card, adapters=adapters),
        encoding,
        tokenizer_bytes(encoding),
    )
    outcome = carry_out(work, run, ranks)
    if adapters:
        merge_lora(model)
    figures = {name: each for name, each in outcome.values.items() if name.startswith("valid/")}
    made = LanguageModel(
        model.requires_grad_(True).eval(),
        encoding,
        {**card, "figures": {**figures, "step": outcome.step}},
        Path(run.folder),
    )
    if ranks.rank == 0 and outcome.why == "finished":
        save_model(Path(run.folder) / FINISHED, made)
    return made


def _optimizer(
    model: GPT, tuning: Tuning, steps: int, batch: int, ranks: Communicator
) -> tuple[Groups, dict[str, object] | None]:
    """The groups, and what `model.json` says of adapters."""
    if tuning.method == "full":
        config = model.config
        plain = Recipe.of(
            config.layers,
            vocabulary=config.vocabulary,
            size=config.size,
            heads=config.heads,
            batch_tokens=batch,
            steps=steps,
        )
        factor = _FULL if tuning.rate is None else tuning.rate
        names = ("matrix_rate", "embedding_rate", "head_rate", "scalar_rate")
        rates = {name: plain[name] * factor for name in names}
        scaled = Recipe({**plain.values, **rates, "decay": 0.0}, plain.given)
        return optimizers(model, scaled, ranks=ranks if ranks.size > 1 else None), None
    rate = _PART if tuning.rate is None else tuning.rate
    warmup = min(20, steps // 10)
    shape = WSD(
        warmup=warmup,
        stable=(steps - warmup) // 2,
        decay=steps - warmup - (steps - warmup) // 2,
    )
    if tuning.method == "select":
        spec = AdamW(rate=rate * shape, name="selected")
        return groups(model, {str(tuning.select): spec}, rest="frozen"), None
    select = tuning.select or _ADAPTED
    lora(model, select, tuning.rank, tuning.alpha)
    spec = AdamW(rate=rate * shape, name="adapters")
    adapted = "//Param[@name='lora_a'] | //Param[@name='lora_b']"
    made = groups(model, {adapted: spec}, rest="frozen")
    return made, {"select": select, "rank": tuning.rank, "alpha": tuning.alpha}


def _valid(
    language: LanguageModel, data: ConversationData, context: int, rows: int
) -> HeldOutRows | None:
    if not data.hold_out:
        return None
    encode = ConversationEncoder(
        language.encoding, hold_out=data.hold_out, held=True, most=context
    )
    found = held_out_rows(
        data.shards(), encode, language.encoding, context=context, most=4 * rows
    )
    if not len(found):
        return None
    bos = beginning(language.encoding)
    return HeldOutRows(found, bos, rows, isolate=True)


def _weights_digest(model: GPT) -> str:
    found = hashlib.blake2b(digest_size=8)
    for name, each in model.state_dict().items():
        found.update(name.encode())
        found.update(each.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    return digest(found.hexdigest())
