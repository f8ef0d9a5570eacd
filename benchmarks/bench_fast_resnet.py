"""Claim: fast_resnet learns CIFAR-10 about as well as airbench, in as little time.

Every contestant gets the same images, decoded from JPEG, and is trained some times. `seconds`
is what training takes without loading, compiling and evaluation, the best of the runs;
`accuracy` is the mean on held-out images, each evaluated on the views that a contestant uses
(six in airbench, two in hotgrid).

airbench is not a package, and not part of hotgrid: give its files `airbench94_muon.py` and
`airbench96_faster.py`. They run as they are, but for the number of runs.

    python benchmarks/bench_fast_resnet.py --data FOLDER [--airbench FILE FILE] [--runs 3]
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from options import parser
from report import absent, report
from torch import Tensor

from hotgrid.train import read_events
from hotgrid.vision import ImageData, VisionRun, find_recipe, open_images, train_images
from hotgrid.vision._training._column import image_column

ENDS = re.compile(r"eval\s*\|.*\|\s*([0-9.]+)\s*\|\s*([0-9.]+)\s*\|")


def of_airbench(
    file: Path, images: dict[str, tuple[Tensor, Tensor]], runs: int
) -> dict[str, Any]:
    """Accuracy and seconds of airbench on these images."""
    with tempfile.TemporaryDirectory() as place:
        kept = Path(place, "cifar10")
        kept.mkdir()
        for part, (pixels, labels) in images.items():
            data = {"images": pixels.permute(0, 2, 3, 1).contiguous(), "labels": labels}
            torch.save({**data, "classes": [""] * 10}, kept / f"{part}.pt")
        script = Path(place, file.name)
        script.write_text(file.read_text().replace("range(200)", f"range({runs})"))
        call = [sys.executable, script.name]
        done = subprocess.run(call, cwd=place, capture_output=True, text=True, check=False)
    found = [(float(accuracy), float(took)) for accuracy, took in ENDS.findall(done.stdout)]
    # The first of airbench94 is trained on random labels.
    found = found[-runs:]
    if done.returncode or not found:
        raise RuntimeError(done.stderr[-500:] or "it printed no result")
    return row(file.stem, *zip(*found, strict=True))


def of_hotgrid(
    model: str, data: ImageData, rows: int, device: str, runs: int
) -> dict[str, Any]:
    """Accuracy and seconds of our recipe."""
    recipe, found = find_recipe("fast-resnet"), []
    for seed in range(runs):
        with tempfile.TemporaryDirectory() as place:
            cuda = device == "cuda"
            run = VisionRun(
                place,
                device=device,
                precision="bfloat16" if cuda else "float32",
                compiled=cuda,
                evaluate_every=recipe.epochs,
                seed=seed,
                show=False,
            )
            made = train_images(data, model, recipe, run)
            logged = [each for each in read_events(Path(place)) if each["event"] == "train"]
        # The first rows have the time of compiling in them.
        rate = statistics.median(each["values"]["train/items a second"] for each in logged)
        took = recipe.epochs * rows / rate
        assert made.score is not None
        found.append((made.score.accuracy, took))
    return row(f"hotgrid {model}", *zip(*found, strict=True))


def row(name: str, accuracies: tuple[float, ...], seconds: tuple[float, ...]) -> dict[str, Any]:
    mean = 100 * statistics.fmean(accuracies)
    return {
        "contestant": name,
        "accuracy %": round(mean, 2),
        "seconds": round(min(seconds), 2),
        "runs": len(seconds),
    }


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--airbench", type=Path, nargs="*", default=[])
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--models", nargs="+", default=["fast_resnet"])
    given = options.parse_args()
    data = open_images(given.data)
    images = {
        name: image_column(data.plan(part, 32, 32), given.device, 32)
        for name, part in (("train", "train"), ("test", "valid"))
    }
    count = len(images["train"][1])
    rows = [of_hotgrid(model, data, count, given.device, given.runs) for model in given.models]
    if not given.airbench:
        absent("airbench", ValueError("no --airbench given"))
    for file in given.airbench:
        try:
            rows.append(of_airbench(file, images, given.runs))
        except RuntimeError as problem:
            absent(file.stem, problem)
    report(
        f"fast-resnet-{given.device}",
        rows,
        torch=torch.__version__,
        device=torch.cuda.get_device_name() if given.device == "cuda" else "cpu",
        load=round(os.getloadavg()[0], 1),
    )


if __name__ == "__main__":
    main()
