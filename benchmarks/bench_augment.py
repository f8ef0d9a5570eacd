"""Claim: the whole recipe of Swin augments 50,000 images of 224 x 224 a second on an H200.

Flip, RandAugment (two of fifteen operations), normalise, erase, mixup or cutmix, from bytes to
floats on the device, as one compiled function (`torch.compile`), as it is without compiling,
and its parts alone; both must agree. On a CPU the images are 32 x 32. Pillow's row applies
operations of RandAugment to one image at a time, on one thread: what a loader would do.

    python benchmarks/bench_augment.py [--device cuda] [--batch 256] [--size 224] [--seconds 3]
"""

import time
from functools import partial

import numpy as np
import torch
from options import parser
from PIL import Image, ImageEnhance, ImageOps
from report import report

from hotgrid.vision import (
    Augmentation,
    AugmentStage,
    AugMix,
    NormalisePixels,
    RandAugment,
    StageSequence,
    TrivialAugment,
    find_recipe,
    sample_keys,
)


def speed(call, images: int, seconds: float, device: str) -> float:
    """Images a second: the best of several rounds."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    call()
    call()
    wait()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        for _ in range(5 if device == "cuda" else 1):
            call()
        wait()
        best = min(best, (time.perf_counter() - began) / (5 if device == "cuda" else 1))
    return images / best


def pillow_row(images: torch.Tensor, seconds: float) -> float:
    shown = [Image.fromarray(each.permute(1, 2, 0).cpu().numpy()) for each in images[:32]]
    draws = np.random.default_rng(0)
    bilinear = Image.Resampling.BILINEAR
    operations = (
        ImageOps.autocontrast,
        ImageOps.equalize,
        ImageOps.invert,
        lambda x: ImageOps.posterize(x, 2),
        lambda x: ImageOps.solarize(x, 26),
        lambda x: x.rotate(27, bilinear),
        lambda x: ImageEnhance.Color(x).enhance(1.8),
        lambda x: ImageEnhance.Contrast(x).enhance(1.8),
        lambda x: ImageEnhance.Brightness(x).enhance(1.8),
        lambda x: ImageEnhance.Sharpness(x).enhance(1.8),
    )

    def once():
        for each in shown:
            image = each
            for _ in range(2):
                if draws.random() < 0.5:
                    image = operations[draws.integers(len(operations))](image)

    return speed(once, len(shown), seconds, "cpu")


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--batch", type=int, default=256)
    options.add_argument("--size", type=int)
    options.add_argument("--seconds", type=float, default=3.0)
    options.add_argument("--eager", action="store_true", help="do not compile anything")
    options.add_argument("--only", nargs="*", help="names of stages")
    given = options.parse_args()
    device, size = given.device, given.size or (224 if given.device == "cuda" else 32)
    shape = (given.batch, 3, size, size)
    images = torch.randint(0, 256, shape, dtype=torch.uint8, device=device)
    labels = torch.arange(given.batch, device=device) % 1000
    keys = sample_keys(0, 0, torch.arange(given.batch, device=device))
    swin = find_recipe("swin")
    stages: dict[str, AugmentStage] = {
        "swin, whole": StageSequence((swin.augment, NormalisePixels(), swin.after)),
        "RandAugment": RandAugment(),
        "RandAugment, nearest": RandAugment("nearest"),
        "TrivialAugment": TrivialAugment(),
        "AugMix": AugMix(),
    }
    rows = []
    for name in given.only or stages:
        stage = stages[name]
        wanted = None
        for compiled in (False,) if given.eager else (False, True):
            augment = Augmentation(stage, classes=1000, compiled=compiled)
            call = partial(augment, images, labels, keys=keys)
            found = speed(call, len(images), given.seconds, device)
            how = "compiled" if compiled else "eager"
            rows.append({"stage": name, "how": how, "images/s": found})
            made = call().images.float()
            if wanted is not None:
                # A fused multiply-add may fall on the other side of a whole number.
                apart = ((made - wanted).abs() > wanted.abs().max() / 50).float().mean()
                if apart > 5e-3:
                    raise SystemExit(f"{name}: {apart:.2%} of the pixels differ when compiled")
            wanted = made
    rows.append(
        {
            "stage": "RandAugment, Pillow",
            "how": "one thread",
            "images/s": pillow_row(images, given.seconds),
        }
    )
    facts = {"batch": given.batch, "size": size, "torch": torch.__version__}
    report("augment", rows, device=device, **facts)


if __name__ == "__main__":
    main()
