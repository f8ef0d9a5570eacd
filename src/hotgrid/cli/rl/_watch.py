"""`hotgrid rl watch`: a live page or a film of the best policy of a run."""

import signal
import time
import webbrowser
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from hotgrid.cli._terminal import Terminal
from hotgrid.errors import MissingPartError

from ._own import environment_of

if TYPE_CHECKING:
    from hotgrid.train.rl import Environment

# Seconds between two checks for the first checkpoint.
_LOOK = 0.5


def watch(
    run: Path,
    /,
    *,
    film: Path | None = None,
    environment: str | None = None,
    steps: int = 500,
    seed: int = 0,
    port: int = 8767,
    host: str = "127.0.0.1",
    open: Annotated[bool, Parameter(negative="--no-open")] = True,
) -> None:
    """Watch the best policy of a run act, in the browser or as a film.

    A run that is still training is followed; before its first checkpoint, `watch` waits.

    Args:
        run: The folder of the run.
        film: Write a film instead, .gif or .mp4.
        environment: The environment of the run, if it is a class of your own: file.py:Class or
            package.module:Class.
        steps: How many steps the film shows.
        seed: Random seed.
        port: Where the page is served; the next free one if it is taken.
        host: The address to listen on; by default only this machine can open the page.
        open: Open the page in the browser.
    """
    place = None if environment is None else environment_of(environment)
    _wait_for_checkpoint(run)
    if film is not None:
        _film(run, film, steps, seed, place)
        return
    try:
        from hotgrid.train.rl.watch import Show, WatchApp
    except ModuleNotFoundError as problem:
        if problem.name is None or not problem.name.startswith("starlette"):
            raise
        raise MissingPartError(
            "the live page needs Starlette and uvicorn: run `pip install 'hotgrid[view]'`, or "
            "write a film with --film"
        ) from None
    show = Show(run, environment=place, seed=seed)
    server = WatchApp(show).serve(port, host)
    signal.signal(signal.SIGTERM, _end)
    show.start()
    try:
        with server:
            Terminal(highlight=False).out(f"hotgrid rl: {server.address}", highlight=False)
            if open:
                webbrowser.open(server.address)
            server.wait()
    finally:
        show.stop()


def _wait_for_checkpoint(run: Path) -> None:
    """Wait while a run that has begun has saved nothing; loading reports everything else."""
    from hotgrid.store import Checkpoints
    from hotgrid.train import read_run

    said = False
    while run.is_dir() and not Checkpoints(run / "checkpoints").steps():
        found = read_run(run)
        failed = bool(found.events) and found.events[-1]["event"] == "fault"
        if found.status != "not ended" or failed:
            return
        if not said:
            text = f"`{run}` has no checkpoint yet; waiting for the first one (Ctrl-C ends)"
            Terminal(highlight=False).out(text, highlight=False)
            said = True
        time.sleep(_LOOK)


def _film(
    run: Path, path: Path, steps: int, seed: int, environment: "Environment | str | None"
) -> None:
    from hotgrid.train.rl import film, load_policy

    trained = load_policy(run, environment=environment)
    count = film(trained, path, steps=steps, seed=seed)
    best = float(trained.returns.max())
    which = f"the policy whose best evaluation had a mean return of {best:.1f}"
    if not isfinite(best):
        which = "a policy that has not been evaluated yet"
    Terminal(highlight=False).out(f"{path}: {count} pictures of {which}", highlight=False)


def _end(number: int, frame: object) -> None:
    raise SystemExit(128 + number)
