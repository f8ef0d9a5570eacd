"""`hotgrid validate`: compare models with known results: table, JSON, page."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import CycloptsError, Parameter
from rich.text import Text

from hotgrid.errors import ArgumentError

from ._terminal import Terminal

if TYPE_CHECKING:
    from hotgrid.grid.validate import Row

_NAME, _NUMBER = 42, 12


def validate(
    *,
    quick: bool = False,
    json: bool = False,
    html: Path | None = None,
    device: str | None = None,
    only: Annotated[tuple[str, ...] | None, Parameter(consume_multiple=True)] = None,
    listed: Annotated[bool, Parameter(name="--list", negative="")] = False,
) -> int:
    """Compare models with exact and published results, on this device.

    Args:
        quick: Run only checks that two CPU cores finish in minutes, on coarser grids.
        json: Print a list of rows as JSON instead of a table.
        html: Write the table to this file as well, as one page.
        device: Where to compute, such as `cpu` or `cuda`; by default the GPU if there is one.
        only: The names of the checks to run, as `--list` prints them; by default all.
        listed: Print the names of the checks, one a line, and compute nothing.
    """
    if only == ():
        raise CycloptsError(msg="`--only` needs the names of checks, such as `--only glider`.")
    if html is not None:
        _expect_place(html)
    # Torch takes a second to load; report a path that cannot be written before that.
    from hotgrid.grid import validate as validation

    console = Terminal(highlight=False, soft_wrap=True)
    if listed:
        console.out("\n".join(validation.check_names(quick)), highlight=False)
        return 0
    rows: list[Row] = []
    with _progress() as starting:
        for row in validation.validate(quick, device, only or (), starting):
            if not json:
                if not rows:
                    console.print(_heading())
                console.print(_line(row))
            rows.append(row)
    if json:
        console.out(dumps([row.record() for row in rows], indent=2), highlight=False)
    else:
        console.print(_verdict(rows))
    if html is not None:
        validation.write_page(html, rows, device)
    return 0 if all(row.passed for row in rows) else 1


def _expect_place(path: Path) -> None:
    """Refuse a file that cannot be written before minutes are spent on its contents."""
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ArgumentError(
            f"cannot write `{path}`; give a file in a folder that can be written"
        )


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """A spinner that names the check being run; nothing without a terminal."""
    console = Terminal(stderr=True)
    if not console.is_terminal:
        yield lambda name: None
        return
    with console.status("") as status:
        yield lambda name: status.update(f"Computing {name} ...")


def _heading() -> Text:
    words = "".join(word.rjust(_NUMBER) for word in ("reference", "value", "error", "limit"))
    return Text(" " * _NAME + words, "bold")


def _line(row: "Row") -> Text:
    numbers = (row.reference, row.value, row.error, row.limit)
    line = Text(row.name.ljust(_NAME) + "".join(f"{x:{_NUMBER}.5g}" for x in numbers))
    line.append("  pass" if row.passed else "  FAIL", "green" if row.passed else "bold red")
    if not row.passed:
        line.append(f"\n  {row.setting}\n  {row.source}".rstrip(), "dim")
    return line


def _verdict(rows: "list[Row]") -> Text:
    failed = [row.name for row in rows if not row.passed]
    seconds = sum(row.seconds for row in rows)
    end = f" in {seconds:.0f} s."
    if not failed:
        return Text.assemble((f"All {len(rows)} rows pass", "green"), end)
    summary = f"{len(failed)} of {len(rows)} rows fail"
    return Text.assemble((summary, "bold red"), f" ({'; '.join(failed)})", end)
