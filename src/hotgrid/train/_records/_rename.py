"""Names in a file turned to those of a module."""

from collections.abc import Callable, Mapping

from torch import Tensor

from hotgrid.errors import ArgumentError, near

Rename = Mapping[str, str | None] | Callable[[str], str | None]


def renamed(
    given: Mapping[str, Tensor], rename: Rename | None, place: str
) -> dict[str, Tensor]:
    """Return the tensors under their new names; those without one are dropped."""
    if rename is None:
        return dict(given)
    function = rename if callable(rename) else _by_beginning(rename, list(given), place)
    found: dict[str, Tensor] = {}
    sources: dict[str, str] = {}
    for name, tensor in given.items():
        new = function(name)
        if new is None:
            continue
        if new in found:
            raise ArgumentError(
                f"`rename` turns both `{sources[new]}` and `{name}` of {place} to `{new}`"
            )
        found[new], sources[new] = tensor, name
    return found


def _by_beginning(
    table: Mapping[str, str | None], names: list[str], place: str
) -> Callable[[str], str | None]:
    """A function for a table of dotted beginnings; the longest that fits counts."""
    for old in table:
        if not any(_begins(name, old) for name in names):
            raise ArgumentError(
                f"`rename` has {old!r}, and no name in {place} begins with it"
                f"{near(old, {name.rpartition('.')[0] for name in names})}"
            )

    def new_name(name: str) -> str | None:
        fitting = [old for old in table if _begins(name, old)]
        if not fitting:
            return name
        old = max(fitting, key=len)
        new = table[old]
        if new is None:
            return None
        rest = name[len(old) :].lstrip(".")
        return ".".join(part for part in (new, rest) if part)

    return new_name


def _begins(name: str, old: str) -> bool:
    return not old or name == old or name.startswith(f"{old}.")
