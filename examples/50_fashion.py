"""Train a small net to classify pieces of clothing, on one rank and on two.

The pictures are Fashion-MNIST (`apt install dataset-fashion-mnist` on Debian and Ubuntu) or, if
that is not there, the digits of scikit-learn (`pip install scikit-learn`). A run folder has
checkpoints, events and `report.html`; Ctrl-C or a kill loses nothing, and `--resume` continues.
With `--ranks 2` the same run is made by two processes, and the losses are compared.
Run it with `python examples/50_fashion.py [--out DIR] [--ranks 2]`.
"""

import argparse
import gzip
import subprocess
import sys
from pathlib import Path

import torch
from torch import Tensor, nn

from hotgrid import cluster, train

PLACES = (
    Path("/usr/share/datasets/fashion-mnist"),
    Path("/usr/share/dataset-fashion-mnist"),
    Path("data/fashion-mnist"),
)
FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte",
         "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")  # fmt: skip
CLOTHES = ("T-shirt", "trousers", "pullover", "dress", "coat",
           "sandal", "shirt", "sneaker", "bag", "boot")  # fmt: skip


# %% The data: pictures `[n, 1, rows, columns]` from 0 to 1, and classes `[n]`
def idx(path: Path) -> Tensor:
    """Read an IDX file, compressed or not."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    dims = data[3]
    shape = [int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(dims)]
    return torch.frombuffer(bytearray(data[4 + 4 * dims :]), dtype=torch.uint8).view(shape)


def fashion(folder: Path) -> list[Tensor] | None:
    """The four tensors of Fashion-MNIST, if the folder has them."""
    found = [next(folder.glob(f"{name}*"), None) for name in FILES]
    return [idx(path) for path in found if path] if all(found) else None


def digits() -> list[Tensor] | None:
    """The digits of scikit-learn, if that is installed: the last 360 are for the test."""
    try:
        from sklearn.datasets import load_digits  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    pictures, classes = load_digits(return_X_y=True)
    x = torch.tensor(pictures * 15.9375, dtype=torch.uint8).view(-1, 8, 8)
    y = torch.tensor(classes, dtype=torch.uint8)
    return [x[:-360], y[:-360], x[-360:], y[-360:]]


def dataset(folder: Path | None) -> tuple[str, list[Tensor]]:
    for place in [folder] if folder else PLACES:
        if found := fashion(place):
            return "Fashion-MNIST", found
    if not folder and (found := digits()):
        return "digits", found
    raise SystemExit(
        f"Fashion-MNIST is not in {' or '.join(map(str, [folder] if folder else PLACES))}. "
        "Get it with `apt install dataset-fashion-mnist`, or name a folder with its four IDX "
        "files with --data, or `pip install scikit-learn` for small digits"
    )


# %% The net and its step function, which knows nothing of ranks, precision or metrics
class Net(nn.Module):
    """Two convolutions, a hidden layer and a head."""

    def __init__(self, side: int, width: int, classes: int = 10) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, width // 8, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(width // 8, width // 4, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(),
        )  # fmt: skip
        self.hidden = nn.Linear(width // 4 * (-(-side // 4)) ** 2, width)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Scores `[n, classes]` of pictures `[n, 1, rows, columns]`."""
        return self.head(self.hidden(self.body(x)).relu())


def loss(net: nn.Module, batch: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
    pictures, classes = batch
    scores = net(pictures.float()[:, None] / 255)
    targets = classes.long()
    found = nn.functional.cross_entropy(scores, targets)
    return {"loss": found, "scores": scores, "targets": targets}


def trainer(
    options: argparse.Namespace, name: str, data: list[Tensor], out: Path
) -> train.Trainer:
    torch.manual_seed(0)
    net = Net(data[0].shape[-1], options.size)
    steps = max(20, options.epochs * len(data[0]) // options.batch)
    rate = train.Warmup(steps=steps // 10) * train.CosineDecay(steps=steps)

    def optimizer(net: nn.Module) -> train.Groups:
        return train.groups(
            net,
            {
                "Net/*[@name='hidden']/*[@name='weight']": train.Muon(
                    rate=0.02 * rate, name="hidden"
                )
            },
            rest=train.AdamW(rate=2e-3 * rate, decay=0.01, clip=1.0),
        )

    test = train.TensorBatches(tuple(data[2:]), 1000, shuffle=False, endless=False)
    shown = (train.Loss(), train.Accuracy(), train.TopAccuracy(2))
    return train.Trainer(
        net,
        loss,
        train.TensorBatches(tuple(data[:2]), options.batch),
        optimizer,
        steps=steps,
        folder=out,
        metrics=(train.Accuracy(), train.Throughput()),
        average=0.99,
        evaluation=train.Evaluation(test, every=max(1, steps // 8), metrics=shown),
        saving=train.Saving(every=max(1, steps // 4), best="valid/loss"),
        log_every=10,
        asked={"data": name},
    )


# %% Two ranks: the same program, started twice by torch's launcher
def on_ranks(options: argparse.Namespace) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += [f"--nproc-per-node={options.ranks}", __file__, "--out", str(options.out)]
    command += ["--size", str(options.size), "--epochs", str(options.epochs)]
    command += ["--batch", str(options.batch), "--ranks", str(options.ranks)]
    command += ["--data", str(options.data)] if options.data else []
    subprocess.run(command, check=True)


def compared(one: Path, many: Path, steps: int) -> float:
    """The largest difference between the losses of two runs up to a step, as a share."""
    runs = [train.read_run(folder).curves["train/loss"] for folder in (one, many)]
    pairs = zip(*runs, strict=True)
    return max(abs(a - b) / abs(a) for (step, a), (_, b) in pairs if step <= steps)


def draw(net: nn.Module, name: str, data: list[Tensor], run: Path, file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(2, 3))  # pyright: ignore
    curves = train.read_run(run).curves
    axes = left.subplots()
    for each, colour in (("train/loss", "C0"), ("valid/loss", "C1")):
        axes.plot(*zip(*curves[each], strict=True), color=colour, label=each)
    axes.set(xlabel="step", title="loss")
    axes.legend(frameon=False)
    with torch.no_grad():
        found = loss(net, (data[2][:16], data[3][:16]))["scores"].argmax(-1)
    for at, panel in enumerate(right.subplots(2, 8).flat):
        panel.imshow(data[2][at].numpy(), cmap="gray_r")
        shown = CLOTHES[int(found[at])] if name == "Fashion-MNIST" else str(int(found[at]))
        panel.set_title(shown, fontsize=9, color="0.2" if found[at] == data[3][at] else "C3")
        panel.set_axis_off()
    figure.savefig(file, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the runs")
    parser.add_argument("--data", type=Path, help="folder with the IDX files of Fashion-MNIST")
    parser.add_argument("--size", type=int, default=128, help="width of the net, 8 or more")
    parser.add_argument("--epochs", type=int, help="passes (1, over the few digits 40)")
    parser.add_argument("--batch", type=int, default=128, help="pictures in a step")
    parser.add_argument("--ranks", type=int, default=1, help="compare with this many ranks")
    parser.add_argument("--resume", action="store_true", help="continue the run in --out")
    options = parser.parse_args()
    name, data = dataset(options.data)
    options.epochs = options.epochs or (1 if name == "Fashion-MNIST" else 40)
    if cluster.launched():
        trainer(options, name, data, options.out / f"fashion-{options.ranks}").run()
        return
    run = options.out / "fashion-1"
    running = trainer(options, name, data, run)
    outcome = running.run(resume=options.resume)
    right = outcome.values["valid/accuracy"]
    print(f"{name}: {right:.1%} of the test right after {outcome.step} steps")
    print(f"the report is in {run / 'report.html'}")
    with running.averaged() as net:
        draw(net, name, data, run, options.out / "fashion.png")
    if options.ranks > 1:
        on_ranks(options)
        many = options.out / f"fashion-{options.ranks}"
        first, whole = (compared(run, many, steps) for steps in (30, outcome.step))
        print(f"losses on 1 and {options.ranks} ranks differ by {first:.1e} in 30 steps,")
        print(f"by {whole:.1e} in all {outcome.step}: training amplifies rounding")


if __name__ == "__main__":
    main()
