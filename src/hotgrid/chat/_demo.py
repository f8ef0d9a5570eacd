"""`demo`: a tiny model, trained in minutes on text that every machine with Python has."""

import ast
import contextlib
import json
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from hotgrid.errors import ArgumentError, MissingPartError
from hotgrid.files import whole_file

from ._model._folder import LanguageModel
from ._model._gpt import GPT
from ._model._recipe import Recipe
from ._training._optimizer import optimizers
from ._training._pretrain import TextData, pretrain
from ._training._run import RunSettings
from ._training._tokenizer import train_vocabulary

_LEAST = 80
_VOCABULARY, _CONTEXT, _BATCH = 1024, 128, 2048
# For so few steps rates are higher than for long runs.
_RATES = {"matrix_rate": 0.02, "embedding_rate": 0.2, "head_rate": 0.01}
_OTHERS = ("test", "tests", "site-packages", "dist-packages", "idlelib", "lib2to3", "encodings")


def documentation(most: int = 1_200_000) -> list[str]:
    """Return texts of the documentation that comes with Python, up to a number of characters.

    The topics of `help()`, and the docstrings of the standard library: both are under the
    licence of Python.

    Raises:
        MissingPartError: This Python has neither of them.
    """
    found: list[str] = []
    left = most
    for text in _texts():
        found.append(text)
        left -= len(text)
        if left <= 0:
            break
    if left > most - 50_000:
        raise MissingPartError(
            "this Python has no documentation installed; `hotgrid chat train` takes any text"
        )
    return found


def _texts() -> Iterator[str]:
    with contextlib.suppress(ImportError):
        from pydoc_data.topics import topics

        yield from topics.values()
    library = Path(sysconfig.get_paths()["stdlib"])
    for file in sorted(library.rglob("*.py")):
        if not set(_OTHERS) & set(file.relative_to(library).parts):
            yield from _docstrings(file)


def _docstrings(file: Path) -> Iterator[str]:
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, OSError):
        return
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        text = ast.get_docstring(node) if isinstance(node, kinds) else None
        if text and len(text) >= _LEAST:
            yield text


def demo(
    folder: str | Path,
    *,
    minutes: float = 2.0,
    depth: int = 4,
    size: int = 128,
    device: str = "cpu",
    seed: int = 0,
    show: bool | None = None,
) -> LanguageModel:
    """Train a tiny model on Python's documentation, for about `minutes` minutes.

    Args:
        folder: The folder of the run.
        minutes: How long to train; a few steps that are timed decide how many are made.
        depth: Layers.
        size: Width.
        device: Where to compute.
        seed: The seed of weights and order.
        show: Show progress on standard error.

    Raises:
        ArgumentError: `minutes` is not above 0.
        MissingPartError: This Python comes without documentation, or the native core is not
            built.
    """
    if minutes <= 0:
        raise ArgumentError(f"`minutes` must be above 0, got {minutes:g}")
    text = Path(folder) / "text.jsonl"
    with whole_file(text) as aside:
        lines = (json.dumps({"text": each}) for each in documentation())
        aside.write_text("\n".join(lines) + "\n")
    data = TextData([text], hold_out=0.05, valid_tokens=16_384)
    encoding = train_vocabulary(data, _VOCABULARY, name="demo")
    numbers = {"size": size, "heads": max(1, size // 64), "context": _CONTEXT, **_RATES}
    numbers |= {"vocabulary": encoding.n_vocab, "batch_tokens": _BATCH}
    pace = _seconds_per_step(Recipe.of(depth, steps=10, **numbers), device)
    steps = max(10, int(minutes * 60 / pace))
    run = RunSettings(
        folder,
        device=device,
        rows=_BATCH // _CONTEXT,
        evaluate_every=max(1, steps // 5),
        save_every=max(1, steps // 2),
        seed=seed,
        show=show,
    )
    card = {
        "name": "demo",
        "data": ["documentation of Python's standard library"],
        "licences": ["Python Software Foundation License"],
    }
    return pretrain(data, encoding, Recipe.of(depth, steps=steps, **numbers), run, card=card)


def _seconds_per_step(recipe: Recipe, device: str) -> float:
    """How long a step takes, the best of a few."""
    model = GPT(recipe.config()).to(device)
    groups = optimizers(model, recipe)
    shape = (recipe["batch_tokens"] // recipe["context"], recipe["context"])
    tokens = torch.randint(recipe["vocabulary"], shape, device=device)
    found = []
    for step in range(4):
        began = time.perf_counter()
        groups.apply(step)
        model(tokens, targets=tokens).backward()
        groups.step()
        groups.zero_grad()
        found.append(time.perf_counter() - began)
    return min(found)
