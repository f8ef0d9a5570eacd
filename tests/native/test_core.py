"""The native core: probes, pool, and the Python module in front of it."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hotgrid import _native

ISAS = ("scalar", "neon", "neon_dotprod", "avx2", "avx512", "avx512_vnni")


def in_a_new_process(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_the_core_is_built_where_tests_run():
    assert _native.available()
    assert _native.missing() is None


def test_features_and_the_chosen_instruction_set_agree():
    core = _native.core()
    features, isa = core.cpu_features(), core.isa()
    assert isa in ISAS
    assert all(isinstance(present, bool) for present in features.values())
    needed = {
        "neon": ["neon"],
        "neon_dotprod": ["neon", "dotprod"],
        "avx2": ["avx2", "fma"],
        "avx512": ["avx512f", "avx512bw", "avx512vl"],
        "avx512_vnni": ["avx512f", "avx512bw", "avx512vl", "avx512_vnni"],
        "scalar": [],
    }
    assert all(features[name] for name in needed[isa])


def test_features_are_those_the_kernel_lists():
    flags = set()
    with Path("/proc/cpuinfo").open() as lines:
        for line in lines:
            if line.startswith(("flags", "Features")):
                flags |= set(line.partition(":")[2].split())
    spelled = {"neon": "asimd", "dotprod": "asimddp"}
    for name, present in _native.core().cpu_features().items():
        assert present == (spelled.get(name, name) in flags), name


@pytest.mark.parametrize("asked", ["scalar", "nonsense"])
def test_a_lower_instruction_set_can_be_asked_for(asked):
    code = (
        "from hotgrid import _native; core = _native.core(); "
        "assert core.copy_bandwidth(1 << 20, 1) > 0; print(core.isa())"
    )
    found = in_a_new_process(code, HOTGRID_ISA=asked)
    assert found == (asked if asked in ISAS else _native.core().isa())


def test_threads_can_be_set():
    code = "from hotgrid import _native as n; print(n.core().threads())"
    assert in_a_new_process(code, HOTGRID_THREADS="3") == "3"
    assert in_a_new_process(code, HOTGRID_THREADS="no", OMP_NUM_THREADS="2") == "2"


def test_bandwidth_is_measured_and_arguments_are_checked():
    core = _native.core()
    assert core.copy_bandwidth(1 << 22, 2) > 1e8
    for size, repeats in ((0, 1), (1, 0), (-5, 1)):
        with pytest.raises(ValueError, match="at least 1"):
            core.copy_bandwidth(size, repeats)
    with pytest.raises(MemoryError):
        core.copy_bandwidth(1 << 60, 1)


def test_the_interpreter_runs_on_while_the_core_works():
    core = _native.core()
    started, ticks, done = threading.Event(), 0, threading.Event()

    def work():
        started.set()
        core.copy_bandwidth(1 << 26, 10)
        done.set()

    worker = threading.Thread(target=work)
    worker.start()
    started.wait()
    while not done.is_set():
        ticks += 1
    worker.join()
    # With the lock held throughout, the loop would hardly turn before `done` is set.
    assert ticks > 100


FORKED = """
import os, signal
from hotgrid import _native

core = _native.core()
core.copy_bandwidth(1 << 22, 2)
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(0 if core.copy_bandwidth(1 << 22, 2) > 0 else 1)
assert os.waitpid(child, 0)[1] == 0
print("ended")
"""


def test_the_pool_works_in_a_forked_child():
    # Not forked here: the child would have to end what the worker holds.
    # Newer Pythons warn of forking with threads about, which is the very thing tried.
    assert in_a_new_process(FORKED, PYTHONWARNINGS="ignore::DeprecationWarning") == "ended"


def test_bad_programs_are_refused():
    matcher = _native.core().Matcher
    for names, groups in (
        ([], []),
        (["a"], [(-1, [(True, 1, [])])]),
        (["a"], [(-1, [(True, -2, [])])]),
        (["a"], [(-1, [(True, -1, [(1, [(1, 1)])])])]),
        (["a"], [(-1, [(True, -1, [(1, [(0, 0)])])])]),
        ([f"n{i}" for i in range(65)], [(-1, [])]),
        (["a"], [(-1, [(False, -1, [])] * 65)]),
        (["a"], [(5, [(False, -1, [])])]),
    ):
        with pytest.raises(ValueError, match=r"bad|many|no contract"):
            matcher(names, groups, None, None)
    good = matcher(["a"], [(-1, [(True, -1, [(1, [(0, 1)])])])], None, None)
    with pytest.raises(TypeError, match="one shape each"):
        good.match(None)
    with pytest.raises(TypeError, match="keys, shape, bindings"):
        good.unpack(("a",))
    assert good.try_match(None, "no shape") is None
