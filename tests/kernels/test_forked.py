"""A forked child computes, though it has none of torch's threads."""

import os
import signal
import subprocess
import sys

import pytest

_FORKED = """
import os, signal, torch
from hotgrid.config import override
from hotgrid.kernels import convolve, gemv, linear, topk

torch.set_num_threads(2)
x, kernel = torch.randn(1000, 1000), torch.ones(3, 3)
expected = torch.topk(x, 3)[0]  # on both threads, which a child does not have
calls = {
    "topk": lambda: torch.equal(topk(x, 3)[0], expected),
    "gemv": lambda: gemv(x, x[0]).isfinite().all(),
    "linear": lambda: linear(x[:2], x, x[0]).isfinite().all(),
    "convolve": lambda: convolve(x, kernel)[0, 0].isfinite(),
}
tried = calls[NAME]
with override({"autotune.cache": "none", "autotune.warmups": 1, "autotune.samples": 1}):
    if KNOWN:
        tried()
    child = os.fork()
    if child == 0:
        signal.alarm(120)
        os._exit(0 if tried() and tried() and torch.get_num_threads() == 2 else 1)
    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("topk", False),
        ("gemv", True),
        pytest.param("convolve", False, marks=pytest.mark.long),
        ("linear", True),
        pytest.param("topk", True, marks=pytest.mark.long),
        pytest.param("gemv", False, marks=pytest.mark.long),
        pytest.param("convolve", True, marks=pytest.mark.long),
        pytest.param("linear", False, marks=pytest.mark.long),
    ],
)
def test_a_forked_child_does_not_wait_for_threads_of_its_parent(name: str, known: bool):
    source = f"NAME, KNOWN = {name!r}, {known}\n{_FORKED}"
    threads = {**os.environ, "OMP_NUM_THREADS": "2"}
    ended = subprocess.run([sys.executable, "-c", source], env=threads, check=False)
    assert ended.returncode != -signal.SIGALRM, "it hangs"
    assert ended.returncode == 0
