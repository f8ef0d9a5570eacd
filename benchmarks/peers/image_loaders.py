"""The loaders that bench_images.py compares: each reads, decodes, crops and resizes files."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch

from hotgrid.data import SampleDraws
from hotgrid.data._operators._random_resized_crop import random_box

SIZE = 224
BATCH = 32
AREA, RATIO = (0.08, 1.0), (3 / 4, 4 / 3)
MEAN, STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
SCALE = np.tile(1 / (255 * STD), SIZE).astype(np.float32)
SHIFT = np.tile(-MEAN / STD, SIZE).astype(np.float32)


def cropped(file: Path, resize: str, floats: bool, fast: bool) -> np.ndarray:
    import simplejpeg

    image = simplejpeg.decode_jpeg(file.read_bytes(), fastdct=fast, fastupsample=fast)
    draws = SampleDraws(int.from_bytes(os.urandom(8)))
    top, left, high, wide = random_box(*image.shape[:2], AREA, RATIO, draws)
    crop = image[top : top + high, left : left + wide]
    if resize == "opencv":
        import cv2

        found = cv2.resize(crop, (SIZE, SIZE))
    else:
        from PIL import Image

        small = Image.fromarray(crop).resize((SIZE, SIZE), Image.Resampling.BILINEAR)
        found = np.array(small)
    if floats:
        rows = found.reshape(SIZE, -1) * SCALE
        rows += SHIFT
        found = rows.reshape(SIZE, SIZE, 3)
    return found


class Threads:
    """A pool of threads, and batches stacked by the consumer."""

    def __init__(self, files, workers, floats, resize="opencv", fast=False):
        if resize == "opencv":
            import cv2

            cv2.setNumThreads(0)
        self.files, self.make = files, lambda file: cropped(file, resize, floats, fast)
        self.pool = ThreadPoolExecutor(workers)

    def run(self):  # noqa: D102
        # The files of two batches are always on their way.
        parts = [self.files[at : at + BATCH] for at in range(0, len(self.files), BATCH)]
        jobs = [[self.pool.submit(self.make, f) for f in part] for part in parts[:2]]
        for at in range(len(parts)):
            np.stack([job.result() for job in jobs.pop(0)])
            if at + 2 < len(parts):
                jobs.append([self.pool.submit(self.make, f) for f in parts[at + 2]])


class FolderDataset(torch.utils.data.Dataset):
    """What torch's DataLoader reads."""

    def __init__(self, files, floats, resize):
        self.files, self.floats, self.resize = files, floats, resize

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return cropped(self.files[index], self.resize, self.floats, False)


class TorchLoader:
    """torch's DataLoader with processes."""

    def __init__(self, files, workers, floats, resize="opencv"):
        self.loader = torch.utils.data.DataLoader(
            FolderDataset(files, floats, resize),
            BATCH,
            shuffle=True,
            num_workers=workers,
            persistent_workers=True,
        )

    def run(self):  # noqa: D102
        for _ in self.loader:
            pass


class Grain:
    """grain with read threads."""

    def __init__(self, files, workers, floats, resize="opencv"):
        import grain.python as grain

        data = grain.MapDataset.source(files).seed(0).shuffle()
        data = data.map(lambda file: cropped(file, resize, floats, False)).batch(BATCH)
        self.loader = data.to_iter_dataset(
            grain.ReadOptions(num_threads=workers, prefetch_buffer_size=2 * workers)
        )

    def run(self):  # noqa: D102
        for _ in self.loader:
            pass


class Dali:
    """DALI with threads, decoding on the CPU: the part first, then a linear resize."""

    def __init__(self, files, workers, floats, antialias=False):
        from nvidia.dali import fn, pipeline_def, types

        @pipeline_def(batch_size=BATCH, num_threads=workers, device_id=None)
        def loading():
            data, labels = fn.readers.file(files=[str(f) for f in files], random_shuffle=True)
            pixels = fn.decoders.image_random_crop(
                data, device="cpu", random_area=AREA, random_aspect_ratio=RATIO
            )
            pixels = fn.resize(
                pixels, size=(SIZE, SIZE), interp_type=types.INTERP_LINEAR, antialias=antialias
            )
            if floats:
                pixels = fn.crop_mirror_normalize(
                    pixels,
                    dtype=types.FLOAT,
                    output_layout="HWC",
                    mean=(255 * MEAN).tolist(),
                    std=(255 * STD).tolist(),
                )
            return pixels, labels

        self.batches, self.loader = len(files) // BATCH, loading()
        self.loader.build()

    def run(self):  # noqa: D102
        for _ in range(self.batches):
            pixels, _ = self.loader.run()
            pixels.as_array()
