"""Find `hotgrid.toml`, merge it with the environment and the flags, check everything."""

import os
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path

from hotgrid.errors import ArgumentError

from . import _layers as layers
from ._config import Config, changed
from ._places import FILE_NAME
from ._problem import Problem, error_of
from ._rules import shown, working_folder


def load(
    start: Path | None = None,
    *,
    file: Path | None = None,
    flags: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Read every setting again: flag over environment over file over default.

    Args:
        start: The folder in which the search for `hotgrid.toml` begins and goes
            upward; by default the working folder.
        file: The one file to read instead of searching; also `HOTGRID_CONFIG`.
        flags: Dotted keys to text, such as `{"autotune.level": "full"}`.
        environ: The variables to read; by default those of the process.

    Raises:
        ConfigError: A setting is unknown or has a bad value, or a file that was
            named does not exist; the message lists all problems and where they are.

    Example:
        >>> load(file=Path(os.devnull), flags={"autotune.level": "full"}).autotune.level
        'full'
    """
    environ = os.environ if environ is None else environ
    config, problems = _everything(start, file, flags or {}, environ)
    if problems:
        raise error_of(problems)
    return config


def find_problems(
    start: Path | None = None,
    *,
    file: Path | None = None,
    flags: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> list[Problem]:
    """Return everything that `load` with the same arguments would complain about.

    Example:
        >>> [problem] = find_problems(file=Path(os.devnull), flags={"autotune.level": "ful"})
        >>> problem.where
        '-c autotune.level'
    """
    environ = os.environ if environ is None else environ
    return _everything(start, file, flags or {}, environ)[1]


def find_file(start: Path | None = None) -> Path | None:
    """Return the nearest `hotgrid.toml` in a folder and those above it, or None.

    Example:
        >>> find_file(Path("/")) is None
        True
    """
    here = working_folder() if start is None else start.resolve()
    candidates = (folder / FILE_NAME for folder in (here, *here.parents))
    # A folder or a dangling link of that name counts as found; reading it raises.
    return next((path for path in candidates if os.path.lexists(path)), None)


def with_values(base: Config, values: Mapping[str, object]) -> Config:
    """Return `base` with other values under dotted keys, or raise `ConfigError`."""
    if not isinstance(values, Mapping) or not all(isinstance(key, str) for key in values):
        raise ArgumentError(
            f"`values` is {shown(values)}; expected a dict from dotted keys to values, "
            'such as {"autotune.level": "full"}'
        )
    config, problems = _merged(base, base.file, layers.from_values(values))
    if problems:
        raise error_of(problems)
    return config


def _everything(
    start: Path | None, file: Path | None, flags: Mapping[str, str], environ: Mapping[str, str]
) -> tuple[Config, list[Problem]]:
    variable = environ.get(layers.FILE_VARIABLE, "").strip()
    named_by = layers.FILE_VARIABLE if variable and file is None else None
    named = file or variable
    path = Path(named).absolute() if named else find_file(start)
    parts = chain(
        layers.from_file(path, named_by) if path else (),
        layers.from_environment(environ),
        layers.from_flags(flags),
    )
    return _merged(Config(), path, parts)


def _merged(
    base: Config, file: Path | None, parts: Iterable[layers.Entry | Problem]
) -> tuple[Config, list[Problem]]:
    """Lay the parts over the base, later ones over earlier ones."""
    found = list(parts)
    problems = [part for part in found if isinstance(part, Problem)]
    entries = [part for part in found if isinstance(part, layers.Entry)]
    values = {entry.key: entry.value for entry in entries}
    origins = {entry.key: entry.origin for entry in entries}
    return changed(base, values, origins, file), problems
