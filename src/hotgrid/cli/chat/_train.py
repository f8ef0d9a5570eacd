"""`hotgrid chat train`: from text to a model."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.table import Table

from hotgrid.cli._terminal import Terminal

from ._options import Data, RecipeOptions, RunOptions, TextOptions

_TEXT, _RECIPE, _RUN = TextOptions(), RecipeOptions(), RunOptions()


def train(
    *data: Data,
    depth: int = 4,
    tokenizer: str | None = None,
    llama: bool = False,
    tied: bool = False,
    window: str | None = None,
    value_embeddings: bool = False,
    mixing: bool = False,
    samples: Annotated[int, Parameter(help="Texts to show at the end; by default 3.")] = 3,
    recipe: RecipeOptions = _RECIPE,
    run: RunOptions = _RUN,
    text: TextOptions = _TEXT,
) -> None:
    """Train a model on text.

    Args:
        data: Files, folders and globs of text.
        depth: Layers; other numbers follow from it. By default 4.
        tokenizer: A tokenizer.json or the name of an encoding; by default hotgrid_32k.
        llama: Make a model that the layout of Llama can hold.
        tied: Use the embedding's weights for the head.
        window: A letter a layer, repeated: L sees all tokens, S the last few.
        value_embeddings: Add an embedding of the token to the values of every other layer.
        mixing: Mix the embedding and the middle of the network into the stream.
        samples: Texts to show at the end; by default 3.
        recipe: Overrides of values derived from the depth.
        run: Options of the run.
        text: The choice of text.
    """
    from hotgrid.chat import GPTConfig, find_vocabulary, pretrain
    from hotgrid.chat._training._samples import expect_samples

    expect_samples(samples)
    encoding = find_vocabulary(tokenizer)
    chosen = recipe.recipe(depth, encoding.n_vocab)
    shape: dict[str, Any] = {"tied": tied}
    if llama:
        plain = GPTConfig.llama()
        names = ("activation", "norm", "rotary_base", "qk_norm", "qk_gain", "cap", "embed_norm")
        shape |= {name: getattr(plain, name) for name in names}
    shape |= {"value_embeddings": value_embeddings, "mixing": mixing}
    shape |= {} if window is None else {"window": window}
    settings, source = run.settings(), text.data(data)
    console = Terminal(highlight=False)
    first = settings.first_rank()
    if first:
        console.for_tables().print(recipe_table(chosen.rows()))
    made = pretrain(source, encoding, chosen, settings, shape=shape)
    if not first:
        return
    figures = made.card["figures"]
    if was_stopped(console, run.out, figures["step"]):
        return
    if (bits := figures.get("valid/bits per byte")) is not None:
        console.print(f"held-out text: {bits:.4f} bits per byte, step {figures['step']:,}")
    console.print(f"model: {run.out / 'model'}", soft_wrap=True, markup=False)
    show_samples(console, made, samples)


def was_stopped(console: Terminal, out: Path, step: int) -> bool:
    """Say so if a run was stopped before its end, where it writes its model."""
    if (out / "model").is_dir():
        return False
    console.print(f"stopped after step {step:,}; the same command with --resume continues")
    return True


def recipe_table(rows: list[tuple[str, str, str]]) -> Table:
    """Every value of the recipe, and its source."""
    table = Table("value", "", "from", box=None, pad_edge=False)
    table.columns[1].justify = "right"
    for row in rows:
        table.add_row(*row)
    return table


def show_samples(console: Terminal, language: Any, count: int) -> None:
    """Print texts of the model."""
    from hotgrid.chat import samples

    for text in samples(language, count):
        console.print(f"— {text}", soft_wrap=True, markup=False)
