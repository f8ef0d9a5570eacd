"""Kernels of earlier processes, found by the operations of a step.

Torch caches what it compiled, but to look there it imports its compiler and traces the step
again: five of eight seconds to a first step. Here a piece of a step is run uncompiled, and
every operation is recorded with its numbers and its layout. The same record on the same kind
of machine identifies the same kernel, which is stored beside torch's own files. Before it is
used it must reproduce that piece: bit by bit, if it did so when it was compiled. Functions such
as `exp` are rounded differently in a kernel; then the piece must be close to the uncompiled
one, and have the bits of the first time if it starts from the same numbers.
"""

import contextlib
import hashlib
import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hotgrid import _native
from hotgrid.config import current
from hotgrid.errors import ArgumentError
from hotgrid.files import whole_file
from hotgrid.grid.forms._form import compiled_code_folder
from hotgrid.tensors._torch_private import TorchDispatchMode

from ._launch import Launch
from ._replay import MOST_NUMBERS
from ._tape import close, put_back, same_bits


@dataclass(frozen=True)
class _Entry:
    """The description of a stored kernel.

    Attributes:
        library: The digest of its file; empty if the core cannot launch it.
        places: For a step out of either buffer, buffer and byte of every argument.
        strides: As in `Launch`.
        seconds: What compiling it took.
        exact: Whether it made the bits of the uncompiled piece.
        given: The digest of what the piece was computed from.
        made: The digest of the piece.
    """

    library: str
    places: list[list[list[int]]]
    strides: list[int]
    seconds: float
    exact: bool
    given: str
    made: str


class PieceTrial:
    """A piece of a step, made uncompiled out of either buffer.

    Arguments:
        plain: Makes it, out of the first or the second buffer.
        outs: What it then writes; it is restored afterwards.
        buffers: All that it reads and writes, each in a storage of its own.
        cells: How many cells it has.
        around: How many more it reads.
    """

    def __init__(
        self,
        plain: Callable[[int], object],
        outs: Sequence[Sequence[Tensor]],
        buffers: Sequence[Tensor],
        cells: int,
        around: int = 0,
    ) -> None:
        self._outs = outs
        self._buffers = buffers
        self._cells = cells
        folder = compiled_code_folder()
        with put_back(outs[0]), _Notes(buffers) as notes:
            plain(0)
        self._right = [x for old in (0, 1) for x in self._written(plain, old)]
        name = _digest(notes.lines) if notes.tell_all else None
        self._file = folder / "kernels" / name if folder and name else None
        # Planes are flat: a piece reads the first cells of each.
        read = [x[..., : cells + around] if x.ndim else x for x in buffers]
        self._given = _bits(read)

    @property
    def in_vain(self) -> bool:
        """Whether an earlier process found that the core cannot launch this step."""
        entry = self._entry()
        return entry is not None and not entry.library

    def known(self) -> tuple[Launch, float] | None:
        """The kernel of an earlier process, and the seconds that compiling it took."""
        entry = self._entry()
        if self._file is None or entry is None:
            return None
        library = self._file.with_suffix(".so")
        try:
            whole = hashlib.sha256(library.read_bytes()).hexdigest() == entry.library
        except OSError:
            return None
        pointers = [self._pointers(places) for places in entry.places]
        if not whole or len(pointers) != 2 or not all(pointers):
            return None
        launch = Launch(str(library), pointers, entry.strides)
        made = self._made_by(launch)
        if made is None or (entry.exact and not self._is_exact(made)):
            return None
        if entry.given == self._given and entry.made != _bits(made):
            return None
        return launch, entry.seconds

    def keep(self, launch: Launch, seconds: float) -> None:
        """Keep a kernel for later processes, where it comes close to the uncompiled piece."""
        places = [[self._place(at) for at in pointers] for pointers in launch.pointers]
        if self._file is None or None in [x for each in places for x in each]:
            return
        made = self._made_by(launch)
        if made is None:
            return
        entry = _Entry(
            library=hashlib.sha256(Path(launch.file).read_bytes()).hexdigest(),
            places=places,  # pyright: ignore[reportArgumentType]
            strides=launch.strides,
            seconds=seconds,
            exact=self._is_exact(made),
            given=self._given,
            made=_bits(made),
        )
        self._write(self._file, entry, launch.file)

    def give_up(self) -> None:
        """Record for later processes that the core cannot launch this step."""
        if self._file is not None:
            self._write(self._file, _Entry("", [], [], 0.0, False, "", ""))

    def _entry(self) -> _Entry | None:
        if self._file is None:
            return None
        try:
            return _Entry(**json.loads(self._file.with_suffix(".json").read_text()))
        except (OSError, ValueError, TypeError):
            return None

    @staticmethod
    def _write(file: Path, entry: _Entry, library: str | None = None) -> None:
        # A cache that cannot be written is not used.
        with contextlib.suppress(ArgumentError, OSError):
            if library is not None:
                with whole_file(file.with_suffix(".so")) as aside:
                    shutil.copyfile(library, aside)
            with whole_file(file.with_suffix(".json")) as aside:
                aside.write_text(json.dumps(asdict(entry)))

    def _made_by(self, launch: Launch) -> list[Tensor] | None:
        """The results of a kernel from either buffer; None where there are none."""
        kernel = launch.kernel()
        if kernel is None:
            return None
        piece = self._cells
        sweep = _native.core().Sweep(kernel, None, None, piece, piece, 0, piece, 1)
        made = [x for old in (0, 1) for x in self._written(lambda k: sweep.run(k, 1), old)]
        return made if all(map(close, made, self._right)) else None

    def _is_exact(self, made: Sequence[Tensor]) -> bool:
        return all(map(same_bits, made, self._right))

    def _written(self, make: Callable[[int], object], old: int) -> list[Tensor]:
        """The planes that a step from one buffer writes into the other."""
        with put_back(self._outs[old]):
            for out in self._outs[old]:
                out.fill_(1)
            make(old)
            return [out.clone() for out in self._outs[old]]

    def _place(self, pointer: int) -> list[int] | None:
        for k, buffer in enumerate(self._buffers):
            storage = buffer.untyped_storage()
            if 0 <= pointer - storage.data_ptr() < storage.nbytes():
                return [k, pointer - storage.data_ptr()]
        return None

    def _pointers(self, places: Iterable[Sequence[int]]) -> list[int]:
        """The addresses of arguments in this process; empty if one is not found."""
        found: list[int] = []
        for buffer, byte in places:
            if not 0 <= buffer < len(self._buffers):
                return []
            storage = self._buffers[buffer].untyped_storage()
            if not 0 <= byte < storage.nbytes():
                return []
            found.append(storage.data_ptr() + byte)
        return found


class _Notes(TorchDispatchMode):
    """Every operation of a call: its name, its numbers, and where its tensors come from."""

    def __init__(self, buffers: Sequence[Tensor]) -> None:
        super().__init__()
        self._buffers = {x.untyped_storage().data_ptr(): k for k, x in enumerate(buffers)}
        # Kept alive: a tensor is known by its address.
        self._made: dict[int, tuple[int, Tensor]] = {}
        self.lines: list[str] = []
        self.tell_all = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False: torch would import dynamo just to skip it, which takes two seconds."""
        return False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        self.lines.append(f"{func} {self._said(args)} {self._said(kwargs or {})}")
        result = func(*args, **(kwargs or {}))
        made = result if isinstance(result, tuple | list) else [result]
        # A step that reads a number may do something else the next time.
        self.tell_all &= all(isinstance(x, Tensor) for x in made)
        for x in made:
            if isinstance(x, Tensor):
                self._made.setdefault(id(x), (len(self._made), x))
        return result

    def _said(self, x: Any) -> str:
        if isinstance(x, Tensor):
            return self._known(x)
        if isinstance(x, Mapping):
            return str([(name, self._said(value)) for name, value in sorted(x.items())])
        if isinstance(x, tuple | list):
            return str([self._said(each) for each in x])
        return repr(x)

    def _known(self, x: Tensor) -> str:
        layout = f"{x.dtype} {tuple(x.shape)} {x.stride()} {x.storage_offset()}"
        buffer = self._buffers.get(x.untyped_storage().data_ptr())
        if buffer is not None:
            return f"buffer {buffer} {layout}"
        if id(x) in self._made:
            return f"made {self._made[id(x)][0]} {layout}"
        self.tell_all &= x.numel() <= MOST_NUMBERS
        return f"{x.tolist() if x.numel() <= MOST_NUMBERS else '?'} {layout}"


def _bits(tensors: Sequence[Tensor]) -> str:
    """A digest of numbers."""
    found = hashlib.sha256()
    for x in tensors:
        found.update(x.contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def _digest(lines: Sequence[str]) -> str:
    # The number grows when steps are compiled in another way.
    text = "\n".join(["2", *_machine(), str(current().compile.max_fusion_size), *lines])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@cache
def _machine() -> tuple[str, ...]:
    """The versions and the processor that a library depends on besides the step."""
    found = [torch.__version__, sys.version, platform.platform(), platform.processor()]
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        words = ("flags", "Features", "CPU part", "CPU implementer", "model name")
        found += sorted({line for line in lines if line.startswith(words)})
    return (*found, os.name)
