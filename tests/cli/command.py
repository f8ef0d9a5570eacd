"""The command line as a shell calls it, in this process."""

import sys
from collections.abc import Sequence
from unittest.mock import patch

from hotgrid.cli import main


def run(arguments: Sequence[str]) -> int:
    """Run one command line (without the program name) and return its exit code."""
    with patch.object(sys, "argv", ["hotgrid", *arguments]):
        try:
            main()
        except SystemExit as ended:
            return ended.code  # pyright: ignore[reportReturnType]  always a number here
