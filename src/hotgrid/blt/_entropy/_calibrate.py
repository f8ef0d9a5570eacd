"""Thresholds for a mean length of patches."""

from collections.abc import Iterable

import numpy as np
import torch

from hotgrid.errors import ArgumentError

from ._byte_model import ByteModel

PATCH_SIZES = (3, 4, 4.5, 6, 8)


def calibrate_thresholds(
    model: ByteModel, documents: Iterable[bytes], sizes: Iterable[float] = PATCH_SIZES
) -> dict[str, dict[str, float]]:
    """Return the thresholds that give mean lengths of patches on some documents.

    A share 1 / size of all bytes begins a patch if the threshold is the quantile
    1 - 1 / size: of entropies for the key `threshold`, of their growth for `jump`.

    Args:
        model: An entropy model.
        documents: For example it will be used for, and was not trained on.
        sizes: Mean lengths in bytes.

    Returns:
        What `model.thresholds` takes.

    Raises:
        ArgumentError: Documents have too few bytes, or a size is not above 1.
    """
    found = [model.entropies(each).double().cpu() for each in documents]
    if max(map(len, found), default=0) < 2:  # growth needs two bytes of one document
        raise ArgumentError("`documents` have too few bytes to calibrate thresholds")
    levels = torch.cat(found).numpy()
    growth = torch.cat([torch.diff(each) for each in found]).numpy()
    thresholds: dict[str, dict[str, float]] = {"threshold": {}, "jump": {}}
    for size in sizes:
        if not size > 1:
            raise ArgumentError(f"`sizes` has {size}; expected mean lengths above 1 byte")
        for name, values in (("threshold", levels), ("jump", growth)):
            thresholds[name][f"{size:g}"] = float(np.quantile(values, 1 - 1 / size))
    return thresholds
