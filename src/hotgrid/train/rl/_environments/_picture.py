"""`Canvas`: thick lines on a white page, enough for pictures of small machines."""

import torch
from torch import Tensor

_COLOURS = {
    "dark": (40, 44, 52),
    "grey": (170, 176, 184),
    "blue": (46, 109, 180),
    "red": (200, 76, 60),
}
Point = tuple[float, float]


class Canvas:
    """A page in its own units, with x to the right and y up.

    Args:
        height: The height in pixels.
        width: The width in pixels.
        left: x at the left edge.
        right: x at the right edge.
        bottom: y at the lower edge.
    """

    def __init__(
        self, *, height: int, width: int, left: float, right: float, bottom: float
    ) -> None:
        self._pixel = (right - left) / width
        self._x = left + (torch.arange(width) + 0.5) * self._pixel
        self._y = bottom + (height - torch.arange(height)[:, None] - 0.5) * self._pixel
        self._page = torch.full((height, width, 3), 255.0)

    def line(self, start: Point, end: Point, thick: float, colour: str) -> None:
        """Draw a line with round ends; one from a point to itself is a dot."""
        (ax, ay), (bx, by) = start, end
        along = (bx - ax, by - ay)
        length = max(along[0] ** 2 + along[1] ** 2, 1e-12)
        share = ((self._x - ax) * along[0] + (self._y - ay) * along[1]) / length
        share = share.clamp(0, 1)
        away = torch.hypot(self._x - ax - share * along[0], self._y - ay - share * along[1])
        # One pixel wide from full to none: a smooth edge.
        cover = ((thick / 2 - away) / self._pixel + 0.5).clamp(0, 1)[..., None]
        self._page += cover * (torch.tensor(_COLOURS[colour]) - self._page)

    def picture(self) -> Tensor:
        """Return the page, uint8 `[height, width, 3]`."""
        return self._page.round().to(torch.uint8)
