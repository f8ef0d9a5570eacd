"""Claim: a differentiable collective costs at most 5 % and 20 us over torch.distributed.

Two local processes over gloo, one thread each. A collective of torch.distributed changes its
tensor in place, ours returns a new one, so torch.distributed is timed with a copy. Transfers
are timed as round trips. Both are timed in turns; the best of each is kept. On a machine that
others use too, the clock also measures how soon a waiting rank gets its core back; what the
calling thread computes is reported beside it.

    python benchmarks/bench_collectives.py
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
from options import parser
from report import nanoseconds, report

from hotgrid.cluster import GroupCommunicator, SingleRank, all_reduce, to_device

SIZES = {"4 B": 1, "4 KiB": 1 << 10, "256 KiB": 1 << 16, "4 MiB": 1 << 20, "32 MiB": 1 << 23}
# Short bursts: on a shared machine a long one never runs undisturbed.
CALLS, SECONDS = 4, 8.0


def contestants(communicator: GroupCommunicator, x: torch.Tensor) -> dict:
    rank, group = communicator.rank, communicator.group

    def raw_all_reduce():
        out = x.clone()
        dist.all_reduce(out, group=group)
        return out

    def raw_to_device():
        if rank == 0:
            dist.send(x, group=group, group_dst=1)
            out = torch.empty_like(x)
            dist.recv(out, group=group, group_src=1)
        else:
            out = torch.empty_like(x)
            dist.recv(out, group=group, group_src=0)
            dist.send(out, group=group, group_dst=0)
        return out

    def ours_to_device(x):
        return to_device(to_device(x, communicator, 1, 0), communicator, 0, 1)

    tracked = x.clone().requires_grad_()
    return {
        "all_reduce": {
            "raw": raw_all_reduce,
            "ours": lambda: all_reduce(x, communicator),
            "with a gradient": lambda: all_reduce(tracked, communicator),
        },
        "to_device": {
            "raw": raw_to_device,
            "ours": lambda: ours_to_device(x),
            "with a gradient": lambda: ours_to_device(tracked),
        },
    }


def seconds(call, communicator: GroupCommunicator) -> tuple[float, float]:
    """By the clock, and of the calling thread's own computing."""
    communicator.barrier()
    start, worked = time.perf_counter(), time.thread_time()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) / CALLS, (time.thread_time() - worked) / CALLS


def timed(calls: dict, communicator: GroupCommunicator) -> dict[str, tuple[float, float]]:
    best = {kind: seconds(call, communicator) for kind, call in calls.items()}
    rounds = torch.tensor([SECONDS / (CALLS * sum(clock for clock, _ in best.values()))])
    # Both ranks must agree on it.
    communicator.broadcast(rounds, 0)
    for _ in range(max(5, min(1500, int(rounds)))):
        for kind, call in calls.items():
            now = seconds(call, communicator)
            best[kind] = min(best[kind][0], now[0]), min(best[kind][1], now[1])
    return best


def rank_main(rank: int, file: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
    communicator = GroupCommunicator(dist.group.WORLD)
    rows = [own_part()]
    communicator.barrier()
    for size, count in SIZES.items():
        x = torch.full((count,), 1.0 + rank)
        for name, calls in contestants(communicator, x).items():
            results = [call() for call in calls.values()]
            if rank == 0:
                assert all(torch.equal(result, results[0]) for result in results[1:])
            rows.append(row(name, size, timed(calls, communicator)))
    if rank == 0:
        report("collectives", rows, torch=torch.__version__, ranks=2)
    communicator.barrier()
    dist.destroy_process_group()


def own_part() -> dict:
    """What we add to a call, without another rank: a copy is all that is left of it."""
    x = torch.ones(1)
    names = {"x": x, "g": x.clone().requires_grad_(), "alone": SingleRank(), "ours": all_reduce}
    calls = {"raw": "x.clone()", "ours": "ours(x, alone)", "with a gradient": "ours(g, alone)"}
    best = {kind: nanoseconds(call, names) / 1e9 for kind, call in calls.items()}
    return row("all_reduce, one rank", "4 B", {kind: (t, t) for kind, t in best.items()})


def row(name: str, size: str, best: dict[str, tuple[float, float]]) -> dict:
    calls = 2 if name == "to_device" else 1
    raw, worked = (1e6 * each / calls for each in best["raw"])
    found = {"call": name, "size": size, "raw us": round(raw, 1)}
    for kind in ("ours", "with a gradient"):
        ours, computed = (1e6 * each / calls for each in best[kind])
        found[f"{kind} us"] = round(ours, 1)
        found["over" if kind == "ours" else "over it"] = (
            f"{ours - raw:+.0f} us, {100 * (ours / raw - 1):+.1f} %, "
            f"computing {computed - worked:+.0f} us"
        )
    return found


def main() -> None:
    options = parser(__doc__, devices=("cpu",))
    options.add_argument("--rank", nargs=2, help=argparse.SUPPRESS)
    if rank := options.parse_args().rank:
        rank_main(int(rank[0]), rank[1])
        return
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "store")
        environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
        command = [sys.executable, __file__, "--rank"]
        ranks = [subprocess.Popen([*command, str(r), file], env=environment) for r in range(2)]
        codes = [rank.wait() for rank in ranks]
    sys.exit(max(codes))


if __name__ == "__main__":
    main()
