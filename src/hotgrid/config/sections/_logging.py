"""The section `[logging]`."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from hotgrid.config._rules import File, ListOf, OneOf, WordOrFile
from hotgrid.config._section import Named, Section, about

Level = Literal["off", "error", "warning", "info", "debug"]
"""How much is logged."""
LEVELS: tuple[Level, ...] = get_args(Level)
"""Every level, from silent to verbose."""
TargetWord = Literal["stdout", "stderr", "log"]
LogTarget: TypeAlias = TargetWord | File
"""Where a record goes: a word, or a file."""

_LEVEL, _TARGETS = OneOf(Level), ListOf(WordOrFile(TargetWord))

# The packages and the parts of them that log under their own name. Other
# names are welcome; these serve to notice a misspelling.
COMPONENTS = (
    *("autotune", "blt", "chat", "cli", "cluster", "compile", "config", "contracts", "data"),
    *("grid", "kernels", "memory", "native", "nn", "store", "tensors", "tokens", "train"),
    *("vision", "web"),
)


@dataclass(frozen=True, kw_only=True)
class ComponentLogging(Section):
    """Level and targets of one component; None means as in `[logging]`.

    Example:
        >>> ComponentLogging(name="autotune", level="debug").targets is None
        True
    """

    name: str
    level: Level | None = field(
        default=None, metadata=about(_LEVEL, "As logging.level, for one component.")
    )
    targets: tuple[LogTarget, ...] | None = field(
        default=None, metadata=about(_TARGETS, "As logging.targets, for one component.")
    )


@dataclass(frozen=True, kw_only=True)
class Logging(Section):
    """Levels and targets of logging; owned by `hotgrid.config`.

    Example:
        >>> debug = ComponentLogging(name="autotune", level="debug")
        >>> Logging(components=(debug,)).of("autotune")
        ('debug', ('stderr',))
    """

    level: Level = field(default="warning", metadata=about(_LEVEL, "How much is logged."))
    targets: tuple[LogTarget, ...] = field(
        default=("stderr",),
        metadata=about(
            _TARGETS,
            "Where it goes, several at once; log is Python's own logging under hotgrid.NAME.",
        ),
    )
    components: tuple[ComponentLogging, ...] = field(
        default=(),
        metadata=about(
            Named(ComponentLogging, COMPONENTS),
            "Level and targets of single components; what is left out is as above.",
        ),
    )

    def of(self, component: str) -> tuple[Level, tuple[LogTarget, ...]]:
        """Return the level and the targets in force for one component."""
        for own in self.components:
            if own.name == component:
                level = self.level if own.level is None else own.level
                return level, self.targets if own.targets is None else own.targets
        return self.level, self.targets
