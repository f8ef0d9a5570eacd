"""`load_partial`: weights into a module; strict by default."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from hotgrid.errors import ArgumentError, near
from hotgrid.train._optimizers import expect_shapes

from ._entries import Entries, Selector
from ._files import expect_tensors, read_weights
from ._rename import Rename, renamed

_SHOWN = 10


@dataclass(frozen=True)
class LoadReport:
    """The report of `load_partial`; print it.

    Attributes:
        source: The file, or `a table of tensors`.
        loaded: Paths that were filled.
        missing: Paths that were to be filled and are not in the source.
        unexpected: Names in the source that the module does not have.
        mismatched: Paths with another shape or kind of number in the source, with both.
        skipped: Paths in the source that `only` or `skip` excluded.
    """

    source: str
    loaded: tuple[str, ...]
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    mismatched: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.source}: {len(self.loaded)} loaded"]
        for kind in ("missing", "unexpected", "mismatched", "skipped"):
            names = getattr(self, kind)
            if names:
                more = f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
                lines.append(f"  {len(names)} {kind}: {', '.join(names[:_SHOWN])}{more}")
        return "\n".join(lines)


def load_partial(
    module: nn.Module,
    source: str | Path | Mapping[str, Tensor],
    *,
    only: Selector | None = None,
    skip: Selector | None = None,
    allow_missing: Selector | bool = False,
    rename: Rename | None = None,
) -> LoadReport:
    """Load weights into a module, all of them or a part.

    Strict by default: every parameter and buffer must be in the source with its shape, and
    nothing else. Nothing is changed if something is wrong. Numbers are converted to the
    dtype and device of the module. Reading a file never runs code from it.

    Args:
        module: The module, wrapped or not; names are those without wrappers.
        source: A `.safetensors` file, a file of `torch.save`, or a table of tensors.
        only: A selector of the tensors to load; the source may then hold others as well.
        skip: A selector of the tensors to leave as they are.
        allow_missing: A selector of tensors that the source may lack; True for all.
        rename: From names in the source to those of the module: a table of dotted
            beginnings, such as `{"transformer": "gpt"}`, where `""` stands for every name or
            removes the beginning, and None drops it; or a function that returns a name or
            None.

    Returns:
        What was loaded, missing, unexpected, mismatched and skipped.

    Raises:
        ArgumentError: The source does not match, with the whole report; there is no such
            file; a selector selects nothing.
        DamagedError: The file cannot be read, or holds code.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
        >>> _ = save_weights(model, "model.safetensors")
        >>> print(load_partial(model, "model.safetensors", skip="//Linear[2]"))
        model.safetensors: 2 loaded
          2 skipped: 1.weight, 1.bias
    """
    expect_shapes(module)
    place, given = _read(source)
    given = renamed(given, rename, place)
    entries = Entries(module)
    wanted = set(entries.chosen(only, skip))
    allowed = set(entries.tensors) if allow_missing is True else set()
    if not isinstance(allow_missing, bool):
        allowed = entries.covered(allow_missing)

    found: dict[str, Tensor] = {}
    unfit: dict[str, str] = {}
    for name, tensor in given.items():
        first = entries.first.get(name)
        if first is None or first not in wanted:
            continue
        if problem := _mismatch(entries.tensors[first], tensor, found.get(first)):
            unfit[first] = f"{name} ({problem})"
        else:
            found[first] = tensor
    in_order = [path for path in entries.tensors if path in wanted]
    report = LoadReport(
        source=place,
        loaded=tuple(path for path in in_order if path in found and path not in unfit),
        missing=tuple(path for path in in_order if path not in found and path not in unfit),
        unexpected=tuple(name for name in given if name not in entries.first),
        mismatched=tuple(unfit[path] for path in in_order if path in unfit),
        skipped=tuple(
            path
            for path, first in entries.first.items()
            if path in given and first not in wanted
        ),
    )
    lacking = [path for path in report.missing if path not in allowed]
    if not report.loaded and not unfit and not lacking:
        raise ArgumentError(
            f"nothing would be loaded. {report}\nChange `only`, `skip` or `rename`"
        )
    if lacking or unfit or (report.unexpected and only is None):
        raise ArgumentError(_refusal(report, lacking, only is None, list(entries.tensors)))
    with torch.no_grad():
        for path in report.loaded:
            _fill(entries.tensors[path], found[path])
    return report


def _read(source: str | Path | Mapping[str, Tensor]) -> tuple[str, dict[str, Tensor]]:
    if isinstance(source, str | Path):
        return str(source), read_weights(Path(source))
    return "a table of tensors", expect_tensors(source, "`source`")


def _mismatch(target: Tensor, tensor: Tensor, other: Tensor | None) -> str:
    if target.is_meta:
        return "on the meta device, without memory: call `module.to_empty` first"
    if tensor.is_meta or tensor.layout != torch.strided or tensor.is_quantized:
        kind = "on the meta device" if tensor.is_meta else "sparse or quantized"
        return f"{kind} in the source; give a dense tensor"
    if target.shape != tensor.shape:
        return f"{tuple(tensor.shape)} instead of {tuple(target.shape)}"
    if _kind(target) != _kind(tensor) or _overflows(target, tensor):
        return f"{tensor.dtype} instead of {target.dtype}"
    if other is not None and not torch.equal(_wide(other), _wide(tensor)):
        return "shared in the module, and differs from the other name in the source"
    return ""


def _kind(tensor: Tensor) -> tuple[bool, bool]:
    return tensor.is_floating_point(), tensor.is_complex()


def _overflows(target: Tensor, tensor: Tensor) -> bool:
    """Whether a number does not fit, as large ones in float16, or 300 in uint8."""
    if tensor.dtype == target.dtype or not tensor.numel():
        return False
    if not (target.is_floating_point() or target.is_complex()):
        # NumPy knows the range of every dtype of torch, and Python compares them.
        numbers = tensor.cpu().numpy()
        kind = target.dtype
        low, high = (
            (0, 1) if kind == torch.bool else (torch.iinfo(kind).min, torch.iinfo(kind).max)
        )
        return int(numbers.min()) < low or int(numbers.max()) > high
    kept = _wide(tensor)
    finite = kept.isfinite()
    if target.itemsize == 1:
        # Their casts saturate.
        return bool((finite & (kept.abs() > torch.finfo(target.dtype).max)).any())
    return bool((finite & ~kept.to(target.dtype).isfinite()).any())


def _wide(tensor: Tensor) -> Tensor:
    """Floats of 8 bits, for which torch has no functions, as float32; others unchanged."""
    return tensor.float() if tensor.is_floating_point() and tensor.itemsize == 1 else tensor


def _refusal(report: LoadReport, lacking: list[str], strict: bool, known: list[str]) -> str:
    ways = []
    if lacking:
        ways.append("`allow_missing=` a selector of what may be missing")
    if report.mismatched:
        ways.append("`skip=` a selector of what does not fit")
    if report.unexpected and strict:
        close = near(report.unexpected[0], known, " (nearest: `{}`)")
        ways.append(f"`rename=` for unexpected names{close}, or `only=` a selector")
    return f"nothing was loaded: the source does not match. {report}\nUse {'; '.join(ways)}"


def _fill(target: Tensor, source: Tensor) -> None:
    layout: Any = target
    if hasattr(target, "to_local"):
        from torch.distributed.tensor import distribute_tensor

        # Every rank has read the source: nothing needs to be sent.
        mine = source.to(device=target.device, dtype=target.dtype)
        part: Any = distribute_tensor(
            mine, layout.device_mesh, layout.placements, src_data_rank=None
        )
        layout.to_local().copy_(part.to_local())
        return
    target.copy_(source)
