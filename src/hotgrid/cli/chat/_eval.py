"""`hotgrid chat eval`: measure a model."""

from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.table import Table

from hotgrid.cli._terminal import Terminal

_Paths = Annotated[tuple[str, ...], Parameter(consume_multiple=True)]


def evaluate(
    model: Path | None = None,
    *,
    text: _Paths = (),
    choices: _Paths = (),
    answers: _Paths = (),
    samples: int | None = None,
    prompt: str = "",
    limit: int | None = None,
    most_tokens: int = 1_000_000,
    max_tokens: int = 256,
    batch: int = 8,
    column: str = "text",
    device: str = "cpu",
    json: bool = False,
) -> None:
    """Evaluate a model.

    Args:
        model: A model folder, a run, or a folder in the layout of Llama; by default the one
            that comes with hotgrid.
        text: Text to predict: bits per byte and perplexity.
        choices: JSON lines with question, choices and answer: the likeliest choice counts.
        answers: JSON lines with question and answer, such as GSM8K: exact answers count.
        samples: Texts to show; by default 3 if nothing else is asked for.
        prompt: How samples begin.
        limit: The most questions of a kind.
        most_tokens: The most tokens of text; by default 1,000,000.
        max_tokens: The most tokens of an answer; by default 256.
        batch: How many rows or questions at once; by default 8.
        column: Key or column that holds the text; by default text.
        device: Where to compute; by default cpu.
        json: Print one JSON object instead of a table.
    """
    from hotgrid.chat import (
        TextData,
        load_model,
        samples as sampled,
        score_answers,
        score_choices,
        score_text,
    )
    from hotgrid.chat._talk import placed
    from hotgrid.chat._training._samples import expect_samples

    expect_samples(samples or 0)
    language = load_model(model, device=placed(device))
    found: dict[str, Any] = {"model": language.name}
    if text:
        data = TextData(text, column=column, hold_out=0.0)
        score = score_text(language, data, batch=batch, most_tokens=most_tokens)
        found["text"] = asdict(score)
    if choices:
        found["choices"] = asdict(score_choices(language, choices, limit=limit, batch=batch))
    if answers:
        answered = score_answers(
            language, answers, limit=limit, batch=batch, max_tokens=max_tokens
        )
        found["answers"] = asdict(answered)
    count = (0 if len(found) > 1 else 3) if samples is None else samples
    if count:
        found["samples"] = sampled(language, count, prompt=prompt)
    console = Terminal(highlight=False)
    if json:
        console.out(dumps(found, indent=2, ensure_ascii=False), highlight=False)
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    for kind, values in found.items():
        if isinstance(values, dict):
            for name, value in values.items():
                if name != "examples":
                    shown = f"{value:.4f}" if isinstance(value, float) else f"{value:,}"
                    table.add_row(f"{kind}, {name.replace('_', ' ')}", shown)
    console.print(language.name, markup=False)
    console.for_tables().print(table)
    for each in found.get("samples", ()):
        console.print(f"— {each}", soft_wrap=True, markup=False)
