"""Batches of images: from a column in memory, or from a plan."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from hotgrid.cluster import shard_of
from hotgrid.data import Order, Plan, PlanBatches
from hotgrid.errors import ArgumentError
from hotgrid.vision._augment import sample_keys

# How many samples are decoded at once while a column is filled.
_CHUNK = 1024


class KeyedImages(NamedTuple):
    """A batch as it is loaded.

    Attributes:
        images: uint8 `[batch, channels, height, width]`.
        labels: Classes `[batch]`.
        keys: The key of each sample for random numbers.
    """

    images: Tensor
    labels: Tensor
    keys: Tensor


class ColumnBatches:
    """Batches of images that are in memory, on any device, reshuffled in every epoch.

    Args:
        images: uint8 `[rows, channels, height, width]`.
        labels: Classes `[rows]`.
        size: Rows of a batch, of all ranks together.
        seed: The seed of the order and of the keys.
        repeats: How often in a row a sample is seen, each time augmented otherwise; an epoch
            then has that part of the samples (repeated augmentation).
        training: False for one pass in order, with a shorter batch at the end.

    Raises:
        ArgumentError: There are fewer rows than a batch has.

    Example:
        >>> column = ColumnBatches(torch.zeros(4, 3, 8, 8).byte(), torch.arange(4), 2)
        >>> sorted(column.batch(0).labels.tolist() + column.batch(1).labels.tolist())
        [0, 1, 2, 3]
    """

    def __init__(
        self,
        images: Tensor,
        labels: Tensor,
        size: int,
        *,
        seed: int = 0,
        repeats: int = 1,
        training: bool = True,
    ) -> None:
        self.images, self.labels, self.size = images, labels, size
        self.rows, self.endless = len(images), training
        if training and self.rows < size:
            raise ArgumentError(
                f"there are {self.rows} images to train on, fewer than a batch of {size}; "
                "choose a smaller batch (--batch)"
            )
        self._seed, self._repeats = seed, repeats
        self.identity = f"{self.rows} images, {size} in a batch, seed {seed}, repeats {repeats}"

        @lru_cache(maxsize=2)
        def order(epoch: int) -> Tensor:
            found = shard_of(self.rows, 0, 1, epoch=epoch, seed=seed, shuffle=training)
            return found.to(images.device)

        self._order = order

    def __len__(self) -> int:
        return (self.rows + self.size - 1) // self.size

    def batch(self, index: int, rank: int = 0, ranks: int = 1) -> KeyedImages:
        """Return the part of a rank of a batch.

        Raises:
            ArgumentError: The rows of a batch cannot be shared equally by the ranks.
        """
        # Made on the device: a copy from the host would wait for the step before.
        device, begin, end = self.images.device, index * self.size, (index + 1) * self.size
        if not self.endless:
            rows = torch.arange(begin, min(self.rows, end), device=device)[rank::ranks]
            return self._taken(rows, sample_keys(self._seed, 0, rows))
        if self.size % ranks:
            raise ArgumentError(
                f"a batch of {self.size} images cannot be shared equally by {ranks} ranks; "
                f"choose a multiple of {ranks}"
            )
        place = torch.arange(begin, end, device=device)[rank::ranks]
        first = index * self.size // self.rows
        inside = place - first * self.rows
        both = torch.stack((self._order(first), self._order(first + 1)))
        epoch, row = inside // self.rows, inside % self.rows // self._repeats
        rows = both[epoch, row]
        # The place in the epoch, not in the batch: a batch may begin between two repeats.
        turn = (first + epoch) * self._repeats + inside % self.rows % self._repeats
        return self._taken(rows, sample_keys(self._seed, turn, rows))

    def _taken(self, rows: Tensor, keys: Tensor) -> KeyedImages:
        images = self.images.index_select(0, rows)
        return KeyedImages(images, self.labels.index_select(0, rows), keys)


class StreamedImages:
    """Batches of images that a plan decodes while training continues.

    Args:
        plan: Yields `pixels`, `label` and `key`.
        size: Rows of a batch, of all ranks together.
        training: False for one pass in order, with a shorter batch at the end; damaged
            images are left out of it.
        workers: Threads that decode; by default one for every core.
        pin: Page-locked memory, for a GPU.
    """

    def __init__(
        self,
        plan: Plan,
        size: int,
        *,
        training: bool = True,
        workers: int | None = None,
        pin: bool = False,
    ) -> None:
        last = "drop" if training else "short"
        if not training and plan.corrupt == "substitute":
            # A substitute would be counted twice.
            plan = replace(plan, corrupt="drop")
        self._batches = PlanBatches(plan, size, last=last, workers=workers, pin=pin)
        self.endless, self.size = training, size
        self.rows = self._batches.samples
        self.identity = self._batches.identity

    def __len__(self) -> int:
        return len(self._batches)

    def batch(self, index: int, rank: int = 0, ranks: int = 1) -> KeyedImages:
        """Return the part of a rank of a batch."""
        return keyed(self._batches.batch(index, rank, ranks))

    def close(self) -> None:
        """Stop the threads."""
        self._batches.close()


def keyed(batch: dict[str, Tensor]) -> KeyedImages:
    """The images of a plan's batch, with channels before height and width."""
    pixels = batch["pixels"]
    pixels = pixels[:, None] if pixels.ndim == 3 else pixels.permute(0, 3, 1, 2)
    return KeyedImages(pixels, batch["label"], batch["key"])


def image_column(
    plan: Plan, device: str | torch.device = "cpu", size: int | None = None
) -> tuple[Tensor, Tensor]:
    """Decode all images of a plan once.

    Args:
        plan: Yields `pixels`, `label` and `key`.
        device: Where to keep them.
        size: Height and width to resize to; by default as they are.

    Returns:
        Images uint8 `[rows, channels, height, width]`, and labels `[rows]`.
    """
    images: list[Tensor] = []
    labels: list[Tensor] = []
    whole = Plan(plan.source, plan.steps, plan.yields, Order(shuffle=False), corrupt="drop")
    with PlanBatches(whole, _CHUNK, last="short", epochs=1) as batches:
        for each in batches:
            found = keyed(each)
            images.append(_resized(found.images, size).contiguous())
            labels.append(found.labels)
    return torch.cat(images).to(device), torch.cat(labels).to(device)


def _resized(images: Tensor, size: int | None) -> Tensor:
    if size is None or images.shape[2:] == (size, size):
        return images
    wide = F.interpolate(
        images.to(torch.float32), (size, size), mode="bilinear", antialias=True
    )
    return wide.round().clamp(0, 255).to(torch.uint8)
