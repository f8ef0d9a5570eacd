"""The base of all sections: frozen dataclasses whose fields have a rule and a meaning."""

import re
from collections.abc import Iterator
from dataclasses import Field, dataclass, fields
from pathlib import Path
from typing import Any

from hotgrid.errors import ConfigError, near

from ._rules import RefusalError, Rule


def about(rule: Rule, meaning: str) -> dict[str, Any]:
    """Return the metadata of a key: the rule for its value, and one line on its meaning.

    A field with a default of None may stay unset.
    """
    return {"rule": rule, "meaning": meaning}


def settings_of(section: "type[Section] | Section") -> Iterator[tuple[Field[Any], Rule, str]]:
    """Yield field, rule and meaning of every key of a section."""
    for key in fields(section):
        if "rule" in key.metadata:
            yield key, key.metadata["rule"], key.metadata["meaning"]


@dataclass(frozen=True, kw_only=True)
class Section:
    """Base of every section: no instance with a bad value can exist."""

    def __post_init__(self) -> None:
        for key, rule, _ in settings_of(self):
            value = getattr(self, key.name)
            if value is None and key.default is None:
                continue
            try:
                accepted = rule.accept(value)
            except RefusalError as refusal:
                raise ConfigError(f"`{key.name}` {refusal}") from None
            object.__setattr__(self, key.name, accepted)


class Named(Rule):
    """Sections under free names, such as `[logging.components.NAME]`; kept as a tuple.

    Their class has a plain field `name`. A name that nearly is a `usual` one is
    refused, because it is probably a misspelling.
    """

    _NAME = re.compile(r"[a-z][a-z0-9_]*")

    def __init__(self, section: type[Section], usual: tuple[str, ...]) -> None:
        self.section, self.usual = section, usual
        self.expected = f"a tuple of {section.__name__}, each with another name"

    def accept(self, value: object, folder: Path | None = None) -> object:
        """Return the sections sorted by name."""
        if not isinstance(value, tuple) or not all(isinstance(v, self.section) for v in value):
            raise self._refused(value)
        by_name = {each.name: each for each in value}
        if len(by_name) < len(value):
            raise self._refused(value)
        for name in by_name:
            self.check_name(name)
        return tuple(by_name[name] for name in sorted(by_name))

    def check_name(self, name: str) -> None:
        """Raise `RefusalError` if the name is malformed or close to a usual one."""
        if name in self.usual:
            return
        if hint := near(name, self.usual, cutoff=0.8):
            raise RefusalError(f"has an unknown name `{name}`{hint}")
        if not self._NAME.fullmatch(name):
            raise RefusalError(
                f"has a bad name `{name}`; expected a lower-case letter, "
                "then lower-case letters, digits and _"
            )
