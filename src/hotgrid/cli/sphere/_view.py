"""`hotgrid sphere view`: the page of a sphere."""

import signal
import webbrowser
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hotgrid.cli._terminal import Terminal
from hotgrid.errors import MissingPartError


def view(
    corpus: Path,
    /,
    *,
    port: int = 8768,
    host: str = "127.0.0.1",
    open: Annotated[bool, Parameter(negative="--no-open")] = True,
    most: int = 500_000,
    model: Path | None = None,
    device: str = "cpu",
) -> None:
    """View the sphere in the browser.

    Args:
        corpus: The folder of a corpus with places, or a sidecar.
        port: Where the page is served; the next free one if it is taken.
        host: The address to listen on; by default only this machine can open the page.
        open: Open the page in the browser.
        most: The most points that are shown; by default 500,000.
        model: The entropy model of the corpus, for texts if directions are by embeddings.
        device: Where that runs; by default cpu.
    """
    try:
        from hotgrid.blt.view import SphereApp
    except ModuleNotFoundError as problem:
        if problem.name is None or not problem.name.startswith("starlette"):
            raise
        raise MissingPartError(
            "the page needs Starlette and uvicorn: run `pip install 'hotgrid[view]'`"
        ) from None
    from hotgrid.blt import Sphere

    server = SphereApp(Sphere(corpus, model=model, device=device), most=most).serve(port, host)
    signal.signal(signal.SIGTERM, _end)
    with server:
        Terminal(highlight=False).out(f"hotgrid sphere: {server.address}", highlight=False)
        if open:
            webbrowser.open(server.address)
        server.wait()


def _end(number: int, frame: object) -> None:
    raise SystemExit(128 + number)
