"""Claims of the cluster: the cost of splitting a grid.

1. On one rank the distributed path costs at most 2 % over the plain one. Both run in turns
   in one process, from the same start, and must agree bit by bit.
2. Two ranks of one thread each do twice the work of one in at most 1 / 0.9 of its time
   (weak scaling, D2Q9, 2048 x 2048 cells a rank); messages and bytes a step for depths of
   1, 4 and 8, with messages behind the interior and without.

On a GPU the first claim is measured there, and the collectives are called over NCCL.

    python benchmarks/bench_cluster.py [--device cpu]
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
from options import parser
from report import report

import hotgrid as hg
from hotgrid.cluster import GroupCommunicator, SingleRank, all_reduce, to_device, world

SIDE = {"cpu": 2048, "cuda": 4096}
DEPTHS = (1, 4, 8)


def waited(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def seconds(sim: hg.Simulation, steps: int) -> float:
    waited(sim.device.type)
    begin = time.perf_counter()
    sim._form.run(steps)
    waited(sim.device.type)
    return (time.perf_counter() - begin) / steps


def flow() -> hg.lbm.Flow:
    return hg.lbm.Flow(collision="bgk")


def one_rank(device: str, rounds: int = 9, steps: int = 40) -> list[dict]:
    """The plain path and the distributed one, in turns."""
    side = SIDE[device]
    plain = hg.Simulation(flow(), size=(side, side), device=device)
    alone = SingleRank(plain.device)
    cut = hg.Simulation(
        flow(), size=(side, side), device=device, mesh="1x1", communicator=alone
    )
    best = {"plain": math.inf, "distributed": math.inf}
    for sim in (plain, cut):
        sim.run(steps, progress=False)
    for _ in range(rounds):
        best["plain"] = min(best["plain"], seconds(plain, steps))
        best["distributed"] = min(best["distributed"], seconds(cut, steps))
    if not torch.equal(plain.state["f"], cut.state["f"]):
        sys.exit("the distributed path gives other bits; nothing was timed")
    return [
        {
            "case": f"one rank, {name}",
            "cells a rank": f"{side}x{side}",
            "MLUPS": round(side**2 / each / 1e6, 1),
            "over plain %": round(100 * (each / best["plain"] - 1), 1),
        }
        for name, each in best.items()
    ]


def worker(out: Path, ranks: int) -> None:
    """What every rank of the scaling runs does; the first one writes the figures."""
    torch.set_num_threads(1)
    side, communicator = SIDE["cpu"], world("cpu")
    found = []
    for depth in DEPTHS if ranks > 1 else (1,):
        for overlap in (False, True) if ranks > 1 else (False,):
            sim = hg.Simulation(
                flow(), size=(ranks * side, side), mesh=f"{ranks}x1", depth=depth,
                overlap=overlap, device="cpu", communicator=communicator,
            )  # fmt: skip
            sim.run(16, progress=False)
            traffic = sim._form.halo.traffic  # pyright: ignore[reportAttributeAccessIssue]
            before = traffic.messages, traffic.bytes
            best, steps, rounds = math.inf, 16, 6
            for _ in range(rounds):
                communicator.barrier()
                best = min(best, seconds(sim, steps))
            taken = torch.tensor([best])
            communicator.all_reduce(taken, "max")
            found.append({
                "ranks": ranks,
                "depth": depth,
                "overlap": overlap,
                "seconds": taken.item(),
                "messages": (traffic.messages - before[0]) / (rounds * steps),
                "bytes": (traffic.bytes - before[1]) / (rounds * steps),
            })  # fmt: skip
    if communicator.rank == 0:
        out.write_text(json.dumps(found))


def scaling_run(ranks: int) -> list[dict]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "found.json"
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        command += [f"--nproc-per-node={ranks}", __file__, "--worker", str(out), str(ranks)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "HOTGRID_THREADS": "1"}
        subprocess.run(command, env=environment, check=True)
        return json.loads(out.read_text())


def scaling() -> list[dict]:
    """Weak scaling, one thread a rank; the single rank runs before and after."""
    side = SIDE["cpu"]
    alone = min(scaling_run(1)[0]["seconds"], math.inf)
    found = scaling_run(2)
    alone = min(alone, scaling_run(1)[0]["seconds"])
    rows = [{"case": "1 rank, 1 thread", "MLUPS": round(side**2 / alone / 1e6, 1)}]
    for each in found:
        rows.append({
            "case": f"2 ranks, d = {each['depth']}" + ", overlapped" * each["overlap"],
            "cells a rank": f"{side}x{side}",
            "MLUPS": round(2 * side**2 / each["seconds"] / 1e6, 1),
            "efficiency": round(alone / each["seconds"], 3),
            "messages a step": round(each["messages"], 3),
            "bytes a step": round(each["bytes"]),
        })  # fmt: skip
    return rows


def check_the_largest(communicator: GroupCommunicator) -> None:
    """The largest of every dtype, with NaN where there is one, as it came in."""
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64):
        x = torch.tensor([1.0, -5.0, 0.0, 7.0], device="cuda").to(dtype)
        if dtype.is_floating_point:
            x = torch.cat([x, x.new_tensor([math.nan, math.inf, -math.inf])])
        found = all_reduce(x, communicator, "max")
        assert torch.equal(found.nan_to_num(3), x.nan_to_num(3)), (dtype, found)
        assert torch.equal(found.isnan(), x.isnan()), (dtype, found)


def nccl() -> list[dict]:
    """The collectives over NCCL with one GPU: that the path runs, and what it costs."""
    os.environ |= {"RANK": "0", "WORLD_SIZE": "1"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29571"}
    dist.init_process_group("nccl")
    communicator = GroupCommunicator(dist.group.WORLD, torch.device("cuda"))
    check_the_largest(communicator)
    rows = []
    for name, call in {
        "all_reduce": lambda x: all_reduce(x, communicator),
        "all_reduce of the largest": lambda x: all_reduce(x, communicator, "max"),
        "to_device": lambda x: to_device(x, communicator, 0, 0),
        "torch.distributed.all_reduce": lambda x: dist.all_reduce(x.clone()),
    }.items():
        x = torch.ones(1 << 20, device="cuda")
        found = call(x)
        for _ in range(9):
            call(x)
        if isinstance(found, torch.Tensor):
            assert torch.equal(found, x)
        waited("cuda")
        begin = time.perf_counter()
        for _ in range(100):
            call(x)
        waited("cuda")
        cost = (time.perf_counter() - begin) / 100
        rows.append({"case": f"NCCL, {name}, 4 MiB", "us a call": round(cost * 1e6, 1)})
    dist.destroy_process_group()
    return rows


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.worker:
        worker(Path(given.worker[0]), int(given.worker[1]))
        return
    gpu = given.device == "cuda"
    rows = one_rank(given.device) + (nccl() if gpu else scaling())
    where = torch.cuda.get_device_name() if gpu else "cpu"
    report(f"cluster-{given.device}", rows, torch=torch.__version__, device=where)


if __name__ == "__main__":
    main()
