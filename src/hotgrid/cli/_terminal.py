"""The rich console that commands print on."""

import os
from typing import Any, NoReturn

from rich.console import Console


class Terminal(Console):
    """A console that leaves a broken pipe to `main`, which ends the program quietly.

    Colours go away with `NO_COLOR` and when the output is not a terminal. Names of files,
    classes and groups are shown as they are: `[x]` is no style, and `:cat:` no picture.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, emoji=False, **settings)

    def on_broken_pipe(self) -> NoReturn:
        """Hand the exception on; rich would exit with 1, which means something else here."""
        raise BrokenPipeError

    def for_tables(self) -> "Terminal":
        """The console that sets the width of tables.

        A pipe has no width, so one row is one line there, unless COLUMNS is set.
        """
        if self.is_terminal or os.environ.get("COLUMNS", "").isdigit():
            return self
        return Terminal(width=10_000)
