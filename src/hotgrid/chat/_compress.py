"""`compress_model`: the matrices of a model as codes, and what that costs."""

import copy
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn

from hotgrid.errors import ArgumentError
from hotgrid.kernels import CodebookLinear, Target, compress

from ._demo import documentation
from ._eval._text import TextScore, score_rows
from ._generate._sampling import Sampling
from ._generate._single import generate
from ._model._folder import WEIGHTS, LanguageModel
from ._model._gpt import GPT
from ._model._vocabulary import beginning
from ._training._loader import TextEncoder, held_out_rows
from ._training._pretrain import TextData

_FORMS = ("int8", "int4", "pq", "rows")
# Rows of text that columns are weighted by.
_CALIBRATED = 8


@dataclass(frozen=True)
class ModelMeasure:
    """How large, how good and how fast a model is.

    Attributes:
        bytes: The size of its weights as they are stored.
        text: How well it predicts text.
        tokens_per_second: How fast it writes, one sequence at a time.
    """

    bytes: int
    text: TextScore
    tokens_per_second: float


def compress_model(
    language: LanguageModel,
    target: str,
    *,
    rows: Tensor | None = None,
    force: bool = False,
) -> LanguageModel:
    """Return a model with its matrices compressed, and its embeddings in 16 bits.

    Args:
        language: The model; it stays as it is.
        target: A form (`int8`, `int4`, `pq`, `rows`), or what `hotgrid.kernels.compress`
            takes: bits (`4bit`), a size of the matrices (`8MB`) or `error<=0.1`.
        rows: Text as rows of tokens, of shape (rows, length, 2); columns that it makes large
            are coded more exactly.
        force: Accept a larger error than usual.

    Raises:
        ArgumentError: No form meets the target, or the model is compressed already.
    """
    if any(isinstance(each, CodebookLinear) for each in language.model.modules()):
        raise ArgumentError(f"{language.name!r} is compressed already; start from its original")
    form = target if target in _FORMS else None
    if not form:
        _expect_target(target)
    model = copy.deepcopy(language.model).to("cpu", torch.float32).eval()
    if model.config.tied:
        # The embedding stays a table, and the head becomes codes.
        model.head.linear.weight = nn.Parameter(model.embed.weight.detach().clone())
    with torch.no_grad():
        for each in model.modules():
            if isinstance(each, nn.Embedding):
                each.weight.copy_(each.weight.half())
    calibration = None if rows is None else [rows[:_CALIBRATED, :-1, 0]]
    small = compress(
        model,
        None if form else target,
        form,
        calibration,
        force=force,
    )
    card = {**language.card, "compressed": target, "name": f"{language.name}-{target}"}
    if isinstance(figures := card.get("figures"), dict):
        card["figures"] = {f"{name}, uncompressed": each for name, each in figures.items()}
    return LanguageModel(cast("GPT", small), language.encoding, card)


def _expect_target(target: str) -> None:
    try:
        Target.of(target)
    except ArgumentError as problem:
        raise ArgumentError(f"{problem}, or a form: {', '.join(_FORMS)}") from None


def text_rows(
    language: LanguageModel,
    paths: Sequence[str | Path] = (),
    *,
    column: str = "text",
    most_tokens: int = 65_536,
) -> Tensor:
    """Return text as rows of tokens, to calibrate and to measure with.

    Args:
        language: The model, for its vocabulary and its context.
        paths: The text; by default Python's documentation.
        column: The key or column that holds it.
        most_tokens: Text beyond this is not read.

    Raises:
        ArgumentError: There is no text, or `most_tokens` is below 1.
    """
    if most_tokens < 1:
        raise ArgumentError(f"`most_tokens` must be at least 1, got {most_tokens}")
    context = language.model.config.context
    with tempfile.TemporaryDirectory() as folder:
        if not paths:
            file = Path(folder) / "text.jsonl"
            texts = documentation(8 * most_tokens)
            file.write_text("".join(json.dumps({"text": each}) + "\n" for each in texts))
            paths, column = [file], "text"
        data = TextData(paths, column=column, hold_out=0.0)
        data.expect_text()
        encode = TextEncoder(language.encoding)
        return held_out_rows(
            data.shards(paths),
            encode,
            language.encoding,
            context=context,
            most=max(2, most_tokens // context),
        )


def measure(language: LanguageModel, rows: Tensor, folder: Path) -> ModelMeasure:
    """Measure a model that is in a folder.

    Args:
        language: The model.
        rows: Text as rows of tokens, of shape (rows, length, 2).
        folder: Where its weights are.
    """
    score = score_rows(language, rows)
    size = (folder / WEIGHTS).stat().st_size
    return ModelMeasure(size, score, writing_speed(language))


def writing_speed(language: LanguageModel, *, tokens: int = 64) -> float:
    """Return how many tokens a second the model writes, one sequence at a time."""
    start = [beginning(language.encoding)]
    best = 0.0
    for seed in range(3):
        # Several seeds: some replies end early.
        how = Sampling(temperature=1.0, max_tokens=tokens, seed=seed)
        began = time.perf_counter()
        made = sum(len(piece.tokens) for piece in generate(language, start, how))
        best = max(best, made / (time.perf_counter() - began))
    return best
