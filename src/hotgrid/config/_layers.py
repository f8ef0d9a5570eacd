"""The layers that give values: the file, the environment, flags, overrides.

Each layer is a stream of entries, already checked, and of problems.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotgrid.errors import near

from ._config import SECTIONS, Node, Origin, child, keys
from ._problem import Problem
from ._rules import RefusalError, Rule, shown
from ._section import Named
from ._toml import Document, KeyPath, UnreadableError, read

PREFIX = "HOTGRID_"
FILE_VARIABLE = "HOTGRID_CONFIG"
_COMPONENT_PREFIX = "HOTGRID_LOGGING_COMPONENTS_"
# Read by other parts of hotgrid: no settings, but as easily misspelled.
_NO_SETTINGS = frozenset(
    {
        FILE_VARIABLE,
        "HOTGRID_NATIVE",
        "HOTGRID_THREADS",
        "HOTGRID_ISA",
        "HOTGRID_POOL",
        "HOTGRID_VOCAB_DIR",
        "HOTGRID_CHAT_KEY",
    }
)


@dataclass(frozen=True)
class Entry:
    """One value that a layer gives."""

    key: str
    value: object
    origin: Origin


Layer = Iterator[Entry | Problem]


def from_file(path: Path, named_by: str | None = None) -> Layer:
    """Yield the values of a `hotgrid.toml`; relative paths in it start at its folder."""
    try:
        document = read(path)
    except UnreadableError as error:
        message = f"{error}; {named_by} names it" if named_by else str(error)
        yield Problem(message, str(path), error.line, error.column)
        return
    yield from _from_table(document, path, document.table, SECTIONS, ())


def _from_table(
    document: Document, path: Path, table: dict[str, Any], node: Node, above: KeyPath
) -> Layer:
    for key, value in table.items():
        keys_above = (*above, key)
        dotted, line = ".".join(keys_above), document.lines.get(keys_above)
        try:
            below = child(node, key)
            if isinstance(below, Rule) and not isinstance(below, Named):
                accepted = below.accept(value, path.parent)
                yield Entry(dotted, accepted, Origin("file", f"{path}:{line}"))
            elif isinstance(value, dict):
                yield from _from_table(document, path, value, below, keys_above)
            else:
                raise RefusalError(f"is {shown(value)}; expected a table, such as [{dotted}]")
        except RefusalError as refusal:
            yield Problem(f"`{dotted}` {refusal}", str(path), line)


def from_environment(environ: Mapping[str, str]) -> Layer:
    """Yield the values of `HOTGRID_*` variables; an empty variable counts as not set."""
    known = {variable(key): key for key in keys()}
    for name in sorted(environ):
        text = environ[name]
        if not name.startswith(PREFIX) or name in _NO_SETTINGS or not text.strip():
            continue
        if name in known:
            yield _from_text(known[name], text, Origin("environment", name))
        elif name.startswith(_COMPONENT_PREFIX):
            yield _from_component_variable(name, text)
        else:
            hint = _near_variable(name, known)
            if hint:
                yield Problem(f"is an unknown variable{hint}", name)


def variable(key: str) -> str:
    """Return the environment variable of a dotted key."""
    return PREFIX + key.upper().replace(".", "_")


def _near_variable(name: str, known: Mapping[str, str]) -> str:
    # Without the prefix, which all share and which would make strangers look alike.
    tails = {each.removeprefix(PREFIX) for each in (*known, *_NO_SETTINGS)}
    tail = name.removeprefix(PREFIX)
    # In a name of three letters, one wrong letter is already a third.
    short = [each for each in tails if len(each) <= 3]
    hint = f"; did you mean {PREFIX}{{}}?"
    return near(tail, tails, hint, cutoff=0.8) or near(tail, short, hint)


def _from_component_variable(name: str, text: str) -> Entry | Problem:
    component, _, key = name.removeprefix(_COMPONENT_PREFIX).rpartition("_")
    if key not in ("LEVEL", "TARGETS") or not component:
        expected = f"{_COMPONENT_PREFIX}<NAME>_LEVEL or {_COMPONENT_PREFIX}<NAME>_TARGETS"
        return Problem(f"is an unknown variable; expected {expected}", name)
    dotted = f"logging.components.{component.lower()}.{key.lower()}"
    return _from_text(dotted, text, Origin("environment", name))


def from_flags(flags: Mapping[str, str]) -> Layer:
    """Yield the values of `-c KEY=VALUE` flags."""
    for key, text in flags.items():
        yield _from_text(key, text, Origin("flag", f"-c {key}"))


def from_values(values: Mapping[str, object]) -> Layer:
    """Yield the values of an override."""
    for key, value in values.items():
        try:
            yield Entry(key, _rule_at(key).accept(value), Origin("override"))
        except RefusalError as refusal:
            yield Problem(f"`{key}` {refusal}", "override")


def _from_text(key: str, text: str, origin: Origin) -> Entry | Problem:
    try:
        rule = _rule_at(key)
        return Entry(key, rule.accept(rule.read(text)), origin)
    except RefusalError as refusal:
        return Problem(f"`{key}` {refusal}", str(origin))


def _rule_at(dotted: str) -> Rule:
    node: Node = SECTIONS
    for key in dotted.split("."):
        try:
            node = child(node, key)
        except RefusalError:
            hint = near(dotted, keys())
            if not hint:
                raise
            raise RefusalError(f"is an unknown key{hint}") from None
    if isinstance(node, Rule) and not isinstance(node, Named):
        return node
    raise RefusalError(f"is a section; name one of its keys, such as `{_first_key(dotted)}`")


def _first_key(dotted: str) -> str:
    below = [key for key in keys() if key.startswith(f"{dotted}.")]
    return below[0] if below else "logging.components.autotune.level"
