"""Build the native core under sanitizers and run its tests, and Python's over it.

python native/tests/sanitize.py [address|thread|python] ...
"""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The one of the environment: a system's own may be too old.
TOOLS = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
CMAKE = shutil.which("cmake", path=TOOLS) or "cmake"
KINDS = {"address": "address,undefined", "thread": "thread"}
# Tests, by a word of their names, of code that has no vectors and no threads of its own.
PLAIN = ("merge", "learnt", "matches")
# Of arithmetic on one thread; others share the same kernels among threads.
ONE_THREAD = (*PLAIN, "topk_of", "topk_keeps", "gemv_of_floats", "gemv_of_bytes")
# On Arm the best of an axis has one form of vectors, which is the scalar one as well. Elsewhere
# the longest of its tests are run with vectors only.
SCALAR_TOO = (
    ("topk",)
    if platform.machine() == "aarch64"
    else ("topk_of_few", "topk_of_the_best", "topk_of_columns", "topk_of_numbers")
)


def run(*command: str, **environment: str) -> None:
    """Run a command from the root; a failure ends the program with its exit code."""
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, check=False)
    if done.returncode:
        sys.exit(done.returncode)


def native_tests(kind: str, build: Path, jobs: str = "2") -> None:
    """The C++ tests under one sanitizer, and a fuzz run."""
    where = ["-S", str(ROOT), "-B", str(build)]
    options = [
        f"-DHOTGRID_SANITIZE={KINDS[kind]}",
        "-DHOTGRID_TESTS=ON",
        "-DHOTGRID_PYTHON=OFF",
    ]
    run(CMAKE, *where, *options, "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "--log-level=WARNING")
    run(CMAKE, "--build", str(build), "--parallel", jobs)
    tests = str(build / "native_tests")
    if kind == "thread":
        # One thread has no races, and vectors make none.
        run(tests, *ONE_THREAD, HOTGRID_THREADS="4")
    else:
        run(tests, HOTGRID_THREADS="4")
        run(tests, *PLAIN, *SCALAR_TOO, HOTGRID_THREADS="4", HOTGRID_ISA="scalar")
    run(str(build / "fuzz_tokens"), "1000")


def python_tests(build: Path) -> None:
    """Tests of contracts and tokens over a core built with the address sanitizer."""
    options = ["-DHOTGRID_SANITIZE=address,undefined", "-DHOTGRID_PYTHON=ON"]
    options += [f"-DPython_EXECUTABLE={sys.executable}", "--log-level=WARNING"]
    run(CMAKE, "-S", str(ROOT), "-B", str(build), *options)
    run(CMAKE, "--build", str(build), "--parallel", "2", "--target", "_core")
    package = build / "package" / "hotgrid"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(ROOT / "src" / "hotgrid", package)
    for core in build.glob("_core*.so"):
        shutil.copy(core, package / "_native")
    # The C++ library too: the sanitizer must find the throwing of exceptions when it starts.
    preloaded = [
        subprocess.run(
            ["g++", f"-print-file-name={library}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for library in ("libasan.so", "libstdc++.so.6")
    ]
    site = next(path for path in sys.path if path.endswith("site-packages"))
    # -S keeps the installed hotgrid away. Leaks are not watched: CPython keeps memory.
    code = (
        f"import sys; sys.path[:0] = [{str(package.parent)!r}, {site!r}]; "
        "import hotgrid._native as n; assert n.available(), n.missing(); "
        "assert 'package' in n.core().__file__; import pytest; "
        "sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '-p', 'no:xdist',"
        " 'tests/contracts', '--ignore=tests/contracts/test_compile.py',"
        " 'tests/tokens/test_encoding.py', 'tests/tokens/test_merging.py']))"
    )
    run(
        sys.executable, "-S", "-c", code,
        LD_PRELOAD=" ".join(preloaded),
        ASAN_OPTIONS="detect_leaks=0",
    )  # fmt: skip


def main() -> None:
    """Everything, or what is named."""
    for kind in sys.argv[1:] or (*KINDS, "python"):
        build = ROOT / "build" / f"sanitize-{kind}"
        if kind == "python":
            print("== Python tests under the address sanitizer", flush=True)
            python_tests(build)
        else:
            print(f"== {kind} sanitizer", flush=True)
            native_tests(kind, build)


if __name__ == "__main__":
    main()
