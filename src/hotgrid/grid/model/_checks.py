"""Arguments of a simulation: what fits the model, and clear errors for what does not."""

from collections.abc import Mapping, Sequence
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hotgrid.contracts import Contract, ContractError
from hotgrid.errors import ArgumentError, near

from ._model import Field, Input, Model, State


def checked_size(model: Model, size: Sequence[int] | None) -> tuple[int, ...]:
    """The grid, as plain whole numbers that suit the model."""
    found = model.size if size is None else size
    found = tuple(found) if isinstance(found, Sequence) else (found,)
    # NumPy's whole numbers count as such, True and 2.0 do not.
    if not all(isinstance(n, Integral) and not isinstance(n, bool) and n >= 1 for n in found):
        raise ArgumentError(
            f"`size` is one positive whole number for each dim, got {size!r}; write it as "
            f"{model.size}"
        )
    found = tuple(int(n) for n in found)
    if len(found) not in model.ranks:
        ranks = " or ".join(map(str, model.ranks))
        square = f"; a square is {found * model.ranks[0]}" if len(found) == 1 else ""
        raise ArgumentError(
            f"{type(model).__name__} runs in {ranks} dims, but `size` {found} has {len(found)}"
            f"{square}"
        )
    for field in model.fields:
        _check_faces(field, found, model.radius)
    model.check(found)
    return found


def _check_faces(field: Field, size: tuple[int, ...], radius: int) -> None:
    for n, sides in zip(size, field.faces(len(size)), strict=True):
        least = max(
            {"neumann": radius, "mirror": radius + 1}.get(str(face), 1) for face in sides
        )
        if n < least:
            named = next(face for face in sides if isinstance(face, str))
            raise ArgumentError(
                f"`size` {size} has {n} cells along an axis where the field `{field.name}` has "
                f"the boundary {named}: with a radius of {radius} it needs at least {least}"
            )


def whole_number(name: str, value: object, least: int, most: int | None = None) -> int:
    """A whole number within bounds; NumPy's count as such, True and 2.0 do not."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise ArgumentError(f"`{name}` must be a whole number, got {value!r}")
    found = int(value)
    if found < least:
        raise ArgumentError(f"`{name}` must be at least {least}, got {found}")
    if most is not None and found > most:
        raise ArgumentError(f"`{name}` must be at most {most}, got {found}")
    return found


def expect_flag(name: str, value: object) -> None:
    """Refuse what is neither true nor false: most texts would count as true."""
    if not isinstance(value, bool):
        raise ArgumentError(f"`{name}` must be True or False, got {value!r}")


def expect_callable(name: str, value: object, called_with: str) -> None:
    """Refuse what cannot be called."""
    if not callable(value):
        raise ArgumentError(f"`{name}` must be a function of {called_with}, got {brief(value)}")


def brief(value: Any) -> str:
    """A value for an error text: of tensors and arrays only type, shape and dtype."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{type(value).__name__} {tuple(value.shape)} of {value.dtype}"
    if isinstance(value, list | tuple):
        parts = [*map(brief, value[:4]), *["..."] * (len(value) > 4)]
        return f"[{', '.join(parts)}]"
    return f"a {type(value).__name__}" if isinstance(value, Mapping) else repr(value)


def checked_path(name: str, path: object) -> Path:
    """A path that names a file or folder."""
    if not isinstance(path, str | PathLike) or not str(path):
        raise ArgumentError(f"`{name}` must be a path, got {path!r}")
    return Path(path)


def checked_device(device: str | torch.device | None) -> torch.device:
    """The device, once something could be put there."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(device)
        torch.empty(1, device=found)
    except (RuntimeError, AssertionError, TypeError) as problem:
        reason = str(problem).splitlines()[0]
        raise ArgumentError(
            f"the device {str(device)!r} cannot be used here: {reason}"
        ) from None
    if found.type == "meta":
        raise ArgumentError("the device 'meta' holds no numbers; use 'cpu' or 'cuda'")
    return found


def given_tensors(what: str, given: object) -> State:
    """Arguments given by name, as tensors of real numbers."""
    if not isinstance(given, Mapping):
        got = brief(given) if isinstance(given, Tensor) else type(given).__name__
        raise ArgumentError(f"`{what}` must be a dict from names to tensors, got {got}")
    found: State = {}
    for name, value in given.items():
        try:
            found[name] = torch.as_tensor(value)
        except (TypeError, ValueError, RuntimeError) as problem:
            reason = str(problem).splitlines()[0]
            raise ArgumentError(f"`{name}` in `{what}` is not a tensor: {reason}") from None
        if found[name].is_complex():
            raise ArgumentError(
                f"`{name}` in `{what}` is complex ({found[name].dtype}), and cells hold real "
                "numbers; give `.real` and `.imag` as two components"
            )
    return found


def expect_whole(what: str, name: str, x: Tensor, kept: torch.dtype) -> None:
    """Refuse fractions for what is kept as whole numbers: they would be cut off."""
    if x.is_floating_point() and not kept.is_floating_point and kept != torch.bool:
        raise ArgumentError(
            f"`{name}` in `{what}` has the type {x.dtype}, but whole numbers are kept there; "
            f"give `.to({kept})`"
        )


def named_tensors(
    what: str,
    model: Model,
    kinds: Sequence[Field | Input],
    given: Mapping[str, Tensor],
    size: tuple[int, ...],
    batch: tuple[int, ...] = (),
    *,
    whole: bool = False,
) -> State:
    """Given tensors by name as `[*batch, components, *space]`, their shapes checked."""
    given = given_tensors(what, given)
    known = {kind.name: kind for kind in kinds}
    for name in known:
        if whole and name not in given:
            raise ArgumentError(f"{type(model).__name__} needs `{name}` in `{what}`")
    for name in given:
        if name not in known:
            shown = name if isinstance(name, str) else brief(name)
            raise ArgumentError(
                f"{type(model).__name__} has no {what} `{shown}`{near(name, known)} "
                f"(it has {', '.join(known) or 'none'})"
            )
    sizes = {f"n{i}": n for i, n in enumerate(size)}
    space = " ".join(sizes)
    found: State = {}
    for name, value in given.items():
        parts = known[name].components
        x = value
        lead = f"{batch[0]} " if batch and x.ndim == len(size) + (parts > 1) + 1 else ""
        contract = Contract(f"{lead}{parts} {space}" if parts > 1 else f"{lead}{space}")
        try:
            contract.check(x, sizes)
        except ContractError as problem:
            raise ArgumentError(f"`{name}` in `{what}` does not match: {problem}") from None
        found[name] = x if parts > 1 else x.unsqueeze(-len(size) - 1)
    return found
