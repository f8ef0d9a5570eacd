"""The kernel of `PersistentStep` for a CPU, with a context for each of a GPU's threads."""

import ctypes
import hashlib
import subprocess
from pathlib import Path

from hotgrid.chat._generate._fused._persistent import (
    FILES,
    FOLDER,
    Call,
    PersistentStep,
    persistable,
    shape,
    words_of,
)

HERE = Path(__file__).parent
TURNS = 50_000_000


def library(folder: Path, given: dict[str, int]) -> ctypes.CDLL:
    """The kernel for a shape."""
    flags = [f"-D{name}={number}" for name, number in given.items()]
    sources = [HERE / "decode_on_cpu.h", *(FOLDER / name for name in FILES)]
    sources.append(HERE / "decode_on_cpu.cpp")
    name = hashlib.sha256(" ".join(flags).encode()).hexdigest()[:16]
    source, made = folder / f"{name}.cpp", folder / f"{name}.so"
    if not made.exists():
        source.write_text("\n".join(each.read_text("utf-8") for each in sources))
        command = ["g++", "-std=c++17", "-O1", "-Wall", "-Werror", "-Wno-unknown-pragmas"]
        subprocess.run([*command, "-shared", "-fPIC", *flags, "-o", made, source], check=True)
    loaded = ctypes.CDLL(str(made))
    loaded.words.restype = ctypes.c_long
    loaded.run.argtypes = [ctypes.POINTER(Call), ctypes.c_uint, ctypes.c_long]
    return loaded


class StepOnCpu(PersistentStep):
    """A `PersistentStep` whose threads take turns at random."""

    def __init__(self, folder: Path, *given, blocks: int = 3, warps: int = 2, seed: int = 0):
        model, caches = given[:2]
        assert persistable(model, caches)
        numbers = shape(model, blocks, 100_000, warps)
        # A small ring, which is full and empty often.
        numbers["SLOTS"] = min(numbers["SLOTS"], 32)
        self._library, self._seed = library(folder, numbers), seed
        assert self._library.words() <= words_of(numbers)
        super().__init__(*given, given=numbers)

    def _start(self, call: Call) -> None:
        self._seed += 1
        if self._library.run(ctypes.byref(call), self._seed, TURNS):
            raise TimeoutError("the kernel does not end")
