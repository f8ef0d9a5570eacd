"""One save, by all ranks together: written aside, checked, and renamed."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotgrid.config import logger
from hotgrid.errors import ArgumentError, DamagedError, HotgridError, StoreError
from hotgrid.files import sync_folder

from ._group import Group, all_or_raise
from ._load import check_step
from ._manifest import MANIFEST, FileRecord, Manifest, manifest_bytes
from ._places import Aside, remove_leftovers, step_folder
from ._shard import Region, Shard, Spec, as_shards, described, planned, write_shard_file

if TYPE_CHECKING:
    from torch import Tensor

    from ._staging import Staging


class Save:
    """A save that has begun: all ranks agree on its contents, nothing is written yet.

    All ranks make it, and all call `finish`.

    Raises:
        ArgumentError: Something cannot be saved, or the step already exists.
        StoreError: The folder cannot be written.
    """

    def __init__(
        self,
        folder: Path,
        group: Group,
        step: int,
        tensors: Mapping[str, Tensor | Shard],
        extra: Mapping[str, Any],
    ) -> None:
        self.step = step
        self._folder, self._group, self._extra = folder, group, dict(extra)
        self._aside: Aside | None = None
        self._no_memory: Exception | None = None
        self._staging: Staging | None = None
        self._lent: dict[str, tuple[Tensor, int]] = {}
        try:
            shards = all_or_raise(group, lambda: self._begun(tensors))
            self._agree_on_plan(shards)
        except BaseException:
            self._clean()
            raise
        self._tensors = {name: shards[name].tensor for name in self._mine}

    def _begun(self, tensors: Mapping[str, Tensor | Shard]) -> dict[str, Shard]:
        shards = as_shards(tensors)
        if self._group.rank == 0:
            try:
                check_json("extra", self._extra)
            except RecursionError:
                raise ArgumentError(
                    "`extra` contains itself, or is nested too deeply"
                ) from None
            # A copy: the caller may change its own while a thread writes.
            self._extra = json.loads(json.dumps(self._extra))
            with _writable(self._folder):
                make_room(self._folder, self.step)
                self._aside = Aside(self._folder, self.step)
        return shards

    def _agree_on_plan(self, shards: Mapping[str, Shard]) -> None:
        name = self._aside.path.name if self._aside else None
        answers = self._group.gather_json([self.step, name, described(shards)])
        steps = [step for step, _, _ in answers]
        if len(set(steps)) > 1:
            raise ArgumentError(f"the ranks save different steps: {steps}")
        self._path = self._folder / str(answers[0][1])
        plan = planned([description for _, _, description in answers])
        self._specs: Mapping[str, Spec] = plan.tensors
        self._mine: Mapping[str, Region] = plan.writes[self._group.rank]

    def stage(self, staging: Staging, *, copy: bool) -> None:
        """Take what this rank will write, so that the caller can continue.

        Args:
            staging: Where copies are kept.
            copy: Whether the caller may change its tensors.
        """
        self._staging = staging
        given = self._tensors
        try:
            self._tensors = staging.copies(given, lent=not copy)
            self._lent = {
                name: (tensor, _changes(tensor))
                for name, tensor in self._tensors.items()
                if tensor is given[name]
            }
        except (RuntimeError, MemoryError) as problem:
            # Raised when all ranks communicate next: the others will wait there.
            self._no_memory = StoreError(f"step {self.step} cannot be copied: {problem}")

    def finish(self) -> None:
        """Write, and move the checkpoint to its place.

        Raises:
            StoreError: A rank could not write. Nothing of this save is left.
        """
        final = step_folder(self._folder, self.step)
        try:
            record = all_or_raise(self._group, self._written)
            records = self._group.gather_json(record)
            all_or_raise(self._group, lambda: self._commit(records, final))
        finally:
            self._clean()

    def _written(self) -> list[Any] | None:
        """Write this rank's file; return name, size, checksums and contents."""
        if self._no_memory:
            raise self._no_memory
        if not self._path.is_dir():
            raise StoreError(
                f"`{self._path}`, which rank 0 made, is not there for rank {self._group.rank}: "
                "checkpoints need a folder that all hosts share"
            )
        if not self._tensors:
            return None
        name = f"rank-{self._group.rank:05d}.safetensors"
        aside = self._staging.beside() if self._staging else contextlib.nullcontext()
        with aside, _writable(self._path / name):
            written = write_shard_file(self._path / name, self._tensors)
            sync_folder(self._path)
        for lent, (tensor, changes) in self._lent.items():
            if _changes(tensor) != changes:
                raise StoreError(
                    f"`{lent}` was changed while step {self.step} was written, which is not "
                    "kept: save it with `copy=True`, or change it after `wait()`"
                )
        return [name, written.size, written.sums, self._mine]

    def _commit(self, records: list[Any], final: Path) -> None:
        """On rank 0, write the manifest last and show the checkpoint."""
        if self._group.rank != 0:
            return
        files = [
            FileRecord(name, size, sums, {n: Region(*map(tuple, r)) for n, r in mine.items()})
            for name, size, sums, mine in filter(None, records)
        ]
        manifest = manifest_bytes(Manifest(self.step, self._specs, files, self._extra))
        with _writable(self._path / MANIFEST):
            with (self._path / MANIFEST).open("xb") as file:
                file.write(manifest)
                file.flush()
                os.fsync(file.fileno())
            sync_folder(self._path)
            self._path.rename(final)
            sync_folder(self._folder)

    def _clean(self) -> None:
        self._tensors, self._lent = {}, {}
        if self._aside:
            self._aside.close()
            self._aside = None


def _changes(tensor: Tensor) -> int:
    """How often torch has written into a tensor, or into memory that it shares."""
    # Tensors of inference mode are not counted.
    return 0 if tensor.is_inference() else tensor._version


@contextlib.contextmanager
def _writable(path: Path) -> Iterator[None]:
    """Report what the system refused, and that nothing else is lost."""
    try:
        yield
    except HotgridError:
        raise
    except OSError as problem:
        text = f"cannot write `{path}`: {problem.strerror or problem}"
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            with contextlib.suppress(OSError):
                text += f" ({shutil.disk_usage(path.parent).free:,} bytes are left)"
        raise StoreError(f"{text}; earlier checkpoints are unchanged") from problem


def make_room(folder: Path, step: int) -> None:
    """Refuse to overwrite a good checkpoint; rename a damaged one."""
    remove_leftovers(folder)
    final = step_folder(folder, step)
    if not os.path.lexists(final):
        return
    try:
        check_step(folder, step, contents=True)
    except DamagedError as problem:
        aside = final.with_name(f"damaged-{final.name}-{uuid.uuid4().hex[:8]}")
        final.rename(aside)
        logger("store").warning("%s; it is now `%s`", problem, aside.name)
    else:
        raise ArgumentError(
            f"step {step} is saved in `{folder}` already, and a checkpoint is never "
            "overwritten: use another folder, or remove this one"
        )


def check_json(place: str, value: object) -> None:
    """Refuse values that JSON would not return unchanged, and say where they are.

    Raises:
        ArgumentError: Something is neither text, number, bool, None, list nor dict.
    """
    match value:
        case None | bool() | int() | float() | str():
            return
        case list() | tuple():
            for index, item in enumerate(value):
                check_json(f"{place}[{index}]", item)
        case dict():
            for key, item in value.items():
                if not isinstance(key, str):
                    raise ArgumentError(f"`{place}` has the key {key!r}: keys must be text")
                check_json(f"{place}[{key!r}]", item)
        case _:
            raise ArgumentError(
                f"`{place}` is a {type(value).__name__}, which JSON cannot hold: use "
                "numbers, text, lists and dicts, and save tensors as tensors"
            )
