"""Run as two ranks: how long an exchange of margins takes, for messages of given bytes.

The first rank prints a JSON list of seconds, one for each size.
"""

import json
import os
import sys
import time

import torch

from ._communicator import Communicator
from ._halo import HaloExchange
from ._world import world

# The best of several: a link is what it can do, not what it did while disturbed.
_BATCHES = 7
_BATCH_SECONDS = 0.05


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


def seconds_per_exchange(ranks: Communicator, message_bytes: int) -> float:
    """The best time of an exchange in which each rank sends two such messages."""
    halo = HaloExchange(ranks, "2", (4, max(1, message_bytes // 4)), margin=1)
    buffer = torch.zeros(1, *halo.padded.size, device=ranks.device)

    def timed(count: int) -> float:
        ranks.barrier()
        begin = time.perf_counter()
        for _ in range(count):
            halo.exchange(buffer)
        if ranks.device.type == "cuda":
            torch.cuda.synchronize(ranks.device)
        # The slower rank counts, and both must agree on how often to go on.
        passed = torch.tensor([time.perf_counter() - begin], device=ranks.device)
        ranks.all_reduce(passed, "max")
        return passed.item() / count

    timed(3)
    count = max(1, min(1000, int(_BATCH_SECONDS / timed(5))))
    return min(timed(count) for _ in range(_BATCHES))


if __name__ == "__main__":
    main(sys.argv[1], [int(each) for each in sys.argv[2:]])
