"""Writing columns to a folder, to compute them once."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hotgrid.data._plan import ColumnType, Order, Plan
from hotgrid.data._sources import CachedColumns
from hotgrid.data._sources._columns import FORMAT
from hotgrid.errors import ArgumentError, MissingPartError
from hotgrid.files import whole_folder

from ._plan_batches import PlanBatches
from ._stamps import changed, stamps

_AT_ONCE = 256


def cache_columns(
    plan: Plan,
    folder: Path | str,
    columns: Sequence[str] | None = None,
    *,
    workers: int | None = None,
) -> Plan:
    r"""Compute columns once, write them to a folder, and return the plan that reads them.

    Damaged samples are left out of the cache, up to the limit of the plan. Columns of numbers
    with a fixed shape are `.npy` files; others are Arrow files and need
    `pip install 'hotgrid[parquet]'`. A folder that holds the same columns of the same plan is
    used as it is, unless its sources have changed since; they may be gone.

    Args:
        plan: The plan.
        folder: Where to write; it must not exist, or be this cache.
        columns: Which columns; by default those that the plan yields. Steps that need others
            than these cannot run on the cache.
        workers: How many threads.

    Returns:
        The plan with the folder as its source and the steps that remain.

    Raises:
        ArgumentError: A column depends on random numbers, a text is not UTF-8, or the folder
            holds something else, is out of date or cannot be written.
        StoreError: The disk is full or failed.

    Example:
        >>> _ = Path("a.jsonl").write_text('{"text": "hello"}\n{"text": "you"}\n')
        >>> plan = Plan(JsonLines(("a.jsonl",), {"text": "text"}))
        >>> plan = plan.then("length", "text", "letters")
        >>> print(cache_columns(plan, "cached").graph())
        columns cached
          letters  int64
        yields letters
    """
    folder = Path(folder)
    whole = plan.types()
    chosen = [*plan.yielded()] if columns is None else list(columns)
    once = replace(plan, order=Order(shuffle=False)).yielding(*chosen)
    once = replace(once, corrupt="raise" if plan.corrupt == "raise" else "drop")
    random = [step for step in once.needed(chosen) if step.build().random]
    if random:
        raise ArgumentError(
            f"operator `{random[0].operator}` is random, so its output cannot be cached; "
            "cache the columns before it"
        )
    said = once.fingerprint()
    if not _is_cache(folder, said, once):
        _write(once, {name: whole[name] for name in chosen}, folder, said, workers)
    left = tuple(step for step in plan.steps if not {*step.outputs.values()} <= {*chosen})
    wanted = plan.yields or tuple(plan.yielded())
    cached = Plan(
        CachedColumns(str(folder)), left, wanted, plan.order, plan.corrupt, plan.most_corrupt
    )
    needed = cached.needed(wanted)
    cached = replace(cached, steps=needed)
    cached.yielded()
    return cached


def _is_cache(folder: Path, said: str, plan: Plan) -> bool:
    if not folder.exists():
        return False
    about = CachedColumns(str(folder))._read()
    if about.get("plan") != said:
        raise ArgumentError(
            f"`{folder}` holds columns of another plan; choose another folder or remove it"
        )
    # Caches of earlier versions do not say what they were made from.
    before = about.get("sources")
    if isinstance(before, dict) and (path := changed(before, plan.source, folder)):
        raise ArgumentError(
            f"`{path}` has changed since its columns were written to `{folder}`; remove that "
            "folder to compute them again, or choose another"
        )
    return True


def _write(
    plan: Plan, types: dict[str, ColumnType], folder: Path, said: str, workers: int | None
) -> None:
    # Before they are read: a change meanwhile is noticed next time.
    made_from = stamps(plan.source, folder)
    with whole_folder(folder) as aside:
        with PlanBatches(
            plan, _AT_ONCE, last="short", epochs=1, workers=workers, pad=False
        ) as batches:
            writers = {
                name: (_Fixed if kind.fixed else _Ragged)(aside, name, kind, batches.samples)
                for name, kind in types.items()
            }
            for batch in batches:
                for name, writer in writers.items():
                    writer.add(batch[name])
            count = {writer.close() for writer in writers.values()}.pop()
            about = {"format": FORMAT, "plan": said, "samples": count, "facts": batches.facts}
        about["sources"] = made_from
        about["columns"] = {name: str(kind) for name, kind in types.items()}
        (aside / "columns.json").write_text(json.dumps(about, indent=2) + "\n", "utf-8")


class _Fixed:
    """A column of equal shapes, as one array."""

    def __init__(self, folder: Path, name: str, kind: ColumnType, samples: int) -> None:
        self._path = folder / f"{name}.npy"
        self._array = np.lib.format.open_memmap(
            self._path, "w+", kind.dtype, (samples, *kind.sizes)
        )
        self._at = 0

    def add(self, values: Any) -> None:
        self._array[self._at : self._at + len(values)] = values.numpy()
        self._at += len(values)

    def close(self) -> int:
        self._array.flush()
        if self._at < len(self._array):
            # Some samples were damaged.
            shorter = self._path.with_suffix(".short.npy")
            np.save(shorter, self._array[: self._at])
            shorter.replace(self._path)
        return self._at


class _Ragged:
    """A column of objects or of arrays that differ in size, as an Arrow file."""

    def __init__(self, folder: Path, name: str, kind: ColumnType, samples: int) -> None:
        try:
            import pyarrow as arrow
        except ImportError:
            raise MissingPartError(
                f"column `{name}` of {kind} is cached as Arrow: pip install 'hotgrid[parquet]'"
            ) from None
        self._arrow, self._kind, self._at = arrow, kind, 0
        plain = {"bytes": arrow.large_binary(), "text": arrow.large_string()}
        plain["json"] = arrow.large_string()
        fields = [(name, plain.get(kind.kind) or arrow.large_list(_number(arrow, kind)))]
        if len(kind.shape) > 1:
            fields.append(("shape", arrow.list_(arrow.int64())))
        self._schema = arrow.schema(fields)
        self._writer = arrow.ipc.new_file(str(folder / f"{name}.arrow"), self._schema)

    def add(self, values: Any) -> None:
        columns: list[Any] = [list(values)]
        if self._kind.kind == "json":
            columns = [[json.dumps(value) for value in values]]
        elif self._kind.dtype is not None:
            arrays = [np.asarray(value) for value in values]
            columns = [[array.ravel() for array in arrays]]
            if len(self._kind.shape) > 1:
                columns.append([list(array.shape) for array in arrays])
        try:
            parts = [
                self._arrow.array(column, field.type)
                for column, field in zip(columns, self._schema, strict=True)
            ]
        except UnicodeEncodeError as problem:
            raise ArgumentError(
                f"column `{self._schema[0].name}` has the text {problem.object!r}, which is no "
                "UTF-8 and cannot be cached; rename the file, or cache other columns"
            ) from None
        self._writer.write_batch(self._arrow.record_batch(parts, schema=self._schema))
        self._at += len(values)

    def close(self) -> int:
        self._writer.close()
        return self._at


def _number(arrow: Any, kind: ColumnType) -> Any:
    return arrow.from_numpy_dtype(kind.dtype)
