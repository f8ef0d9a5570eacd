"""Environments of one's own, by `module:Class` or `file.py:Class`."""

from typing import TYPE_CHECKING

from hotgrid.errors import ArgumentError

if TYPE_CHECKING:
    from hotgrid.train.rl import Environment


def environment_of(text: str) -> "Environment | str":
    """Return the environment that a text names; a name of hotgrid's or Gymnasium's as it is.

    Raises:
        ArgumentError: There is no such class, it is not an environment, or it cannot be made.
    """
    place, colon, name = text.rpartition(":")
    if text.startswith("gymnasium:"):
        return text
    if text.endswith(".py") or (colon and not (place and name)):
        raise ArgumentError(f"`{text}` names no class; write file.py:Class or module:Class")
    if not colon:
        return text
    from hotgrid.cli._member import member
    from hotgrid.train.rl import Environment

    made = member(place, name)
    if isinstance(made, type) and issubclass(made, Environment):
        try:
            made = made()
        except TypeError as problem:
            raise ArgumentError(
                f"`{text}` cannot be made without arguments: {problem}; "
                "all of its fields need defaults"
            ) from None
        except Exception as problem:
            reason = f"{type(problem).__name__}: {problem}"
            raise ArgumentError(f"`{text}` cannot be made: {reason}") from problem
    if not isinstance(made, Environment):
        raise ArgumentError(f"`{text}` is not a hotgrid.train.rl.Environment")
    return made
