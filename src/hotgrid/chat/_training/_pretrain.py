"""`pretrain`: from text to a model."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hotgrid.chat._model._config import GPTConfig
from hotgrid.chat._model._folder import LanguageModel, about, save_model
from hotgrid.chat._model._gpt import GPT
from hotgrid.chat._model._recipe import Recipe
from hotgrid.chat._model._vocabulary import beginning
from hotgrid.cluster import Communicator, world
from hotgrid.data import Shards
from hotgrid.errors import ArgumentError
from hotgrid.tokens import Encoding, save_huggingface

from ._loader import HeldOutRows, TextBatches, TextEncoder, held_out_rows
from ._optimizer import optimizers
from ._run import FINISHED, RunSettings, Work, carry_out, digest


@dataclass(frozen=True)
class TextData:
    """Text to train on, and text that is held out.

    Args:
        paths: Files, folders and globs, as `hotgrid.data.Shards` reads them.
        column: The key or column that holds the text.
        separator: What separates documents in a text file.
        hold_out: The share of passages that is held out for evaluation; 0 for no evaluation.
        valid: Files to evaluate on instead.
        valid_tokens: Evaluate on about this many tokens.
        threads: The most threads that encode.
    """

    paths: Sequence[str | Path]
    column: str = "text"
    separator: str | None = None
    hold_out: float = 0.02
    valid: Sequence[str | Path] = ()
    valid_tokens: int = 131_072
    threads: int | None = None

    def shards(self, paths: Sequence[str | Path], *, seed: int | None = None) -> Shards:
        """The documents of some files; without a seed in their order."""
        return Shards(
            paths,
            column=self.column,
            separator=self.separator,
            seed=seed or 0,
            shuffle=seed is not None,
        )

    @property
    def held_share(self) -> float:
        """The share of the text that is held out."""
        return 0.0 if self.valid else self.hold_out

    def held_out(self, encoding: Encoding, context: int) -> Tensor | None:
        """Rows to evaluate on, of shape (rows, context + 1, 2); None at a share of 0.

        Raises:
            ArgumentError: There is no text, or none is held out.
        """
        share = self.held_share
        if not share and not self.valid:
            return None
        encode = TextEncoder(encoding, hold_out=share, held=share > 0, threads=self.threads)
        most = max(1, self.valid_tokens // context)
        place = self.valid or self.paths
        rows = held_out_rows(self.shards(place), encode, encoding, context=context, most=most)
        if len(rows):
            return rows
        if self.valid:
            raise ArgumentError(f"there is no text in {_shown(self.valid)}, to evaluate on")
        raise ArgumentError(
            f"no text of {_shown(self.paths)} is held out at a share of {share:g}: choose a "
            "larger share (--hold-out), name files to evaluate on (--valid), or say what "
            "separates documents (--separator)"
        )

    def expect_text(self) -> None:
        """Raise an error if there is nothing to train on.

        Raises:
            ArgumentError: No document has any text.
        """
        for document in self.shards(self.paths).read(epochs=1):
            if isinstance(document.text, str) and document.text.strip():
                return
        raise ArgumentError(f"there is no text in {_shown(self.paths)}")

    def identity(self) -> str:
        """The data's identity for a resumed run: names and sizes of files, and options."""
        files = [*self.shards(self.paths).files]
        files += self.shards(self.valid).files if self.valid else []
        sizes = [(file.name, file.stat().st_size) for file in files]
        options = (self.column, self.separator, self.hold_out, self.valid_tokens)
        return f"{len(files)} files, {digest([sizes, options])}"


def pretrain(
    data: TextData,
    encoding: Encoding,
    recipe: Recipe,
    run: RunSettings,
    *,
    shape: Mapping[str, Any] | None = None,
    card: Mapping[str, Any] | None = None,
) -> LanguageModel:
    """Train a GPT on text.

    Args:
        data: The text.
        encoding: The vocabulary, with the special tokens of a chat.
        recipe: Sizes, steps and rates.
        run: The folder, the device and so on.
        shape: Other options of `GPTConfig`.
        card: What the card of the model says beside its figures.

    Returns:
        The model, which is also written to `model` in the folder of the run.

    Raises:
        ArgumentError: There is no text, sizes do not fit together, memory runs out,
            or the run cannot be resumed.
        UnstableError: The loss is no longer finite; earlier checkpoints stay as they are.
    """
    config = recipe.config(**(shape or {}))
    _expect_sizes(config, encoding, recipe)
    data.expect_text()
    ranks = world(run.where())
    card = {
        "name": Path(run.folder).name,
        "data": [str(Path(each).name) for each in data.paths],
        "tuned": False,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "recipe": dict(recipe.values),
        **(card or {}),
    }
    work = _work(data, encoding, recipe, run, config, card, ranks)
    outcome = carry_out(work, run, ranks)
    figures = {name: each for name, each in outcome.values.items() if name.startswith("valid/")}
    figures["step"] = outcome.step
    made = LanguageModel(
        work.model.eval(), encoding, {**card, "figures": figures}, Path(run.folder)
    )
    if ranks.rank == 0 and outcome.why == "finished":
        save_model(Path(run.folder) / FINISHED, made)
    return made


def _expect_sizes(config: GPTConfig, encoding: Encoding, recipe: Recipe) -> None:
    if encoding.n_vocab > config.vocabulary:
        raise ArgumentError(
            f"the vocabulary {encoding.name!r} has {encoding.n_vocab:,} tokens, the model "
            f"{config.vocabulary:,}"
        )
    if recipe["batch_tokens"] % recipe["context"]:
        raise ArgumentError(
            f"`batch_tokens` {recipe['batch_tokens']:,} is not a multiple of `context` "
            f"{recipe['context']:,}"
        )


def _work(
    data: TextData,
    encoding: Encoding,
    recipe: Recipe,
    run: RunSettings,
    config: GPTConfig,
    card: Mapping[str, Any],
    ranks: Communicator,
) -> Work:
    """The parts of a run: the model, its optimizers, batches and evaluation."""
    rows, accumulate = run.shared(recipe["batch_tokens"] // recipe["context"], ranks.size)
    bos = beginning(encoding)
    valid = data.held_out(encoding, config.context)
    torch.manual_seed(run.seed)
    model = GPT(config).to(run.where())
    batches = TextBatches(
        data.shards(data.paths, seed=run.seed),
        TextEncoder(encoding, hold_out=data.held_share, threads=data.threads),
        encoding,
        rows=rows,
        context=config.context,
        isolate=run.isolate,
        rank=ranks.rank,
        ranks=ranks.size,
        seed=run.seed,
    )
    return Work(
        model,
        optimizers(model, recipe, ranks=ranks if ranks.size > 1 else None),
        batches,
        None if valid is None else HeldOutRows(valid, bos, rows, isolate=run.isolate),
        recipe["steps"],
        accumulate,
        {
            "shape": config.to_json(),
            "recipe": json.dumps(dict(recipe.values)),
            "data": data.identity(),
            "isolate": str(run.isolate),
            "vocabulary": digest(tokenizer_bytes(encoding)),
        },
        about(config, card),
        encoding,
        tokenizer_bytes(encoding),
    )


def tokenizer_bytes(encoding: Encoding) -> bytes:
    """The contents of `tokenizer.json`."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tokenizer.json"
        save_huggingface(encoding, file)
        return file.read_bytes()


def _shown(paths: Sequence[str | Path]) -> str:
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"`{paths[0]}`{more}" if paths else "no file"
