"""Draw the curves of training runs for the docs, and keep their numbers.

    python benchmarks/make_curves.py --name cifar10 --runs TITLE=RUN [TITLE=RUN ...]
    python benchmarks/make_curves.py --name latent --show bits --runs latent=RUN bytes=RUN

RUN is the folder of a run; a run that was stopped counts as far as it went. Writes
docs/pictures/NAME.png and benchmarks/results/curves-NAME-*.json.
"""

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from options import parser
from report import report

PICTURES = Path(__file__).parents[1] / "docs/pictures"
KEPT = ("train/loss", "train/bits per byte", "train/items a second",
        "valid/loss", "valid/bits per byte", "valid/accuracy")  # fmt: skip
# What is drawn on the left and on the right, with a factor and a label.
SHOWN = {
    "accuracy": (
        ("train/loss", 1.0, "loss of augmented images"),
        ("valid/accuracy", 100.0, "accuracy on held-out images, %"),
    ),
    "bits": (
        ("train/bits per byte", 1.0, "bits per byte, training"),
        ("valid/bits per byte", 1.0, "bits per byte, held-out documents"),
    ),
}


def rows_of(title: str, folder: Path) -> list[dict[str, Any]]:
    """What a run has logged, with the epochs that its recipe asks for."""
    events = [json.loads(line) for line in (folder / "events.jsonl").open()]
    start = next(each for each in events if each["event"] == "start")
    rows, seconds = [], 0.0
    for each in events:
        if each["event"] == "train":
            seconds += each["seconds"]
        if each["event"] in ("train", "evaluate"):
            values = {key: each["values"][key] for key in KEPT if key in each["values"]}
            row = {"run": title, "steps": start["steps"], "device": start["device"]}
            rows.append({**row, "step": each["step"], "seconds": round(seconds, 1), **values})
    return rows


def draw(runs: dict[str, list[dict[str, Any]]], show: str, path: Path) -> None:
    """Training and held-out data over the share of a run."""
    mpl.use("agg")
    figure, both = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for axes, (key, factor, label) in zip(both, SHOWN[show], strict=True):
        for title, rows in runs.items():
            seen = [each for each in rows if key in each]
            shares = [100 * each["step"] / each["steps"] for each in seen]
            axes.plot(shares, [factor * each[key] for each in seen], ".-", label=title)
        axes.set(xlabel="% of the run", ylabel=label)
        axes.grid(alpha=0.3)
    both[1].legend()
    figure.savefig(path, dpi=100)


def main() -> None:
    options = parser(__doc__, ("cpu",))
    options.add_argument("--runs", nargs="+", required=True, metavar="TITLE=RUN")
    options.add_argument("--name", required=True)
    options.add_argument("--show", choices=SHOWN, default="accuracy")
    given = options.parse_args()
    pairs = [each.rpartition("=")[::2] for each in given.runs]
    runs = {title: rows_of(title, Path(folder)) for title, folder in pairs}
    draw(runs, given.show, PICTURES / f"{given.name}.png")
    report(f"curves-{given.name}", [row for rows in runs.values() for row in rows])


if __name__ == "__main__":
    main()
