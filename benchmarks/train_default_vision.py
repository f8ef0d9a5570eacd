"""Train the image model that comes with hotgrid: CIFAR-10, a fast ResNet, 8 bits, a card.

    python benchmarks/train_default_vision.py --data FOLDER --device cuda [--work FOLDER]

FOLDER has train/ and test/ with a folder for each of the ten classes. The run, and default/
with the model in 8 bits, are kept in the work folder; default/ is copied to
src/hotgrid/vision/_default by hand. It fails if the model is less accurate than --least, if 8
bits cost more than 0.2 points, or if the folder has more than 5 MB. A run that was stopped is
continued by the same command.
"""

import dataclasses
import sys
import time
from pathlib import Path

from options import parser
from report import report

from hotgrid.vision import (
    VisionRun,
    find_recipe,
    load_image_model,
    open_images,
    save_image_model,
    score_images,
    train_images,
)
from hotgrid.vision._training._train import held_out_batches

MOST = 5_000_000
LOST = 0.002
NOT = (
    "It knows ten classes of small pictures and gives one of them to any picture. It was "
    "trained on 32 x 32 pixels; photos are cropped and reduced to that."
)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--work", type=Path, default=Path("out/default-vision"))
    options.add_argument("--model", default="fast_resnet")
    options.add_argument("--recipe", default="small-resnet")
    options.add_argument("--epochs", type=float, default=60.0)
    options.add_argument("--least", type=float, default=0.9, help="the least accuracy")
    given = options.parse_args()
    data = open_images(given.data)
    recipe = find_recipe(given.recipe).changed(epochs=given.epochs)
    cuda = given.device == "cuda"
    run = VisionRun(
        given.work / "run",
        resume="auto",
        device=given.device,
        precision="bfloat16" if cuda else "float32",
        compiled=cuda,
    )
    began = time.perf_counter()
    made = train_images(data, given.model, recipe, run)
    seconds = time.perf_counter() - began
    if made.score is None:
        sys.exit("the run was stopped; the same command continues it")
    folder = given.work / "default"
    card = {
        **made.model.card,
        "name": "hotgrid CIFAR-10",
        "data": "CIFAR-10 (Krizhevsky 2009), re-encoded as JPEG",
        "about": NOT,
    }
    save_image_model(folder, dataclasses.replace(made.model, card=card), int8=True)
    small = load_image_model(folder, device=given.device)
    score = score_images(small, held_out_batches(small, data, 500), flip=recipe.flip)
    size = sum(path.stat().st_size for path in folder.iterdir())
    full = made.score.accuracy
    rows = [
        {"model": given.model, "weights": "float32", "accuracy %": 100 * full},
        {
            "model": given.model,
            "weights": "int8",
            "accuracy %": 100 * score.accuracy,
            "MB": size / 1e6,
        },
    ]
    report(
        "default-vision", rows, device=given.device, epochs=given.epochs, seconds=round(seconds)
    )
    problems = [
        text
        for wrong, text in (
            (full < given.least, f"accuracy {full:.4f} is below {given.least}"),
            (full - score.accuracy > LOST, f"8 bits cost {full - score.accuracy:.4f}"),
            (size > MOST, f"the folder has {size:,} bytes, more than {MOST:,}"),
        )
        if wrong
    ]
    if problems:
        sys.exit("; ".join(problems))
    print(f"copy {folder} to src/hotgrid/vision/_default")


if __name__ == "__main__":
    main()
