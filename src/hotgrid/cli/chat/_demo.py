"""`hotgrid chat demo`: train a tiny model, and talk with it."""

import sys
from pathlib import Path

from hotgrid.cli._terminal import Terminal


def demo(
    *,
    minutes: float = 2.0,
    out: Path = Path("out/chat-demo"),
    depth: int = 4,
    size: int = 128,
    device: str = "cpu",
    seed: int = 0,
) -> None:
    """Train a tiny model in about two minutes, and talk with it.

    Without a terminal, texts of the model are printed instead.

    Args:
        minutes: How long to train; by default 2.
        out: Folder of the run; by default out/chat-demo.
        depth: Layers; by default 4.
        size: Width; by default 128.
        device: Where to compute; by default cpu.
        seed: Seed of weights and order; by default 0.
    """
    from hotgrid.chat import demo as train_demo
    from hotgrid.train import read_run, text_plot

    from ._train import show_samples, was_stopped

    console = Terminal(highlight=False)
    console.print("Training on the documentation of Python's standard library ...")
    made = train_demo(out, minutes=minutes, depth=depth, size=size, device=device, seed=seed)
    if was_stopped(console, out, made.card["figures"]["step"]):
        return
    curve = read_run(out).curves["train/bits per byte"]
    width = min(console.width if console.is_terminal else 80, 110)
    console.print("bits per byte, by step")
    console.print(text_plot({"train": curve}, width=width))
    parameters = sum(each.numel() for each in made.model.parameters())
    figures = made.card["figures"]
    console.print(
        f"{parameters:,} parameters, {figures['step']:,} steps; held-out text: "
        f"{figures['valid/bits per byte']:.3f} bits per byte"
    )
    console.print(f"model: {out / 'model'}", soft_wrap=True, markup=False)
    if sys.stdin.isatty() and sys.stdout.isatty():
        from ._talk import talk

        console.print("It continues what you type; it knows nothing else, and is often wrong.")
        talk(out / "model")
        return
    show_samples(console, made, 3)
