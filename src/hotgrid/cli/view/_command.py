"""`hotgrid view`: the live page of one model, or the gallery of all."""

import signal
import sys
import webbrowser
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from hotgrid.cli._terminal import Terminal
from hotgrid.cli.run._command import pairs
from hotgrid.config import Dtype, case_of
from hotgrid.errors import ArgumentError


def view(
    name: str | None = None,
    /,
    *,
    size: str | None = None,
    device: str | None = None,
    dtype: Dtype | None = None,
    seed: int | None = None,
    mesh: str | None = None,
    set: Annotated[tuple[str, ...], Parameter(name="--set", metavar="NAME=VALUE")] = (),
    port: int = 8765,
    host: str = "127.0.0.1",
    out: Path = Path("hotgrid-view"),
    open: Annotated[bool, Parameter(negative="--no-open")] = True,
    paused: bool = False,
) -> None:
    """Watch and touch a running model in the browser.

    Args:
        name: A name from `hotgrid models`, your own `file.py:ClassName`, or a case.toml;
            without one, the gallery of all models.
        size: The grid, such as 400x1600; by default the model's own.
        device: Where to run, such as cpu or cuda; by default the GPU if there is one.
        dtype: The type of arithmetic; by default float32.
        seed: Seeds the initial state; by default 0.
        mesh: Split the grid over ranks, such as 2x2; they are started here unless torchrun did.
        set: One option of the model; repeatable.
        port: Where the page is served; the next free one if it is taken.
        host: The address to listen on; by default only this machine can open the page.
        out: The folder for pictures, films and checkpoints that are saved from the page.
        open: Open the page in the browser.
        paused: Do not run before Play is pressed.
    """
    told: dict[str, Any] = {"size": size, "dtype": dtype, "seed": seed, "mesh": mesh}
    told["set"] = pairs(set) or None
    if name is None and any(value is not None for value in told.values()):
        raise ArgumentError("name a model for these options, such as `hotgrid view karman`")
    case = None if name is None else case_of(name, {**told, "device": device})
    # Not before: a misspelled option need not wait for torch.
    from hotgrid.cluster import is_primary
    from hotgrid.grid.run import start_ranks
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
    with server:
        Terminal(highlight=False).out(f"hotgrid view: {server.address}", highlight=False)
        if open:
            webbrowser.open(server.address)
        server.wait()
