"""The core's kernels on torch's threads: children, other threads, and the switch."""

import os
import subprocess
import sys

import pytest

SWITCHES = ("own", "openmp", "")

CHILD = """
import os, signal, torch
from hotgrid.kernels._gemv._native import CORE as GEMV
from hotgrid.kernels._topk._native import CORE as TOPK

x = torch.randn(16, 131072, generator=torch.Generator().manual_seed(0))
right = torch.topk(x, 3, 0).values
same = lambda: torch.equal(TOPK.function(x, 3, 0, True, True)[0], right)
for _ in ("before", "after"):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if same() else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert same()
"""

THREADS = """
import threading, torch
from hotgrid.kernels._gemv._native import CORE

w, x = torch.randint(-9, 9, (2048, 1024)).float(), torch.randint(-9, 9, (1, 1024)).float()
right, wrong = x @ w.T, []

def call():
    for _ in range(20):
        if not torch.equal(CORE.function(w, x, None), right):
            wrong.append(1)

callers = [threading.Thread(target=call) for _ in range(3)]
for each in callers:
    each.start()
for each in callers:
    each.join()
for count in (1, 3, 2):
    torch.set_num_threads(count)
    call()
assert not wrong
"""


TWICE = """
from hotgrid.kernels._openmp import core

core(), core()
"""


def _runs(code: str, switch: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "HOTGRID_POOL"}
    if switch:
        environment["HOTGRID_POOL"] = switch
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_child_computes_before_its_parent_did_and_after() -> None:
    _runs(CHILD, "openmp")


# Without a switch the pool is one of the two.
@pytest.mark.parametrize("switch", ["own", "openmp", pytest.param("", marks=pytest.mark.long)])
def test_several_threads_and_other_numbers_of_them(switch: str) -> None:
    _runs(THREADS, switch)


@pytest.mark.long
def test_an_invalid_switch_is_reported_once() -> None:
    told = _runs(TWICE, "opemp")
    assert told.count("`HOTGRID_POOL` is 'opemp'; expected 'own' or 'openmp'") == 1
    assert all(_runs(TWICE, each) == "" for each in SWITCHES)
