"""Train a small net to classify drawn shapes, see what it gets wrong, and use it.

The images are drawn here: discs, squares and crosses of any colour on a noisy ground, in a
folder for each class. With `--data` it trains on images of yours instead. The run folder has
checkpoints, a model and `report.html` with the confusion matrix; a stopped run continues with
`--resume`.
Run it with `python examples/70_shapes.py [--out DIR] [--data FOLDER] [--epochs 12]`.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from hotgrid import vision

KINDS = ("cross", "disc", "square")


# %% The images: `train/CLASS/FILE` and `test/CLASS/FILE`
def draw(kind: str, size: int, numbers: np.random.Generator) -> Image.Image:
    image = Image.fromarray((numbers.random((size, size, 3)) * 60).astype("uint8"))
    pen = ImageDraw.Draw(image)
    colour = tuple(int(each) for each in numbers.integers(120, 255, 3))
    side = int(numbers.integers(size // 2, size * 3 // 4))
    x, y = (int(each) for each in numbers.integers(0, size - side, 2))
    if kind == "disc":
        pen.ellipse((x, y, x + side, y + side), fill=colour)
    elif kind == "square":
        pen.rectangle((x, y, x + side, y + side), fill=colour)
    else:
        pen.line((x, y, x + side, y + side), fill=colour, width=2)
        pen.line((x, y + side, x + side, y), fill=colour, width=2)
    return image


def write(folder: Path, count: int, size: int) -> Path:
    numbers = np.random.default_rng(0)
    for part, many in (("train", count), ("test", count // 4)):
        for kind in KINDS:
            (folder / part / kind).mkdir(parents=True, exist_ok=True)
            for at in range(many):
                draw(kind, size, numbers).save(folder / part / kind / f"{at:03}.png")
    return folder


# %% A recipe is data: one that is known to work, with a few changes
def recipe(epochs: float) -> vision.VisionRecipe:
    return vision.find_recipe("fast-resnet").changed(
        epochs=epochs,
        batch=32,
        rate=0.3,
        rate_batch=0,
        norm_rate=4.0,
        warmup=epochs / 5,
        average=0.9,
        augment=vision.StageSequence(
            (vision.PadCrop(2), vision.HorizontalFlip(), vision.WithProb(0.3, vision.Cutout(4)))
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the run")
    parser.add_argument("--data", type=Path, help="a folder of images instead of shapes")
    parser.add_argument("--size", type=int, default=16, help="pixels of a shape")
    parser.add_argument("--count", type=int, default=60, help="shapes of each kind")
    parser.add_argument("--epochs", type=float, default=12, help="passes over the images")
    parser.add_argument("--resume", action="store_true", help="continue the run in --out")
    options = parser.parse_args()
    folder = options.data or write(options.out / "shapes", options.count, options.size)
    data, made_of = vision.open_images(folder), recipe(options.epochs)
    made = vision.train_images(
        data,
        "fast_resnet",
        made_of,
        vision.VisionRun(options.out / "run", resume=options.resume, device="cpu"),
        shape={"dims": (8, 16, 16)},
    )
    if made.score is None:
        raise SystemExit("stopped; --resume continues")
    print(f"{made.score.accuracy:.1%} of {made.score.count} held-out images right")
    for each in made.score.worst[:3]:
        print(f"hard: image {each.index}, a {each.label}, found to be a {each.found}")
    sheet = vision.augmented_rows(made.score.worst_images[:6], made_of.augment, versions=8)
    Image.fromarray(vision.contact_sheet(sheet, 9).numpy()).save(options.out / "augmented.png")
    if options.data is None:
        files = [folder / "test" / kind / "000.png" for kind in KINDS]
        for each in vision.predict_images(made.model, files, top=1):
            print(f"{each.file}: {each.classes[0][0]} ({each.classes[0][1]:.0%})")
    print(f"the report is in {options.out / 'run' / 'report.html'}")


if __name__ == "__main__":
    main()
