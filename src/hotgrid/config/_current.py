"""The configuration in force: one per process, another one inside a `with` block."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

from ._config import Config
from ._load import load, with_values

_IN_FORCE: ContextVar[Config] = ContextVar("hotgrid.config")


def current() -> Config:
    """Return the configuration in force here.

    That is the one of the innermost `use` or `override` block; outside of any, what
    `load()` found on the first call in this process.

    Raises:
        ConfigError: There is no block and `load()` found a problem.

    Example:
        >>> with override({"memory.limit": 0.5}):
        ...     current().memory.limit
        0.5
    """
    found = _IN_FORCE.get(None)
    return _of_process() if found is None else found


@cache
def _of_process() -> Config:
    return load()


@contextmanager
def use(config: Config) -> Iterator[Config]:
    """Put a configuration in force inside a `with` block.

    It holds for this thread or task. A thread started inside the block begins
    without it; `asyncio` tasks and `asyncio.to_thread` take it along.

    Example:
        >>> with use(Config()) as config:
        ...     current() is config
        True
    """
    token = _IN_FORCE.set(config)
    try:
        yield config
    finally:
        _IN_FORCE.reset(token)


@contextmanager
def override(values: Mapping[str, object]) -> Iterator[Config]:
    """Change settings inside a `with` block; blocks nest.

    Args:
        values: Dotted keys to values, written as in TOML: strings, numbers, lists,
            and `{"file": path}`.

    Raises:
        ConfigError: A key is unknown or a value is bad; nothing is changed then.
        ArgumentError: `values` is not a mapping from strings.

    Example:
        >>> with override({"logging.components.autotune.level": "debug"}) as config:
        ...     config.logging.of("autotune")[0]
        'debug'
    """
    with use(with_values(current(), values)) as config:
        yield config
