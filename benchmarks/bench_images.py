"""Claim: a plan loads JPEGs at least as fast as the best of its peers on the same cores.

Work for every image: read a file of 500x375 pixels (made here: 4:2:0, quality 90, about 40 kB),
decode it, crop a random part (area .08 to 1, aspect 3/4 to 4/3), resize it to 224x224, and put
it into a batch of 32, as uint8 or as normalised float32. The peers: a pool of threads that
decodes with simplejpeg and resizes with OpenCV (bilinear without antialiasing) or Pillow, grain
with read threads, DALI on the CPU, and torch's DataLoader with processes. hotgrid resizes with
antialiasing, as Pillow does, or with OpenCV. Rows `fast` use libjpeg's fast DCT and upsampling.
Compare rows that resize and decode in the same way. Rounds take turns; the best of each counts.
On a shared machine the seconds of CPU are the steadier figure: `ms of CPU` is that of all
threads and processes for an image.

    python benchmarks/bench_images.py [--workers 2] [--images 512] [--rounds 5]
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from options import parser
from peers.image_loaders import AREA, BATCH, RATIO, SIZE, Dali, Grain, Threads, TorchLoader
from report import absent, report

from hotgrid.data import ClassFolders, DecodeRandomCrop, Normalise, Plan, PlanBatches


def photo(seed: int) -> np.ndarray:
    """Noise at several scales, which compresses about as a photo does."""
    draws, found = np.random.default_rng(seed), torch.zeros(1, 3, 375, 500)
    for scale in (4, 8, 16, 64, 128):
        noise = torch.from_numpy(draws.random((1, 3, 375 // scale + 2, 500 // scale + 2)))
        large = torch.nn.functional.interpolate(noise.float(), (375, 500), mode="bicubic")
        found += large * scale**0.5
    found += torch.from_numpy(draws.standard_normal((1, 3, 375, 500))).float() * 0.3
    found = (found - found.min()) / (found.max() - found.min()) * 255
    return np.ascontiguousarray(found[0].permute(1, 2, 0).to(torch.uint8).numpy())


def made_files(folder: Path, images: int) -> list[Path]:
    from PIL import Image

    files = [folder / f"class-{n % 4}" / f"{n:05}.jpg" for n in range(images)]
    for n, file in enumerate(files):
        file.parent.mkdir(exist_ok=True)
        Image.fromarray(photo(n % 64)).save(file, quality=90, subsampling="4:2:0")
    return files


class HotgridPlan:
    """`PlanBatches` over the folder."""

    def __init__(self, folder, workers, floats, fast=False, antialias=True):
        crop = DecodeRandomCrop(
            SIZE, SIZE, area=AREA, ratio=RATIO, fast=fast, antialias=antialias
        )
        plan = Plan(ClassFolders(str(folder))).then(crop, "data", "pixels")
        if floats:
            plan = plan.then(Normalise(), "pixels", "floats")
        plan = plan.yielding("floats" if floats else "pixels", "label")
        # One epoch: nothing is prepared for the next round while others race.
        self.batches = PlanBatches(plan, BATCH, workers=workers, epochs=1)
        self.begin = self.batches.state()

    def run(self):  # noqa: D102
        self.batches.load(self.begin)
        for _ in self.batches:
            pass


def cpu_seconds() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime + sum(_of_children())


def _of_children():
    """Workers that are still running are not in RUSAGE_CHILDREN."""
    tick = os.sysconf("SC_CLK_TCK")
    for task in Path("/proc/self/task").iterdir():
        try:
            children = (task / "children").read_text().split()
        except OSError:  # a thread that has just ended
            continue
        for child in children:
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            yield (int(fields[11]) + int(fields[12])) / tick


def contestants(folder, files, workers, floats):
    made = {
        "hotgrid": lambda: HotgridPlan(folder, workers, floats),
        "hotgrid, fast": lambda: HotgridPlan(folder, workers, floats, fast=True),
        "hotgrid, OpenCV": lambda: HotgridPlan(folder, workers, floats, antialias=False),
        "hotgrid, OpenCV, fast": lambda: HotgridPlan(folder, workers, floats, True, False),
        "simplejpeg threads, OpenCV": lambda: Threads(files, workers, floats),
        "simplejpeg threads, OpenCV, fast": lambda: Threads(files, workers, floats, fast=True),
        "simplejpeg threads, Pillow": lambda: Threads(files, workers, floats, "pillow"),
        "torch DataLoader, OpenCV": lambda: TorchLoader(files, workers, floats),
        "torch DataLoader, Pillow": lambda: TorchLoader(files, workers, floats, "pillow"),
        "grain threads, OpenCV": lambda: Grain(files, workers, floats),
        "DALI, linear": lambda: Dali(files, workers, floats),
        "DALI, linear with antialiasing": lambda: Dali(files, workers, floats, True),
    }
    found = {}
    for name, make in made.items():
        try:
            found[name] = make()
            found[name].run()
        except ImportError as problem:
            absent(name, problem)
            found.pop(name, None)
    return found


def main() -> None:
    options = parser(__doc__, ("cpu",))
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--images", type=int, default=512)
    options.add_argument("--rounds", type=int, default=5)
    asked = options.parse_args()
    images = asked.images // BATCH * BATCH
    rows = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        files = made_files(folder, images)
        size = np.mean([file.stat().st_size for file in files])
        for floats in (False, True):
            racing = contestants(folder, files, asked.workers, floats)
            best = dict.fromkeys(racing, (float("inf"), float("inf")))
            draws = np.random.default_rng(0)
            for _ in range(asked.rounds):
                # In another order each time: what one leaves behind disturbs the next.
                for name in draws.permutation([*racing]).tolist():
                    loader = racing[name]
                    begin, used = time.perf_counter(), cpu_seconds()
                    loader.run()
                    wall, cpu = time.perf_counter() - begin, cpu_seconds() - used
                    best[name] = (min(best[name][0], wall), min(best[name][1], cpu))
            for name, (wall, cpu) in best.items():
                row = {"output": "float32" if floats else "uint8", "loader": name}
                row |= {"images/s": images / wall, "ms of CPU": 1e3 * cpu / images}
                rows.append(row)
    report("images", rows, workers=asked.workers, images=images, bytes=round(size))


if __name__ == "__main__":
    main()
