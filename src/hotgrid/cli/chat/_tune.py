"""`hotgrid chat tune`: teach a model to answer."""

from pathlib import Path
from typing import Literal

from hotgrid.cli._terminal import Terminal
from hotgrid.errors import ArgumentError

from ._options import Data, RunOptions
from ._train import was_stopped

_RUN = RunOptions()


def tune(
    model: Path,
    *data: Data,
    method: Literal["full", "select", "lora"] = "full",
    select: str | None = None,
    rank: int = 8,
    alpha: float | None = None,
    epochs: float = 2.0,
    steps: int | None = None,
    batch_tokens: int | None = None,
    context: int | None = None,
    rate: float | None = None,
    hold_out: float = 0.02,
    run: RunOptions = _RUN,
) -> None:
    """Fine-tune a model on conversations.

    Args:
        model: A model folder, a run, or a folder in the layout of Llama.
        data: Files of JSON lines or parquet; several are mixed.
        method: What to train: full for all, select for what --select names, lora for small
            matrices added to the weights; by default full.
        select: Parameters or layers to train, such as "//MLP//Linear".
        rank: Rank of the matrices of lora; by default 8.
        alpha: Strength of lora; by default the rank.
        epochs: How often the conversations are read; by default 2.
        steps: Steps to make instead.
        batch_tokens: Tokens of a step; by default 8 rows.
        context: Tokens of a row; by default those of the model.
        rate: Rate of AdamW, by default 0.001; with full a factor of the rates of training, by
            default 0.1.
        hold_out: Share of conversations that is held out; by default 0.02.
        run: The options of the run.
    """
    from hotgrid.chat import ConversationData, Tuning, load_model, tune as tune_model

    if not data:
        raise ArgumentError("name files of conversations, such as `dialogues.jsonl`")
    how = Tuning(method, select, rank, alpha, epochs, steps, batch_tokens, context, rate)
    settings = run.settings()
    language = load_model(model)
    source = ConversationData(data, hold_out)
    console, first = Terminal(highlight=False), settings.first_rank()
    if first:
        total, counted = source.tokens(
            language.encoding, context or language.model.config.context
        )
        console.print(f"{total:,} tokens, {counted:,} of them in replies")
    made = tune_model(language, source, settings, how)
    if not first:
        return
    figures = made.card["figures"]
    if was_stopped(console, run.out, figures["step"]):
        return
    if (loss := figures.get("valid/loss")) is not None:
        console.print(f"held-out replies: loss {loss:.4f}, step {figures['step']:,}")
    console.print(f"model: {run.out / 'model'}", soft_wrap=True, markup=False)
