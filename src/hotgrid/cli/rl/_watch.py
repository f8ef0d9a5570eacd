"""`hotgrid rl watch`: a film of the best policy of a run."""

from pathlib import Path

from hotgrid.cli._terminal import Terminal


def watch(
    run: Path,
    /,
    *,
    film: Path | None = None,
    steps: int = 500,
    seed: int = 0,
) -> None:
    """Film the best policy of a run.

    Args:
        run: The folder of the run.
        film: Where to write, .gif or .mp4; by default film.gif in the folder.
        steps: How many steps to show.
        seed: Where random numbers begin.
    """
    from hotgrid.train.rl import film as write_film, load_policy

    trained = load_policy(run)
    path = run / "film.gif" if film is None else film
    count = write_film(trained, path, steps=steps, seed=seed)
    best = float(trained.returns.max())
    text = f"{path}: {count} pictures of a policy with a mean return of {best:.1f}"
    Terminal(highlight=False).out(text, highlight=False)
