"""Claim: however often training is killed, it ends with the bits of an undisturbed run.

A small net with dropout, momentum, a moving average and evaluation is trained on 1 and on 2
ranks, with checkpoints written in the background. Ranks get SIGKILL at random moments, from
the first millisecond to the last, one shortly after the other. Some runs are killed again
when they resume, and some get SIGTERM, which must end them well. In the end every logged
value, every tensor of the last checkpoint and every random number must be equal bit for bit.

    python benchmarks/study_training_kills.py --count 30
"""

import json
import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
# Otherwise torch initialises CUDA to look for it, and forked ranks cannot use it any more.
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
# cuBLAS is deterministic with a fixed workspace only.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch
from options import parser
from torch import nn

from hotgrid.config import load, use
from hotgrid.store import Checkpoints
from hotgrid.train import (
    Accuracy,
    Evaluation,
    Loss,
    LossGuard,
    Saving,
    TensorBatches,
    Trainer,
    read_events,
)

STEPS = 90


def trainer(folder: Path, device: str) -> Trainer:
    """The run that is killed. A spike makes it roll back once, which is a state too."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(256, 12, generator=generator)
    y = (x[:, 0] * x[:, 1] > 0).long()
    hard = x.clone()
    hard[17] = float("nan")
    torch.manual_seed(2)
    net = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Dropout(0.1), nn.Linear(24, 2)).to(
        device
    )

    def loss(module, batch):
        scores = module(batch[0])
        return {
            "loss": nn.functional.cross_entropy(scores, batch[1]),
            "scores": scores,
            "targets": batch[1],
        }

    checked = TensorBatches((x[:100], y[:100]), 32, shuffle=False, endless=False)
    return Trainer(
        net,
        loss,
        TensorBatches((hard, y), 8, seed=3),
        torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9),
        steps=STEPS,
        folder=folder,
        device=device,
        accumulate=2,
        average=0.95,
        metrics=(Accuracy(),),
        evaluation=Evaluation(checked, every=11, metrics=(Loss(), Accuracy())),
        saving=Saving(every=7, last=2, best="valid/loss", keep_every=35),
        guard=LossGuard(rollback=True, most=9),
        log_every=3,
        show=False,
    )


class Started:
    """The ranks of one run, forked from this process, which has torch already."""

    def __init__(self, folder: Path, ranks: int, device: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.pids = [self._start(folder, rank, ranks, port, device) for rank in range(ranks)]

    def _start(self, folder: Path, rank: int, ranks: int, port: int, device: str) -> int:
        pid = os.fork()
        if pid:
            return pid
        code = 1
        try:
            if ranks > 1:
                os.environ |= {
                    "RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank),
                    "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                    "GLOO_SOCKET_IFNAME": "lo",
                }  # fmt: skip
            with use(load(flags={"logging.level": "error"})):
                if device == "cuda":
                    torch.use_deterministic_algorithms(True)
                outcome = trainer(folder, device).run(resume="auto")
            code = 0 if outcome.why == "finished" else 3
        except BaseException:  # noqa: BLE001  whatever it is, the child must end here
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)

    def kill(self, after: float, gaps: list[float], number: int) -> None:
        """Send a signal to each rank in turn."""
        time.sleep(after)
        for pid, gap in zip(self.pids, gaps, strict=True):
            time.sleep(gap)
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                return

    def wait(self) -> list[int]:
        """The exit codes; minus the signal for a rank that was killed."""
        return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in self.pids]


def record(folder: Path) -> dict[str, object]:
    """What must not differ: logged values, batches left out, and the last checkpoint."""
    events = read_events(folder)
    logged = [
        [each["event"], each["step"], each["values"]]
        for each in events
        if each["event"] in ("train", "evaluate")
    ]
    for _, _, values in logged:
        values.pop("train/items a second", None)
    # Not the step: after SIGTERM there is one more checkpoint to go back to.
    rollbacks = [each["batches"] for each in events if each["event"] == "rollback"]
    last = Checkpoints(folder / "checkpoints").load()
    extra = {k: v for k, v in last.extra.items() if k not in ("run", "events")}
    return {
        "logged": json.dumps(logged),
        "rollbacks": json.dumps(rollbacks),
        "step": last.step,
        "steps": sorted(p.name for p in (folder / "checkpoints").iterdir()),
        "extra": json.dumps(extra, sort_keys=True),
        "tensors": {name: x.clone() for name, x in last.tensors.items()},
    }


def differences(one: dict, other: dict) -> list[str]:
    """The names of what is not equal bit for bit."""
    names = ("logged", "rollbacks", "step", "steps", "extra")
    found = [name for name in names if one[name] != other[name]]
    if one["tensors"].keys() != other["tensors"].keys():
        return [*found, "names of tensors"]
    return found + [
        name
        for name, x in one["tensors"].items()
        if not torch.equal(x.view(torch.uint8) if x.ndim else x[None].view(torch.uint8),
                           other["tensors"][name].view(torch.uint8) if x.ndim
                           else other["tensors"][name][None].view(torch.uint8))
    ]  # fmt: skip


def killed_once(
    work: Path, ranks: int, device: str, seconds: float, chance: random.Random
) -> tuple[str, Path, int]:
    """Start, kill, perhaps kill again, and see it through; what was done, and the kills."""
    folder = work / f"run-{ranks}-{chance.getrandbits(40)}"
    told, kills = "", 0
    while True:
        started = Started(folder, ranks, device)
        signal_ = signal.SIGTERM if chance.random() < 0.15 else signal.SIGKILL
        after = chance.uniform(0, 1.05 * seconds)
        gaps = [0.0] + [chance.expovariate(1 / 0.01) for _ in range(ranks - 1)]
        chance.shuffle(started.pids)
        started.kill(after, gaps, signal_)
        codes = started.wait()
        told += f"{signal_.name} after {after:.2f} s; "
        kills += signal_ == signal.SIGKILL
        if signal_ == signal.SIGTERM and any(code not in (0, 3, -15) for code in codes):
            raise SystemExit(f"{told}exit codes {codes}")
        if chance.random() < 0.7:
            break
    codes = Started(folder, ranks, device).wait()
    if any(codes):
        raise SystemExit(f"{told}resuming failed: {codes}")
    return told, folder, kills


def main() -> int:
    """Kill as often as asked on 1 and on 2 ranks; return 1 if one has failed."""
    options = parser(__doc__)
    options.add_argument("--count", type=int, default=30, help="runs to kill (default 30)")
    options.add_argument("--ranks", type=int, nargs="+", default=[1, 2], help="default 1 2")
    options.add_argument("--seed", type=int, default=0, help="of the schedule (default 0)")
    asked = options.parse_args()
    torch.set_num_threads(1)
    failed = 0
    # In memory, where there is such a folder: a disk would only make every run slower.
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as place:
        work = Path(place)
        for ranks in asked.ranks:
            chance = random.Random(f"{asked.seed} {ranks}")
            began = time.monotonic()
            codes = Started(work / "whole", ranks, asked.device).wait()
            seconds = time.monotonic() - began
            if any(codes):
                raise SystemExit(f"the undisturbed run failed: {codes}")
            right, bad, kills = record(work / "whole"), 0, 0
            shutil.rmtree(work / "whole")
            for number in range(asked.count):
                told, folder, more = killed_once(work, ranks, asked.device, seconds, chance)
                wrong = differences(right, record(folder))
                bad, kills = bad + bool(wrong), kills + more
                print(
                    f"{number + 1:3} {ranks} ranks, {told}{', '.join(wrong) or 'equal'}",
                    flush=True,
                )
                shutil.rmtree(folder)
            print(
                f"{ranks} ranks: {asked.count - bad} of {asked.count} runs, {kills} SIGKILLs, "
                f"ended with the bits of an undisturbed one ({seconds:.1f} s each)"
            )
            failed += bad
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
