"""`hotgrid completion`: scripts that let the shell complete commands and options."""

from pathlib import Path
from typing import Literal

from ._app import build
from ._terminal import Terminal

_ZSH_STARTS_COMPLETION = (
    "zsh looks for it when its completion starts: ~/.zshrc must have the line\n"
    "  autoload -Uz compinit && compinit\n"
    "below the `fpath=` line that was added there."
)


def completion(shell: Literal["bash", "zsh", "fish"], /, *, install: bool = False) -> None:
    """Print the completion script of a shell, or install it.

    Args:
        shell: The shell to complete in.
        install: Put it into the shell's completion folder and startup file instead.
    """
    app = build()
    console = Terminal(highlight=False, soft_wrap=True)
    if install:
        path: Path = app.install_completion(shell=shell)
        console.print(f"Wrote {path}. Open a new {shell} to use it.", markup=False)
        if shell == "zsh":
            console.print(_ZSH_STARTS_COMPLETION, markup=False)
        return
    console.out(app.generate_completion(shell=shell), highlight=False)
