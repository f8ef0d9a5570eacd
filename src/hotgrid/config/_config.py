"""The frozen object with all settings, and where each came from."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, cast

from hotgrid.errors import near

from . import sections
from ._rules import File, RefusalError, Rule
from ._section import Named, Section, settings_of

OriginKind = Literal["default", "file", "environment", "flag", "override"]


@dataclass(frozen=True)
class Origin:
    """Where the value of a setting came from.

    Attributes:
        kind: Which layer gave the value.
        where: The place in that layer: `FILE:LINE`, the name of the variable, or the
            flag; empty for defaults and overrides.

    Example:
        >>> str(Origin("environment", "HOTGRID_AUTOTUNE_LEVEL")), str(Origin("default"))
        ('HOTGRID_AUTOTUNE_LEVEL', 'default')
    """

    kind: OriginKind
    where: str = ""

    def __str__(self) -> str:
        return self.where or self.kind


@dataclass(frozen=True)
class ConfigEntry:
    """One setting in force.

    Attributes:
        key: Its dotted key, such as `autotune.level`.
        value: Its value as the sections hold it.
        origin: Where the value came from.
        meaning: One line on what it does.

    Example:
        >>> Config().settings()[0].key
        'compile.enabled'
    """

    key: str
    value: object
    origin: Origin
    meaning: str = ""

    def plain(self) -> object:
        """Return the value as JSON and TOML write it: strings, numbers, lists, tables."""
        return plain(self.value)


def plain(value: object) -> object:
    """Return a setting's value as JSON and TOML write it."""
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return value.plain() if isinstance(value, File) else value


@dataclass(frozen=True, kw_only=True)
class Config:
    """Every setting of hotgrid, frozen. `Config()` holds the defaults.

    Attributes:
        compile: How step functions are compiled.
        autotune: How candidates are timed and winners stored.
        kernels: How kernels treat bad accesses and bad numbers.
        memory: How much memory hotgrid may plan with.
        cluster: How ranks communicate.
        logging: What is logged and where to.
        file: The `hotgrid.toml` that was read, or None.
        origins: Where each value came from, as pairs of key and origin; a key that
            is not listed has its default.

    Example:
        >>> Config().autotune.level
        'balanced'
    """

    compile: sections.Compile = field(default_factory=sections.Compile)
    autotune: sections.Autotune = field(default_factory=sections.Autotune)
    kernels: sections.Kernels = field(default_factory=sections.Kernels)
    memory: sections.Memory = field(default_factory=sections.Memory)
    cluster: sections.Cluster = field(default_factory=sections.Cluster)
    logging: sections.Logging = field(default_factory=sections.Logging)
    file: Path | None = field(default=None, compare=False)
    origins: tuple[tuple[str, Origin], ...] = field(default=(), compare=False, repr=False)

    def settings(self) -> list[ConfigEntry]:
        """Return every setting in the order of the file, with its origin.

        Example:
            >>> [s.key for s in Config().settings() if s.key.startswith("logging")]
            ['logging.level', 'logging.targets']
        """
        origins = dict(self.origins)
        default = Origin("default")
        return [
            ConfigEntry(key, value, origins.get(key, default), meaning)
            for name in SECTIONS
            for key, value, meaning in _flat(name, getattr(self, name))
        ]


SECTIONS: Mapping[str, type[Section]] = MappingProxyType(
    {
        each.name: each.default_factory
        for each in fields(Config)
        if isinstance(each.default_factory, type) and issubclass(each.default_factory, Section)
    }
)


def _flat(prefix: str, section: Section) -> Iterator[tuple[str, object, str]]:
    for key, rule, meaning in settings_of(section):
        value, path = getattr(section, key.name), f"{prefix}.{key.name}"
        if isinstance(rule, Named):
            for named in value:
                yield from _flat(f"{path}.{named.name}", named)
        elif value is not None:
            yield path, value, meaning


def changed(
    base: Config, values: Mapping[str, object], origins: Mapping[str, Origin], file: Path | None
) -> Config:
    """Return `base` with other values under dotted keys; the values are accepted ones."""
    flat = {setting.key: setting.value for setting in base.settings()} | dict(values)
    built = {name: _built(cls, name, flat) for name, cls in SECTIONS.items()}
    merged = dict(base.origins) | dict(origins)
    return Config(**cast(Any, built), file=file, origins=tuple(merged.items()))


def _built(cls: type[Section], prefix: str, flat: Mapping[str, object], **name: str) -> Section:
    values: dict[str, object] = dict(name)
    for key, rule, _ in settings_of(cls):
        path = f"{prefix}.{key.name}"
        if isinstance(rule, Named):
            start = len(path) + 1
            names = {each[start:].split(".")[0] for each in flat if each.startswith(path + ".")}
            values[key.name] = tuple(
                _built(rule.section, f"{path}.{each}", flat, name=each) for each in names
            )
        elif path in flat:
            values[key.name] = flat[path]
    return cls(**cast(Any, values))


def keys() -> dict[str, Rule]:
    """Return the rule of every setting with a fixed key, by dotted key."""
    return {
        f"{name}.{key.name}": rule
        for name, cls in SECTIONS.items()
        for key, rule, _ in settings_of(cls)
        if not isinstance(rule, Named)
    }


Node = Mapping[str, type[Section]] | type[Section] | Named | Rule


def child(node: Node, key: str) -> Node:
    """Return the value under a key of a table, or raise `RefusalError` with the reason.

    The root of the tree is `SECTIONS`; a table is a section or the sections under
    free names; a leaf is the rule of a value.
    """
    if isinstance(node, Named):
        node.check_name(key)
        return node.section
    if isinstance(node, Mapping):
        what, known = "section", dict[str, Node](node)
    elif isinstance(node, type):
        what, known = "key", {each.name: rule for each, rule, _ in settings_of(node)}
    else:
        raise RefusalError("is a value and holds no keys")
    if key not in known:
        hint = near(key, known) or _elsewhere(key) or f"; known: {', '.join(known)}"
        raise RefusalError(f"is an unknown {what}{hint}")
    return known[key]


def _elsewhere(key: str) -> str:
    homes = [path for path in keys() if path.endswith(f".{key}")]
    return f"; did you mean `{homes[0]}`?" if homes else ""
