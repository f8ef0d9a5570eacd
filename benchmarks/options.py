"""The options that every script here takes: one parser with `--help` and `--device`."""

import argparse
from collections.abc import Callable, Sequence


def parser(
    about: str | None, devices: Sequence[str] = ("cpu", "cuda")
) -> argparse.ArgumentParser:
    """A parser with `--help`, which shows the script's docstring, and with `--device`.

    `devices` are those that the script can use. Without the option a script takes CUDA where
    it can and where there is a GPU.
    """
    found = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument(
        "--device",
        type=_one_of(devices),
        # A string, so that argparse checks it and asks for a GPU only after `--help`.
        default="best",
        metavar="{" + ",".join(devices) + "}",
        help="default: cuda where there is a GPU" if "cuda" in devices else "default: cpu",
    )
    return found


def _one_of(devices: Sequence[str]) -> Callable[[str], str]:
    def device(name: str) -> str:
        if name == "best":
            return "cuda" if "cuda" in devices and _has_gpu() else "cpu"
        if name not in devices:
            raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(devices)}")
        if name == "cuda" and not _has_gpu():
            raise argparse.ArgumentTypeError("torch finds no GPU here; use --device cpu")
        return name

    return device


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()
