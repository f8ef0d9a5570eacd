"""`Program`: CUDA C++ compiled at run time, by the library that PyTorch brings along."""

import ctypes
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from hotgrid.errors import ArgumentError

_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


def compiled(source: str, options: Sequence[str], capability: tuple[int, int]) -> bytes:
    """Compile CUDA C++ for a GPU.

    Raises:
        OSError: The library is missing.
        ArgumentError: The source is not correct; the message has the log.
    """
    library = _nvrtc()
    program = ctypes.c_void_p()
    held = library.nvrtcCreateProgram(
        ctypes.byref(program), source.encode(), b"decode.cu", 0, None, None
    )
    if held:
        raise ArgumentError(f"NVRTC takes no program: error {held}")
    flags = [f"--gpu-architecture=sm_{capability[0]}{capability[1]}", "-std=c++17", *options]
    given = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
    try:
        failed = library.nvrtcCompileProgram(program, len(flags), given)
        if failed:
            log = _text(library, program, "ProgramLog").decode(errors="replace")
            raise ArgumentError(f"NVRTC does not compile the kernel of decoding:\n{log}")
        return _text(library, program, "CUBIN")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


class Program:
    """A kernel on the current GPU whose blocks all run at once.

    Args:
        binary: What `compiled` returned.
        name: The name of the kernel.
        shared: Bytes of dynamic shared memory of a block.
    """

    def __init__(self, binary: bytes, name: str, shared: int) -> None:
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._module, self._function = ctypes.c_void_p(), ctypes.c_void_p()
        self._shared = shared
        self._call("cuModuleLoadData", ctypes.byref(self._module), binary)
        self._call(
            "cuModuleGetFunction", ctypes.byref(self._function), self._module, name.encode()
        )
        self._call("cuFuncSetAttribute", self._function, _DYNAMIC_SHARED, shared)

    def launch(self, blocks: int, threads: int, parameter: ctypes.Structure) -> None:
        """Start the kernel on the current stream, with one parameter, which is copied."""
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(parameter))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        # Blocks wait for one another: either all of them begin, or none.
        self._call(
            "cuLaunchCooperativeKernel", self._function, blocks, 1, 1, threads, 1, 1,
            self._shared, stream, parameters,
        )  # fmt: skip

    def _call(self, name: str, *given: Any) -> None:
        failed = getattr(self._driver, name)(*given)
        if failed:
            raise RuntimeError(f"{name} of the CUDA driver failed with error {failed}")


def _nvrtc() -> ctypes.CDLL:
    major = (torch.version.cuda or "").partition(".")[0]
    name = f"libnvrtc.so.{major}"
    packages = Path(torch.__file__).parents[1] / "nvidia"
    places = sorted(packages.glob(f"*/lib/{name}"))
    for place in itertools.chain((name,), map(str, places)):
        try:
            return ctypes.CDLL(place)
        except OSError:
            continue
    raise OSError(f"there is no {name}, neither among the system's libraries nor in {packages}")


def _text(library: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{what}")(program, buffer)
    return buffer.raw
