"""Arguments of a simulation: what fits the model, and clear words for what does not."""

import difflib
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from pathlib import Path

import torch
from torch import Tensor

from hotgrid.config import current
from hotgrid.contracts import Contract, ContractError
from hotgrid.errors import ArgumentError

from ._model import Field, Input, Model, State


def checked_size(model: Model, size: Sequence[int] | None) -> tuple[int, ...]:
    found = model.size if size is None else size
    found = tuple(found) if isinstance(found, Sequence) else (found,)
    # NumPy's whole numbers count as such, True and 2.0 do not.
    if not all(isinstance(n, Integral) and not isinstance(n, bool) and n >= 1 for n in found):
        raise ArgumentError(f"`size` is one positive whole number for each dim, got {size!r}")
    found = tuple(int(n) for n in found)
    if len(found) not in model.ranks:
        ranks = " or ".join(map(str, model.ranks))
        raise ArgumentError(
            f"{type(model).__name__} runs in {ranks} dims, but `size` {found} has {len(found)}"
        )
    model.check(found)
    return found


def checked_device(device: str | torch.device | None) -> torch.device:
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(device)
        torch.empty(1, device=found)
    except (RuntimeError, AssertionError) as problem:
        reason = str(problem).splitlines()[0]
        raise ArgumentError(
            f"the device {str(device)!r} cannot be used here: {reason}"
        ) from None
    return found


def check_memory(
    model: Model, size: tuple[int, ...], device: torch.device, storage: torch.dtype, batch: int
) -> None:
    """Refuse a grid that cannot fit, before anything is allocated."""
    one = math.prod(size)
    fields = (
        sum(f.components * one * (f.dtype or storage).itemsize for f in model.fields) * batch
    )
    fixed = sum(k.components * one * (k.dtype or storage).itemsize for k in model.inputs)
    needed = 3 * fields + fixed
    on_gpu = device.type == "cuda"
    there = torch.cuda.mem_get_info(device)[0] if on_gpu else _free_memory()
    limit = current().memory.limit
    if needed > limit * there:
        raise ArgumentError(
            f"a grid of {'x'.join(map(str, size))} needs about {needed / 1e9:.1f} GB on "
            f"{device} (two buffers and a last good state), and {limit:.0%} of the free "
            f"{there / 1e9:.1f} GB may be used; take a smaller `size` or a narrower `storage`"
        )


def _free_memory() -> int:
    """Bytes of main memory that a program can have, the disk cache counted as free."""
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        return 1024 * int(text.split("MemAvailable:")[1].split()[0])
    except (OSError, IndexError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")


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
    known = {kind.name: kind for kind in kinds}
    for name in known:
        if whole and name not in given:
            raise ArgumentError(f"{type(model).__name__} needs `{name}` in `{what}`")
    for name in given:
        if name not in known:
            raise ArgumentError(
                f"{type(model).__name__} has no {what} `{name}`{near(name, known)} "
                f"(it has {', '.join(known) or 'none'})"
            )
    sizes = {f"n{i}": n for i, n in enumerate(size)}
    space = " ".join(sizes)
    found: State = {}
    for name, value in given.items():
        parts = known[name].components
        x = torch.as_tensor(value)
        lead = f"{batch[0]} " if batch and x.ndim == len(size) + (parts > 1) + 1 else ""
        contract = Contract(f"{lead}{parts} {space}" if parts > 1 else f"{lead}{space}")
        try:
            contract.check(x, sizes)
        except ContractError as problem:
            raise ArgumentError(f"`{name}` in `{what}` does not fit: {problem}") from None
        found[name] = x if parts > 1 else x.unsqueeze(-len(size) - 1)
    return found


def near(word: str, words: Iterable[str]) -> str:
    """`; did you mean ...?` when a word is close to one of `words`, else nothing."""
    close = difflib.get_close_matches(word, list(words), n=1)
    return f"; did you mean `{close[0]}`?" if close else ""
