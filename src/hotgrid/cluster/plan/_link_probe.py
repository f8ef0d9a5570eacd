"""Run as two ranks: how long an exchange of margins takes, for messages of given bytes.

The first rank prints a JSON list: for each size the least seconds and the median.
"""

import json
import os
import statistics
import sys
import time

import torch
from torch import Tensor

from hotgrid.cluster._communicator import Communicator
from hotgrid.cluster._halo import HaloExchange
from hotgrid.cluster._launch import world

_BATCHES = 7
_SECONDS = 0.5
_FEWEST, _MOST = 50, 500
# Some milliseconds of work.
_WORK, _ROUNDS = 2**18, 32


def main(kind: str, sizes: list[int]) -> None:
    """Measure and print."""
    device = torch.device(kind)
    if kind == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    ranks = world(device)
    found = [seconds_per_exchange(ranks, size) for size in sizes]
    if ranks.rank == 0:
        sys.stdout.write(json.dumps(found) + "\n")


def seconds_per_exchange(ranks: Communicator, message_bytes: int) -> tuple[float, float]:
    """The least and the median time of an exchange of two such messages of each rank."""
    halo = HaloExchange(ranks, "2", (4, max(1, message_bytes // 4)), margin=1)
    buffer = torch.zeros(1, *halo.padded.size, device=ranks.device)
    timed = _batches if ranks.device.type == "cuda" else _single
    timed(ranks, halo, buffer, 3)
    trial = min(timed(ranks, halo, buffer, 5))
    count = max(_FEWEST, min(_MOST, int(_SECONDS / trial)))
    found = timed(ranks, halo, buffer, count)
    return min(found), statistics.median(found)


def _single(ranks: Communicator, halo: HaloExchange, buffer: Tensor, count: int) -> list[float]:
    """Seconds of each of a number of exchanges.

    Ranks compute in between, as in a run: a core that was idle answers sooner. Of each
    exchange the slower rank counts: the other may have found its messages waiting.
    """
    ranks.barrier()
    work = torch.ones(_WORK)
    times = []
    for _ in range(count):
        for _ in range(_ROUNDS):
            work.mul_(1.0)
        begin = time.perf_counter()
        halo.exchange(buffer)
        times.append(time.perf_counter() - begin)
    slowest = torch.tensor(times, dtype=torch.float64)
    ranks.all_reduce(slowest, "max")
    return slowest.tolist()


def _batches(
    ranks: Communicator, halo: HaloExchange, buffer: Tensor, count: int
) -> list[float]:
    """Seconds of an exchange on GPUs, which work off many of them before the host waits."""
    times = []
    for _ in range(_BATCHES):
        ranks.barrier()
        begin = time.perf_counter()
        for _ in range(max(1, count // _BATCHES)):
            halo.exchange(buffer)
        torch.cuda.synchronize(ranks.device)
        passed = torch.tensor([time.perf_counter() - begin], device=ranks.device)
        ranks.all_reduce(passed, "max")
        times.append(passed.item() / max(1, count // _BATCHES))
    return times


if __name__ == "__main__":
    main(sys.argv[1], [int(each) for each in sys.argv[2:]])
