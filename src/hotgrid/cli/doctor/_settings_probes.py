"""Probes of the settings in force and of the cache folders."""

import getpass
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from json import dumps
from pathlib import Path

from hotgrid import config
from hotgrid.errors import ConfigError

from ._finding import Finding, not_seen


def settings() -> Iterator[Finding]:
    """Yield the settings file and every setting with where it came from."""
    try:
        found = config.current()
    except ConfigError as error:
        yield Finding(
            "config",
            "settings",
            "cannot be read",
            state="broken",
            detail=str(error),
            way_out="correct the place it names, then run `hotgrid config check`",
        )
        return
    file = str(found.file) if found.file else "none found; `hotgrid config init` writes one"
    yield Finding("config", "file", file)
    for setting in found.settings():
        plain = setting.plain()
        value = plain if isinstance(plain, str) else dumps(plain, ensure_ascii=False)
        yield Finding("config", setting.key, value, detail=str(setting.origin))


def caches() -> Iterator[Finding]:
    """Yield every cache folder: can it be written, and how much is in it."""
    yield _folder("torch.compile", _inductor_folder, "set TORCHINDUCTOR_CACHE_DIR")
    yield _folder(
        "global", lambda: config.cache_folder("global", "any").parent, "set XDG_CACHE_HOME"
    )
    try:
        found = config.current()
    except ConfigError:
        return  # reported in the section on config
    places: dict[str, config.CachePlace] = {
        "compile": found.compile.cache,
        "autotune": found.autotune.cache,
    }
    for name, place in places.items():
        if place == "none":
            yield Finding("caches", name, "none; nothing is kept")
        else:
            where = partial(config.cache_folder, place, name)
            yield _folder(name, where, f"set {name}.cache")


def _inductor_folder() -> Path:
    if chosen := os.environ.get("TORCHINDUCTOR_CACHE_DIR"):
        return Path(chosen).absolute()
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in some containers
        user = f"uid_{os.getuid()}"
    return Path(tempfile.gettempdir(), f"torchinductor_{user}")


def _folder(name: str, where: Callable[[], Path], setting: str) -> Finding:
    try:
        return _looked_at(name, where(), setting)
    except Exception as error:  # noqa: BLE001  one odd folder must not hide the others
        return not_seen("caches", name, error)


def _looked_at(name: str, folder: Path, setting: str) -> Finding:
    """Report whether a cache folder can be written, or created if it does not exist yet."""
    # Unlike `Path.exists`, this treats what cannot be accessed as absent: the folder
    # above it is then the one that is closed.
    ground = next(place for place in (folder, *folder.parents) if os.access(place, os.F_OK))
    if not (ground.is_dir() and os.access(ground, os.W_OK | os.X_OK)):
        return Finding(
            "caches",
            name,
            str(folder),
            state="broken",
            detail=f"{ground} is not a folder that this user can write to",
            way_out=f"make it one, or {setting} to another place",
        )
    if ground != folder and (problem := _unmakeable(ground)):
        return Finding(
            "caches",
            name,
            str(folder),
            state="broken",
            detail=f"no folder can be made in {ground}: {problem}",
            way_out=f"make it writable, or {setting} to another place",
        )
    detail = _contents(folder) if ground == folder else "not made yet"
    return Finding("caches", name, str(folder), detail=detail)


def _unmakeable(ground: Path) -> str:
    """Why no folder can be made in one, or nothing: /proc, for one, looks writable to root."""
    try:
        tried = tempfile.mkdtemp(prefix=".hotgrid-", dir=ground)
    except OSError as error:
        return error.strerror or str(error)
    Path(tried).rmdir()
    return ""


def _contents(folder: Path) -> str:
    count = size = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                size += Path(root, name).stat().st_size
            except OSError:  # another process tidies up at the same time
                continue
            count += 1
    return f"{size / 1e6:.1f} MB, {count:,} {'file' if count == 1 else 'files'}"
