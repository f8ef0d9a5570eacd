"""`hotgrid chat export`: a model for other tools."""

from pathlib import Path

from hotgrid.cli._terminal import Terminal


def export(model: Path, *, out: Path = Path("out/llama")) -> None:
    """Write a model in the layout of Hugging Face's Llama, for other tools.

    Args:
        model: A model folder, or a run; of a model that was trained with `--llama`.
        out: The folder to write; by default out/llama.
    """
    from hotgrid.chat import export_llama, load_model

    language = load_model(model)
    export_llama(out, language)
    count = sum(each.numel() for each in language.model.parameters())
    console = Terminal(highlight=False)
    console.print(f"{count:,} parameters in {out}", soft_wrap=True, markup=False)
