"""`hotgrid view`: the live page of one model, or the gallery of all."""

import signal
import sys
import webbrowser
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from hotgrid.cli._case_options import case_from, case_options
from hotgrid.cli._terminal import Terminal
from hotgrid.errors import ArgumentError


@case_options("size", "device", "dtype", "seed", "mesh", "set")
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
    """Watch and steer a running model in the browser.

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
    device = options.pop("device", None)
    if name is None and any(value not in (None, ()) for value in options.values()):
        raise ArgumentError("name a model for these options, such as `hotgrid view karman`")
    case = None if name is None else case_from(name, {**options, "device": device})
    # Not before: a misspelled option need not wait for torch.
    from hotgrid.cluster import is_primary
    from hotgrid.grid.run._perform import start_ranks
    from hotgrid.grid.view import ViewApp

    if case is not None and start_ranks(case, sys.argv[1:], resume=False):
        return
    app = ViewApp(case, out, playing=not paused, device=device)
    if case is not None and case.mesh is not None and not is_primary():
        # Ctrl-C reaches every rank; this one ends when the first one says so.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        app.follow()
        return
    server = app.serve(port, host)
    app.begin()
    # Leaving the block ends a film that is being recorded, so that its file can be read.
    signal.signal(signal.SIGTERM, _end)
    with server:
        Terminal(highlight=False).out(f"hotgrid view: {server.address}", highlight=False)
        if open:
            webbrowser.open(server.address)
        server.wait()


def _end(number: int, frame: object) -> None:
    raise SystemExit(128 + number)
