"""The file that `hotgrid config init` writes: every key, its default and its meaning."""

import json
import os
import textwrap
from collections.abc import Iterator
from pathlib import Path

from hotgrid.errors import ArgumentError, ConfigError, StoreError
from hotgrid.files import whole_file

from ._config import SECTIONS, plain
from ._places import FILE_NAME
from ._section import Named, Section, settings_of

_HEAD = """\
# Settings of hotgrid. What is commented out shows the default: remove the `#`
# in front of a line to change it. `hotgrid config show` lists the settings in
# force, `hotgrid config check` reports mistakes. A flag (-c KEY=VALUE) wins over a
# variable (HOTGRID_SECTION_KEY), which wins over this file.
"""

_COMPONENT_EXAMPLE = """\
#     [logging.components.autotune]
#     level = "debug"
#     targets = ["stderr", {file = "autotune.log"}]
"""


def default_toml() -> str:
    """Return a `hotgrid.toml` that lists every key with its default and its meaning.

    Keys are commented out as `#key = value`, without a space; prose begins with
    `# `. With the keys uncommented the file contains exactly the defaults.

    Example:
        >>> '#level = "balanced"' in default_toml().splitlines()
        True
    """
    parts = (_section_text(name, section) for name, section in SECTIONS.items())
    return "\n".join((_HEAD, *parts))


def _section_text(name: str, section: type[Section]) -> str:
    summary = (section.__doc__ or "").partition("\n")[0].partition(";")[0]
    return f"# {summary}.\n[{name}]\n" + "".join(_key_texts(section))


def _key_texts(section: type[Section]) -> Iterator[str]:
    for key, rule, meaning in settings_of(section):
        yield textwrap.fill(meaning, 88, initial_indent="# ", subsequent_indent="# ") + "\n"
        if isinstance(rule, Named):
            yield _COMPONENT_EXAMPLE
        else:
            yield f"# {rule.expected[0].upper()}{rule.expected[1:]}.\n"
            # Defaults are strings, numbers and lists of strings: JSON writes them as TOML.
            yield f"#{key.name} = {json.dumps(plain(key.default))}\n"


def write_default_toml(path: Path, *, force: bool = False) -> None:
    """Write `default_toml()` to a file, atomically.

    Raises:
        ConfigError: The file exists and `force` is not given, or it cannot be written.

    Example:
        >>> write_default_toml(Path("hotgrid.toml"))  # doctest: +SKIP
    """
    if path.is_dir():
        raise ConfigError(f"`{path}` is a folder; name a file, such as `{path / FILE_NAME}`")
    if path.exists() and not path.is_file():
        raise ConfigError(f"`{path}` is not a plain file and is left as it is")
    if os.path.lexists(path) and not force:
        raise ConfigError(f"`{path}` exists and is left as it is; `--force` replaces it")
    # Replacing through a link would turn the link into a file.
    path = Path(os.path.realpath(path))
    if not path.parent.is_dir():
        raise ConfigError(f"`{path}` cannot be written: there is no folder `{path.parent}`")
    try:
        with whole_file(path) as aside:
            aside.write_text(default_toml(), encoding="utf-8")
    except (ArgumentError, StoreError) as problem:
        raise ConfigError(str(problem)) from None
