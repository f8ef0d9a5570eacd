"""`hotgrid chat talk`: a conversation in the terminal, or one completion."""

import contextlib
import sys
from pathlib import Path

from hotgrid.errors import ArgumentError


def talk(
    model: Path | None = None,
    /,
    *,
    prompt: str | None = None,
    system: str = "",
    max_tokens: int = 256,
    temperature: float = 0.8,
    top_k: int | None = None,
    top_p: float | None = None,
    repetition: float = 1.0,
    seed: int | None = None,
    stop: tuple[str, ...] = (),
    device: str | None = None,
) -> None:
    """Talk with a model in the terminal.

    Args:
        model: A model folder, a run, or a folder in the layout of Llama; without one, the
            model that comes with hotgrid, if this version has one.
        prompt: Print the reply to this text, or its continuation, and nothing else.
        system: The system prompt, given to the model before the conversation.
        max_tokens: The most tokens of a reply; by default 256.
        temperature: 0 always takes the most likely token; by default 0.8.
        top_k: Sample from the k most likely tokens only.
        top_p: Sample from the most likely tokens that together have this probability.
        repetition: Above 1, tokens that already occurred are less likely; by default 1.
        seed: The same seed gives the same reply.
        stop: A text before which a reply ends; repeatable.
        device: Where the model runs; by default the GPU if there is one.
    """
    from hotgrid.chat import Sampling, load_model
    from hotgrid.chat._talk import Talk, completion, placed, printable

    sampling = Sampling(
        temperature, top_k, top_p, repetition, seed=seed, max_tokens=max_tokens, stop=stop
    )
    language = load_model(model, device=placed(device))
    shown = printable if sys.stdout.isatty() else str

    def write(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    if prompt is not None:
        for text in completion(language, prompt, sampling, system):
            write(shown(text))
        write("\n")
        return
    if sys.stdin is None:
        raise ArgumentError(
            "standard input is closed, so there is nobody to talk with; `--prompt TEXT` prints "
            "one reply"
        )
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  lines can be edited and come back

    Talk(language, sampling, input, write, system).run()
