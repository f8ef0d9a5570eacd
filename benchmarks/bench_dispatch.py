"""What a call of a tuned op costs beside its kernel: at most 15 us once it is tuned.

The kernel is replaced by one that returns results made before, so that what is left is
the way to it: checks of arguments, the settings in force, the look-up of the winner.
`torch.ops` is the way through torch's own dispatcher, which only tracers take; with
gradients wanted the way includes the one `gather` that carries them.
"""

from unittest.mock import patch

import torch
from report import nanoseconds, report

from hotgrid.config import override
from hotgrid.kernels import topk
from hotgrid.kernels.topk import TOPK, _registered
from hotgrid.kernels.tune import Candidate, Tuned

LIMIT_US = 15.0


def main() -> None:
    torch.set_num_threads(1)
    x = torch.randn(64)
    made = torch.topk(x, 4)
    result = (made.values, made.indices)
    idle = Candidate(name="idle", function=lambda *arguments: result)
    tuned = Tuned(TOPK.with_candidates(idle, Candidate(name="other", function=TOPK.reference)))
    names = {
        "x": x,
        "wanted": x.clone().requires_grad_(),
        "bare": idle.function,
        "tuned": tuned,
        "topk": topk,
        "operator": torch.ops.hotgrid.topk.default,
        "torch": torch,
    }
    ways = {
        "the kernel alone": "bare(x, 4, 0, True, True)",
        "Tuned": "tuned(x, 4, 0, True, True)",
        "topk": "topk(x, 4)",
        "topk, gradient wanted": "topk(wanted, 4)",
        "torch.ops.hotgrid.topk": "operator(x, 4, 0, True, True)",
        "torch.topk with its kernel": "torch.topk(x, 4)",
    }
    chosen = {"kernels.choose": ["topk=idle"], "autotune.cache": "none"}
    with override(chosen), patch.object(_registered, "tuned_topk", tuned):
        taken = {name: nanoseconds(way, names) / 1e3 for name, way in ways.items()}
    floor = taken["the kernel alone"]
    rows = [
        {"way": name, "us": us, "over the kernel us": us - floor} for name, us in taken.items()
    ]
    report("dispatch", rows, torch=torch.__version__, limit_us=LIMIT_US)


if __name__ == "__main__":
    main()
