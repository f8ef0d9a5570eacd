"""Claim: the loop of `Trainer` costs less than 2 % of a 1 ms step on a CPU, 1 % on a GPU.

The rival is the same work as a plain loop: batch, forward, backward, clipping, fused AdamW; for
"bare" through the adapter that the trainer uses, for "torch" by the calls of torch itself.
The trainer adds positions, metrics (loss, throughput, gradient norms), the search for faults
and the event log; checkpoints are left out. Rounds of both take turns, and the best of each
counts. The tiny net, with batches of 16 rows, and the small one, with 64, are widened until a
bare step takes at least the time asked for; the tiny one comes near it. On a CPU one thread is
used, and its time counts, not that of its neighbours. On a GPU these nets show all work of the
host, since launching their kernels takes longer than running them; the large one keeps the GPU
busy for some milliseconds a step, as training does.

    python benchmarks/bench_loop.py [--device cpu] [--milliseconds 1]
"""

import os
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from options import parser
from report import report
from torch import nn

from hotgrid.train import OptimizerAdapter, Saving, TensorBatches, Throughput, Trainer

ROUNDS = 40
LARGE = 4096


def net(width: int, device: str) -> nn.Module:
    torch.manual_seed(0)
    layers = [nn.Linear(256, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 10)).to(device)


def loss(module, batch):
    return nn.functional.cross_entropy(module(batch[0]), batch[1])


def source(rows: int, device: str) -> TensorBatches:
    x = torch.randn(64 * rows if rows < LARGE else 2 * rows, 256, device=device)
    return TensorBatches((x, torch.randint(0, 10, (len(x),), device=device)), rows)


def adapted(module: nn.Module) -> OptimizerAdapter:
    plain = torch.optim.AdamW(module.parameters(), lr=1e-4, fused=True)
    return OptimizerAdapter(plain, module, clip=1.0)


def now(device: str) -> float:
    """The time when all work so far is done."""
    if device == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


class Bare:
    """The plain loop; the trainer uses the same net, optimizer and data."""

    def __init__(self, width: int, rows: int, device: str) -> None:
        self.module, self.batches = net(width, device), source(rows, device)
        self.optimizer, self.at = adapted(self.module), 0
        self.device = device

    def seconds(self, steps: int) -> float:
        """The time of a step."""
        begin = now(self.device)
        for _ in range(steps):
            found = loss(self.module, self.batches.batch(self.at, 0, 1))
            found.backward()
            self.update()
            self.at += 1
        return (now(self.device) - begin) / steps

    def update(self) -> None:
        """What follows the gradients."""
        self.optimizer.clip()
        self.optimizer.step()
        self.optimizer.zero_grad()


class Plain(Bare):
    """The same by the calls of torch."""

    def __init__(self, width: int, rows: int, device: str) -> None:
        super().__init__(width, rows, device)
        self.plain = torch.optim.AdamW(self.module.parameters(), lr=1e-4, fused=True)

    def update(self) -> None:
        """What follows the gradients."""
        nn.utils.clip_grad_norm_(self.module.parameters(), 1.0)
        self.plain.step()
        self.plain.zero_grad()


class Turns:
    """Batches for the trainer; between its rounds, a round of each plain loop."""

    def __init__(self, bare: Bare, plain: Plain, steps: int) -> None:
        self.bare, self.plain, self.steps = bare, plain, steps
        self.times = {"bare": [], "torch": [], "Trainer": []}
        self.begun = None

    def batch(self, index, rank, ranks):
        """A batch, and a round of each plain loop before every round."""
        if index % self.steps == 0:
            if self.begun is not None:
                self.times["Trainer"].append((now(self.bare.device) - self.begun) / self.steps)
            self.times["bare"].append(self.bare.seconds(self.steps))
            self.times["torch"].append(self.plain.seconds(self.steps))
            self.begun = now(self.bare.device)
        return self.bare.batches.batch(index, rank, ranks)


def fitting_width(milliseconds: float, device: str, rows: int) -> int:
    """The first width, from half the rows on, at which a bare step takes so long."""
    width = rows // 2
    while width < LARGE:
        bare = Bare(width, rows, device)
        bare.seconds(20)
        if min(bare.seconds(50) for _ in range(3)) * 1e3 >= milliseconds:
            break
        width = max(width + 8, int(width * 1.25) // 8 * 8)
    return width


def measured(name: str, width: int, rows: int, steps: int, device: str, every: int) -> dict:
    """A row: the best times of both loops."""
    with tempfile.TemporaryDirectory() as folder:
        turns = Turns(Bare(width, rows, device), Plain(width, rows, device), steps)
        Trainer(
            turns.bare.module,
            loss,
            turns,
            turns.bare.optimizer,
            steps=ROUNDS * steps + 1,
            folder=folder,
            metrics=(Throughput(),),
            saving=Saving(every=10**9),
            log_every=every,
            show=False,
        ).run()
    best = {each: min(times) * 1e6 for each, times in turns.times.items()}
    more = best["Trainer"] - best["bare"]
    return {
        "net": name,
        "width": width,
        "rows": rows,
        "bare us": best["bare"],
        "torch us": best["torch"],
        "Trainer us": best["Trainer"],
        "overhead us": more,
        "overhead %": 100 * more / best["bare"],
        "over torch %": 100 * (best["Trainer"] / best["torch"] - 1),
    }


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--milliseconds", type=float, default=1.0, help="of a bare step (1)")
    options.add_argument("--log-every", type=int, default=50, help="as in Trainer (50)")
    asked = options.parse_args()
    torch.set_num_threads(1)
    device, every = asked.device, asked.log_every
    rows = [
        measured(name, fitting_width(asked.milliseconds, device, n), n, 100, device, every)
        for name, n in (("tiny", 16), ("small", 64))
    ]
    if device == "cuda":
        rows.append(measured("large", LARGE, LARGE, 50, device, every))
    place = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    report("loop", rows, device=place, torch=torch.__version__, log_every=every)


if __name__ == "__main__":
    main()
