"""Options that several commands of `hotgrid chat` have."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from hotgrid.errors import ArgumentError

if TYPE_CHECKING:
    from hotgrid.chat import Recipe, RunSettings, TextData

Data = Annotated[str, Parameter(help="Files, folders and globs of text.")]


def _help(text: str) -> Parameter:
    return Parameter(help=text)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """The text to read."""

    column: Annotated[str, _help("Key or column that holds the text; by default text.")] = (
        "text"
    )
    separator: Annotated[
        str | None, _help("The separator of documents in .txt and .md files.")
    ] = None

    def data(self, paths: tuple[str, ...]) -> TextData:
        """All of the text.

        Raises:
            ArgumentError: No file is named.
        """
        from hotgrid.chat import TextData

        if not paths:
            raise ArgumentError("name files or folders of text, such as `books/`")
        separator = self.separator
        if separator is not None:
            separator = separator.replace("\\n", "\n").replace("\\t", "\t")
        return TextData(paths, column=self.column, separator=separator, hold_out=0.0)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TextOptions(ReadOptions):
    """The text to read, and the part of it to hold out."""

    hold_out: Annotated[
        float, _help("Share of passages that is held out; by default 0.02.")
    ] = 0.02
    valid: Annotated[
        tuple[str, ...],
        Parameter(consume_multiple=True, help="Files to evaluate on instead."),
    ] = ()
    threads: Annotated[int | None, _help("Threads that encode; by default all.")] = None

    def data(self, paths: tuple[str, ...]) -> TextData:
        """The text, of which a part is held out.

        Raises:
            ArgumentError: No file is named.
        """
        return replace(
            ReadOptions.data(self, paths),
            hold_out=self.hold_out,
            valid=self.valid,
            threads=self.threads,
        )


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RecipeOptions:
    """Values that follow from the depth unless they are given."""

    context: Annotated[int | None, _help("Tokens of a row.")] = None
    size: Annotated[int | None, _help("Width of the model.")] = None
    heads: Annotated[int | None, _help("Heads of attention.")] = None
    kv_heads: Annotated[int | None, _help("Heads of keys and values.")] = None
    ratio: Annotated[float | None, _help("Tokens to train on for each parameter.")] = None
    tokens: Annotated[int | None, _help("Tokens to train on.")] = None
    batch_tokens: Annotated[int | None, _help("Tokens of a step.")] = None
    steps: Annotated[int | None, _help("Steps to make.")] = None
    matrix_rate: Annotated[float | None, _help("Learning rate of matrices, for Muon.")] = None
    embedding_rate: Annotated[float | None, _help("Learning rate of the embedding.")] = None
    head_rate: Annotated[float | None, _help("Learning rate of the head.")] = None
    scalar_rate: Annotated[float | None, _help("Learning rate of gains.")] = None
    decay: Annotated[float | None, _help("Weight decay of matrices.")] = None
    warmup: Annotated[int | None, _help("Steps in which rates rise.")] = None
    warmdown: Annotated[int | None, _help("Steps in which rates fall, at the end.")] = None
    final: Annotated[float | None, _help("Final learning rate, as a fraction of the peak.")] = (
        None
    )

    def recipe(self, depth: int, vocabulary: int) -> Recipe:
        """The recipe."""
        from hotgrid.chat import Recipe

        return Recipe.of(depth, vocabulary=vocabulary, **vars(self))


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of a run."""

    out: Annotated[Path, _help("Folder of the run; by default out/chat.")] = Path("out/chat")
    resume: Annotated[bool, _help("Continue the run in the folder.")] = False
    device: Annotated[str | None, _help("cpu, cuda or cuda:N; by default a GPU.")] = None
    precision: Annotated[
        Literal["float32", "bfloat16"], _help("The type of arithmetic; by default float32.")
    ] = "float32"
    rows: Annotated[int | None, _help("Rows computed at once; fewer need less memory.")] = None
    compile: Annotated[bool, _help("Compile the model; the first step takes longer.")] = False
    average: Annotated[
        float | None, _help("Decay of a moving average of the weights, such as 0.999.")
    ] = None
    isolate: Annotated[bool, _help("Attend only within a document.")] = False
    evaluate_every: Annotated[int | None, _help("Evaluate every N steps.")] = None
    save_every: Annotated[int | None, _help("Save every N steps.")] = None
    log_every: Annotated[int | None, _help("Show metrics every N steps.")] = None
    seed: Annotated[int, _help("Seed for weights and data order; by default 0.")] = 0

    def settings(self, *, isolate: bool = False) -> RunSettings:
        """The settings of the run."""
        from hotgrid.chat import RunSettings

        return RunSettings(
            folder=self.out,
            resume=self.resume,
            device=self.device,
            precision=self.precision,
            rows=self.rows,
            compiled=self.compile,
            average=self.average,
            isolate=self.isolate or isolate,
            evaluate_every=self.evaluate_every,
            save_every=self.save_every,
            log_every=self.log_every,
            seed=self.seed,
        )
