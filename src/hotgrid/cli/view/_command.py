"""`hotgrid view`: the live page of one model, or the gallery of all."""

import webbrowser
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from hotgrid.cli._case_options import case_from, case_options
from hotgrid.cli._terminal import Terminal
from hotgrid.errors import ArgumentError


@case_options("size", "device", "dtype", "seed", "set")
def view(
    name: str | None = None,
    /,
    *,
    port: int = 8765,
    host: str = "127.0.0.1",
    out: Path = Path("hotgrid-view"),
    open: Annotated[bool, Parameter(negative="--no-open")] = True,
    paused: bool = False,
    **options: Any,
) -> None:
    """Watch and touch a running model in the browser.

    Args:
        name: A name from `hotgrid models`, your own `file.py:ClassName`, or a case.toml;
            without one, the gallery of all models.
        port: Where the page is served; the next free one if it is taken.
        host: The address to listen on; by default only this machine can open the page.
        out: The folder for pictures, films and checkpoints that are saved from the page.
        open: Open the page in the browser.
        paused: Do not run before Play is pressed.
        **options: Fields of `Case`.
    """
    if name is None and options:
        raise ArgumentError("name a model for these options, such as `hotgrid view karman`")
    case = None if name is None else case_from(name, options)
    # Not before: a misspelled option need not wait for torch.
    from hotgrid.grid.view import ViewApp

    app = ViewApp(case, out, playing=not paused)
    server = app.serve(port, host)
    app.begin()
    with server:
        Terminal(highlight=False).out(f"hotgrid view: {server.address}", highlight=False)
        if open:
            webbrowser.open(server.address)
        server.wait()
