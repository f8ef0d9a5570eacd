"""Windows of a map, cyclic shifts of it, and positions inside a window."""

import torch
from torch import Tensor

from hotgrid.contracts import checked

# Added to the scores of tokens that a shift brings together but that are not neighbours.
_APART = -100.0


@checked(x="b (rows window) (columns window) c", bind="window", returns="_ window window c")
def window_partition(x: Tensor, window: int) -> Tensor:
    """Return the windows of a map, those of one image after each other, row by row.

    Example:
        >>> window_partition(torch.zeros(2, 8, 12, 5), 4).shape
        torch.Size([12, 4, 4, 5])
    """
    batch, height, width, channels = x.shape
    x = x.reshape(batch, height // window, window, width // window, window, channels)
    return x.transpose(2, 3).reshape(-1, window, window, channels)


@checked(windows="_ window window c", returns="_ height width c", bind="height, width")
def window_reverse(windows: Tensor, height: int, width: int) -> Tensor:
    """Return the map of this size whose windows these are: undo `window_partition`."""
    window, channels = windows.shape[1], windows.shape[3]
    rows, columns = height // window, width // window
    x = windows.reshape(-1, rows, columns, window, window, channels)
    return x.transpose(2, 3).reshape(-1, height, width, channels)


def shift_mask(size: int, window: int, shift: int) -> Tensor:
    """Return the mask that is added to scores in the windows of a shifted map.

    A cyclic shift by `shift` brings opposite edges of the map into one window. There,
    tokens of one side do not see those of the other.

    Args:
        size: Height and width of the map, a multiple of `window`.
        window: Height and width of a window.
        shift: How far the map was shifted up and left.

    Returns:
        `windows tokens tokens`: 0 where a token sees another, -100 where not.

    Example:
        >>> shift_mask(2, 2, 1)[0, 0]
        tensor([   0., -100., -100., -100.])
    """
    # Along an axis there are three regions: what is in whole windows, and the two sides of
    # the seam in the last window.
    place = torch.arange(size)
    region = (place >= size - window).long() + (place >= size - shift).long()
    pairs = 3 * region[:, None] + region[None, :]
    windows = window_partition(pairs[None, :, :, None], window).reshape(-1, window * window)
    return torch.where(windows[:, :, None] == windows[:, None, :], 0.0, _APART)


def relative_position_index(window: int) -> Tensor:
    """Return the row of a table of relative positions for each pair of tokens.

    The table has a row for each step from -(window - 1) to window - 1 down, times the same
    across.

    Example:
        >>> relative_position_index(2)
        tensor([[4, 3, 1, 0],
                [5, 4, 2, 1],
                [7, 6, 4, 3],
                [8, 7, 5, 4]])
    """
    place = torch.arange(window * window)
    row, column = place // window, place % window
    down = row[:, None] - row[None, :] + window - 1
    across = column[:, None] - column[None, :] + window - 1
    return down * (2 * window - 1) + across


def log_spaced_positions(window: int, trained: int = 0) -> Tensor:
    """Return the relative positions in a window, in steps that widen like a logarithm.

    Args:
        window: Height and width of the window.
        trained: The window that the weights were trained with, which has the positions
            from -8 to 8 before the logarithm; 0 for this one.

    Returns:
        `down across 2`, for each step from -(window - 1) to window - 1.
    """
    steps = torch.arange(-(window - 1), window, dtype=torch.float32)
    steps = steps * 8 / max((trained or window) - 1, 1)
    # log2(8) = 3, so that 7 is 1.
    steps = torch.sign(steps) * torch.log2(steps.abs() + 1) / 3
    return torch.stack(torch.meshgrid(steps, steps, indexing="ij"), -1)
