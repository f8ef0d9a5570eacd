"""Sources: where the samples of a plan are, as a document, and opened."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar, cast

from hotgrid.errors import ArgumentError

from ._documents import build_document, check_document, document_fields
from ._registry import Registry
from ._types import ColumnType

Class = TypeVar("Class", bound="type[Source]")


class Samples(ABC):
    """An opened source: samples by number. Any number of threads may read it at once."""

    @abstractmethod
    def __len__(self) -> int:
        """How many samples there are."""

    @abstractmethod
    def read(self, index: int, columns: Sequence[str]) -> dict[str, Any]:
        """Return the chosen columns of a sample; only these are read.

        Raises:
            DamagedError: The sample is damaged; the text says how.
        """

    @abstractmethod
    def place(self, index: int) -> str:
        """Where a sample is: a file, and where in it."""

    def values(self, column: str) -> list[Any]:
        """A column of all samples, read one by one unless there is a faster way."""
        return [self.read(index, (column,))[column] for index in range(len(self))]

    @property
    def facts(self) -> dict[str, Any]:
        """Further facts, such as `classes`, the names of the labels."""
        return {}


class Source(ABC):
    """Base of sources: a frozen dataclass whose fields say where the samples are.

    A subclass is registered with `@source`. Its `columns` must be cheap: plans ask for them
    when they are made. `open` may take a while.

    Attributes:
        kind: Its name in plans.
    """

    kind: ClassVar[str] = ""

    @abstractmethod
    def columns(self) -> dict[str, ColumnType]:
        """Return the columns and their types."""

    @abstractmethod
    def open(self) -> Samples:
        """Find the samples.

        Raises:
            ArgumentError: Nothing was found.
            DamagedError: A file is not what it should be.
        """

    def __str__(self) -> str:
        fields = document_fields(self).values()
        places = [str(each) for each in fields if isinstance(each, str)]
        return " ".join([self.kind, *places[:1]])

    def to_plain(self) -> dict[str, Any]:
        """Return the source as JSON."""
        return {"kind": self.kind, **document_fields(self)}

    @classmethod
    def from_plain(cls, document: Mapping[str, Any], where: str = "the source") -> "Source":
        """Read a source from JSON.

        Raises:
            ArgumentError: It is not the JSON of a source.
        """
        if not isinstance(document, Mapping) or not isinstance(document.get("kind"), str):
            raise ArgumentError(
                f"{where} has no `kind`; there are {', '.join(SOURCES.names())}"
            )
        fields = {name: each for name, each in document.items() if name != "kind"}
        found = SOURCES.get(document["kind"], f"{where}: ")
        return build_document(found, fields, f"source `{document['kind']}`")


SOURCES: Registry[Source] = Registry("a source", "hotgrid.sources")


def source(kind: str) -> Callable[[Class], Class]:
    """Register a source under a name, as a decorator of a frozen dataclass.

    Other packages name theirs as entry points in the group `hotgrid.sources`.

    Args:
        kind: Its name in plans.

    Raises:
        ArgumentError: The name is taken.
    """

    def register(cls: Class) -> Class:
        cls.kind = kind
        SOURCES.add(kind, cls)
        return cls

    return register


def sources() -> dict[str, type[Source]]:
    """Return every source by name, including those of other packages."""
    return {name: SOURCES.get(name) for name in SOURCES.names()}


def fields_checked(made: Source) -> Source:
    """The source, with its fields checked against their annotations."""
    check_document(made, f"source `{made.kind}`")
    return cast("Source", made)
