"""Probes of the machine: Python, processor, compiler, native core, installed parts."""

import ctypes
import importlib.metadata
import importlib.util
import os
import platform
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hotgrid
from hotgrid import _native

from ._finding import Finding

_PARTS = {
    "numpy": "moving data in and out of torch",
    "safetensors": "checkpoints",
    "matplotlib": "pictures",
    "cyclopts": "the command line",
    "rich": "the command line",
}

# The system's message, and Python's if no folder can be written.
_NO_SPACE = re.compile(r"No space left|quota exceeded|No usable temporary directory", re.I)

_ARM_PARTS = {
    ("0x41", "0xd08"): "Cortex-A72",
    ("0x41", "0xd0b"): "Cortex-A76",
    ("0x41", "0xd0c"): "Neoverse-N1",
    ("0x41", "0xd40"): "Neoverse-V1",
    ("0x41", "0xd49"): "Neoverse-N2",
    ("0x41", "0xd4f"): "Neoverse-V2",
}


def version() -> Iterator[Finding]:
    """Yield the version of hotgrid and where it was loaded from."""
    folder = Path(hotgrid.__file__).parent
    yield Finding("hotgrid", "version", hotgrid.__version__, detail=f"from {folder}")


def machine() -> Iterator[Finding]:
    """Yield Python, the platform and the processor."""
    yield Finding("machine", "python", platform.python_version(), detail=sys.executable)
    yield Finding("machine", "platform", platform.platform())
    total = os.cpu_count()
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else total
    cores = f"{usable} of {total} cores usable by this process"
    yield Finding("machine", "processor", _processor_name(), detail=cores)


def _processor_name() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    return processor_in(text) or platform.processor() or platform.machine()


def processor_in(cpuinfo: str) -> str | None:
    """Return the name of the processor in the text of /proc/cpuinfo, or None."""
    pairs = re.findall(r"^([^:\n]+?)\s*:[ \t]*(.+)$", cpuinfo, re.MULTILINE)
    facts = {key.casefold(): value for key, value in reversed(pairs)}
    if "model name" in facts:
        return facts["model name"]
    if "cpu part" not in facts:
        return None
    # On ARM the kernel gives numbers; the names are in the manuals of the manufacturers.
    maker, part = facts.get("cpu implementer", "?"), facts["cpu part"]
    return _ARM_PARTS.get((maker, part), f"ARM, implementer {maker}, part {part}")


def compiler() -> Iterator[Finding]:
    """Yield whether torch.compile will have a C++ compiler that works."""
    # The choice that Inductor makes.
    chosen = os.environ.get("CXX") or ("clang++" if sys.platform == "darwin" else "g++")
    problem = compile_problem(chosen)
    if problem is None:
        yield Finding("compiler", "C++", chosen, detail="builds and loads what Inductor writes")
        return
    way_out = "install g++ and the Python headers (Debian: apt install g++ python3-dev)"
    if _NO_SPACE.search(problem):
        folder = os.environ.get("TMPDIR", "/tmp")  # noqa: S108  named, not used
        way_out = f"free space in `{folder}`, or set TMPDIR to a folder on another disk"
    elif len(chosen.split()) > 1:
        # Inductor searches for a program of that whole name, and so does the probe.
        problem = "torch.compile takes CXX as one program, not as a command with arguments"
        way_out = f"set CXX to the compiler alone, such as {chosen.split()[-1]}"
    yield Finding(
        "compiler",
        "C++",
        f"{chosen} does not work",
        state="note",
        detail=f"{problem}; models run uncompiled, about ten times slower on the CPU",
        way_out=way_out,
    )


def compile_problem(compiler: str) -> str | None:
    """Build and load a library the way Inductor does; what went wrong, or None."""
    try:
        return _compile_problem(compiler)
    except OSError as error:  # no folder for the files
        return str(error)


def _compile_problem(compiler: str) -> str | None:
    with tempfile.TemporaryDirectory(prefix="hotgrid-doctor-") as folder:
        source, library = Path(folder, "probe.cpp"), Path(folder, "probe.so")
        source.write_text(
            "#include <Python.h>\n"
            "#include <omp.h>\n"
            'extern "C" int answer() { return omp_get_max_threads() > 0 ? 42 : 0; }\n'
        )
        headers = f"-I{sysconfig.get_path('include')}"
        flags = ["-std=c++17", "-shared", "-fPIC", "-fopenmp", headers]
        command = [compiler, *flags, str(source), "-o", str(library)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=60, check=False
            )
            if done.returncode:
                errors = [line for line in done.stderr.splitlines() if "error" in line]
                return (errors or [f"it exits with {done.returncode}"])[0].strip()
            if ctypes.CDLL(str(library)).answer() != 42:
                return "the library that it built gives wrong answers"
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    return None


def native_core() -> Iterator[Finding]:
    """Yield what the native core chose on this processor, or why it is absent."""
    reason = _native.missing()
    yield from _native_variables(reason)
    if reason is None:
        core = _native.core()
        features = [name for name, present in core.cpu_features().items() if present]
        detail = f"the processor has {', '.join(features) or 'no extensions that help'}"
        yield Finding("native core", "instructions", core.isa(), detail=detail)
        yield Finding("native core", "threads", str(core.threads()))
        return
    switched_off = reason.startswith("HOTGRID_NATIVE")
    built = importlib.util.find_spec("hotgrid._native._core") is not None
    why, _, way_out = reason.partition("; ")
    yield Finding(
        "native core",
        "core",
        "not in use",
        state="broken" if built and not switched_off else "note",
        detail=f"{why}; contracts and CPU kernels fall back to Python and torch",
        way_out=way_out,
    )


def _native_variables(missing: str | None) -> Iterator[Finding]:
    """Yield the variables whose values the core does not understand and ignores."""
    switch = os.environ.get("HOTGRID_NATIVE", "").strip()
    understood = (missing or "").startswith("HOTGRID_NATIVE") or not switch
    if not understood and switch.lower() not in ("on", "1", "yes", "true"):
        yield _passed_over("HOTGRID_NATIVE", switch, "on or off")
    threads = os.environ.get("HOTGRID_THREADS", "").strip()
    if threads and not (re.fullmatch(r"\d{1,9}", threads) and 1 <= int(threads) <= 4096):
        yield _passed_over("HOTGRID_THREADS", threads, "a whole number from 1 to 4096")
    isa = os.environ.get("HOTGRID_ISA", "").strip()
    if isa and missing is None and isa != _native.core().isa():
        yield _passed_over("HOTGRID_ISA", isa, "instructions that this processor has")


def _passed_over(variable: str, value: str, expected: str) -> Finding:
    return Finding(
        "native core",
        variable,
        value,
        state="note",
        detail=f"is not {expected}; the core may ignore it",
        way_out=f"correct {variable} or unset it",
    )


def parts() -> Iterator[Finding]:
    """Yield the version of each optional library, or what it is needed for."""
    for part, purpose in _PARTS.items():
        found = installed_version(part)
        if found:
            yield Finding("parts", part, found)
            continue
        yield Finding(
            "parts",
            part,
            "not installed",
            state="note",
            detail=f"needed for {purpose}",
            way_out=f"pip install {part}",
        )


def installed_version(distribution: str) -> str | None:
    """Return the version of an installed distribution, or None."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
