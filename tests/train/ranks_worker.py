"""One of two processes that train together; prints what it ends with as JSON.

python ranks_worker.py RANK FOLDER
"""

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).parent))

from training_cases import data, net, sgd, trainer, weights  # pyright: ignore

from hotgrid.cluster import GroupCommunicator, SingleRank
from hotgrid.config import load, use
from hotgrid.train import SGD, AdamW, Evaluation, Saving, TensorBatches, groups


def grouped(module):
    specs = {"//Param[@rank=2]": AdamW(rate=0.01, clip=0.5)}
    return groups(module, specs, rest=SGD(rate=0.1, momentum=0.9, clip=0.1))


def main(rank: int, folder: Path) -> None:
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2
    )
    ranks = GroupCommunicator(dist.group.WORLD)
    found = {}
    evaluation = Evaluation(TensorBatches(data(20), 6, endless=False), every=5)
    options = {
        "ranks": ranks,
        "accumulate": 2,
        "average": 0.9,
        "evaluation": evaluation,
        "saving": Saving(every=4),
    }
    for sharding in ("copies", "cut"):
        for name, optimizer in {"sgd": sgd, "groups": grouped}.items():
            run = trainer(net(), optimizer=optimizer, sharding=sharding, **options)
            found[f"valid, {sharding}"] = run.run().values["valid/loss"]
            found[f"{sharding} {name}"] = weights(run.module).tolist()
            if sharding == "cut" and name == "sgd":
                with run.averaged() as module:
                    found["average"] = weights(module).tolist()
    cut = {**options, "optimizer": sgd, "sharding": "cut", "folder": folder / "cut"}
    trainer(net(), steps=6, **cut).run()
    run = trainer(net(), **cut)
    run.run(resume=True)
    found["cut, resumed"] = weights(run.module).tolist()
    with run.averaged() as module:
        found["average, resumed"] = weights(module).tolist()
    trainer(net(), steps=6, **{**cut, "folder": folder / "one"}).run()
    if rank == 0:
        alone = {**cut, "ranks": SingleRank(), "folder": folder / "one"}
        run = trainer(net(), **alone)
        run.run(resume=True)
        found["on one"] = weights(run.module).tolist()
    print(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    with use(load(flags={"logging.level": "error"})):
        main(int(sys.argv[1]), Path(sys.argv[2]))
