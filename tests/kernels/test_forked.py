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
with override({"autotune.cache": "none", "autotune.warmups": 1, "autotune.samples": 1}):
    for name, known in CASES:
        tried = calls[name]
        if known:
            tried()
        child = os.fork()
        if child == 0:
            signal.alarm(120)
            os._exit(0 if tried() and tried() and torch.get_num_threads() == 2 else 1)
        print(name, known, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
# Names of operators, and whether the parent has called them before. What it has called stays
# known, so that operators that it has not called come first.
_QUICK = [("topk", False), ("gemv", True), ("linear", True)]
_OTHERS = [
    *(("gemv", False), ("linear", False), ("convolve", False)),
    *(("topk", True), ("convolve", True)),
]


@pytest.mark.parametrize(
    "cases", [_QUICK, pytest.param(_OTHERS, marks=pytest.mark.long)], ids=["quick", "others"]
)
def test_forked_children_do_not_wait_for_threads_of_their_parent(cases: list[tuple[str, bool]]):
    ended = subprocess.run(
        [sys.executable, "-c", f"CASES = {cases}\n{_FORKED}"],
        env={**os.environ, "OMP_NUM_THREADS": "2"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert f"{-signal.SIGALRM}" not in ended.stdout, "it hangs"
    assert ended.stdout.splitlines() == [f"{name} {known} 0" for name, known in cases]
