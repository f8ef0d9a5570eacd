"""`SphereIndex`: which points a cone sees, without looking at all of them."""

import math

import torch
from torch import Tensor

from hotgrid.contracts import assert_shape, checked
from hotgrid.errors import ArgumentError

# Cells are chosen a little wider than the cone, for rounding; longitudes more so, since they
# change fast where a meridian touches it.
_SLACK = 1e-9
_SLACK_LONGITUDE = 1e-7
ROUNDING = 1e-12
"""Radians by which a point may be outside of a cone: its own axis is in it."""


@checked(units="n 3", axis="3", returns="n")
def angles_between(units: Tensor, axis: Tensor) -> Tensor:
    """Return the angles between vectors and an axis in radians, exact for small ones too."""
    across = torch.linalg.cross(units, axis.expand_as(units)).norm(dim=1)
    return torch.atan2(across, units @ axis)


class SphereIndex:
    """Points by direction, in cells of equal area: bands of height, cut by longitude.

    Args:
        points: Around the origin, of shape `(n, 3)`; a point at the origin is in no cone.
        cells: About how many cells; by default one for eight points.

    Raises:
        ContractError: Points are not vectors of three.
        ArgumentError: A point is not finite.
    """

    def __init__(self, points: Tensor, *, cells: int | None = None) -> None:
        assert_shape("n 3", points)
        if not bool(points.isfinite().all()):
            raise ArgumentError("`points` has values that are not finite")
        self.radii = points.double().norm(dim=1)
        self._units = points.double() / self.radii.clamp(min=1e-300)[:, None]
        wanted = max(1, len(points) // 8) if cells is None else max(1, cells)
        self._bands = max(1, round(math.sqrt(wanted / 2)))
        self._columns = max(1, 2 * self._bands)
        cell = self._band(self._units[:, 2]) * self._columns + self._column(self._units)
        self._order = cell.argsort(stable=True)
        count = torch.bincount(cell, minlength=self._bands * self._columns)
        self._ends = torch.cat([count.new_zeros(1), count.cumsum(0)])

    def _band(self, z: Tensor) -> Tensor:
        return ((z + 1) / 2 * self._bands).long().clamp(0, self._bands - 1)

    def _column(self, units: Tensor) -> Tensor:
        turn = torch.atan2(units[:, 1], units[:, 0]) / (2 * math.pi) + 0.5
        return (turn * self._columns).long().clamp(0, self._columns - 1)

    def __len__(self) -> int:
        return len(self._order)

    @checked(axis="3")
    def cone(
        self, axis: Tensor, angle: float, *, least: float = 0.0, most: float = math.inf
    ) -> Tensor:
        """Return the numbers of the points within an angle of an axis, in ascending order.

        Args:
            axis: The direction of the cone.
            angle: From its axis to its side, in radians, 0 to pi.
            least: The smallest radius.
            most: The largest radius.

        Raises:
            ArgumentError: The axis has no direction, or the angle is out of range.
        """
        found, _ = self.cone_angles(axis, angle)
        inside = (self.radii[found] >= least) & (self.radii[found] <= most)
        return found[inside]

    @checked(axis="3")
    def cone_angles(self, axis: Tensor, angle: float) -> tuple[Tensor, Tensor]:
        """Return what `cone` does for all radii, and the angle of each point to the axis.

        Raises:
            ArgumentError: The axis has no direction, or the angle is out of range.
        """
        if not 0 <= angle <= math.pi:
            raise ArgumentError(f"`angle` is {angle}; expected 0 to pi radians")
        axis = axis.to(self._units)
        # Scaled first: a square of a large or small part is not finite or 0.
        largest = float(axis.abs().max())
        if not 0 < largest < math.inf:
            raise ArgumentError(f"`axis` is {axis.tolist()}; expected a direction")
        axis = axis / largest
        axis = axis / axis.norm()
        near = self._candidates(axis, angle).sort().values
        angles = angles_between(self._units[near], axis)
        inside = (angles <= angle + ROUNDING) & (self.radii[near] > 0)
        return near[inside], angles[inside]

    def _candidates(self, axis: Tensor, angle: float) -> Tensor:
        """The points of cells that the cone touches, and perhaps of a few more."""
        polar = math.atan2(math.hypot(float(axis[0]), float(axis[1])), float(axis[2]))
        top, bottom = polar - angle - _SLACK, polar + angle + _SLACK
        highest = 1.0 if top <= 0 else math.cos(top)
        lowest = -1.0 if bottom >= math.pi else math.cos(bottom)
        low, high = self._band(axis.new_tensor([lowest - _SLACK, highest + _SLACK])).tolist()
        columns = self._columns_of(axis, polar, angle)
        bands = torch.arange(low, high + 1, device=axis.device)[:, None] * self._columns
        cells = (bands + columns).flatten()
        begins, counts = self._ends[cells], self._ends[cells + 1] - self._ends[cells]
        skipped = counts.cumsum(0) - counts
        inside = torch.arange(int(counts.sum()), device=axis.device)
        return self._order[inside + torch.repeat_interleave(begins - skipped, counts)]

    def _columns_of(self, axis: Tensor, polar: float, angle: float) -> Tensor:
        everything = torch.arange(self._columns, device=axis.device)
        # A cone over a pole sees every longitude.
        if polar - angle <= _SLACK or polar + angle >= math.pi - _SLACK:
            return everything
        half = math.asin(min(1.0, math.sin(angle) / math.sin(polar))) + _SLACK_LONGITUDE
        middle = math.atan2(float(axis[1]), float(axis[0])) / (2 * math.pi) + 0.5
        reach = half / (2 * math.pi)
        first = math.floor((middle - reach) * self._columns)
        last = math.floor((middle + reach) * self._columns)
        if last - first + 1 >= self._columns:
            return everything
        return torch.arange(first, last + 1, device=axis.device) % self._columns
