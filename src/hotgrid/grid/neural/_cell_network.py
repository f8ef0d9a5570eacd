"""The rule of a neural automaton as data: filters, a hidden layer, an output layer."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError, near
from hotgrid.files import whole_file
from hotgrid.grid.model import CellVectors, mixed

FILTERS = ("identity", "sobel_y", "sobel_x", "laplacian")
"""The filters by which a cell can perceive the 3 x 3 cells around it, channel by channel."""
_TENSORS = ("hidden", "hidden_bias", "output", "output_bias")


def perceived(cells: CellVectors, filters: Sequence[str]) -> Tensor:
    """The perceptions of cells, `[*space, filters * channels]`, by filter and then channel.

    Sobel filters are divided by 8, the Laplacian (1 2 1, 2 -12 2, 1 2 1) by 16.
    """
    here = cells.here
    if not set(filters) - {"identity"}:
        return torch.cat([here] * len(filters), -1)
    sides = [(cells[y, -1], cells[y, 0], cells[y, 1]) for y in (-1, 0, 1)]
    across = [right - left for left, _, right in sides]
    along = [left + 2 * middle + right for left, middle, right in sides]
    made = {
        "identity": lambda: here,
        "sobel_y": lambda: (along[2] - along[0]) / 8,
        "sobel_x": lambda: (across[0] + 2 * across[1] + across[2]) / 8,
        "laplacian": lambda: (along[0] + 2 * along[1] + along[2] - 16 * here) / 16,
    }
    return torch.cat([made[name]() for name in filters], -1)


@dataclass(frozen=True)
class CellNetwork:
    """Perceive, a hidden layer with ReLU, and an output layer: how much every channel changes.

    Attributes:
        filters: What a cell perceives, names of `FILTERS`.
        hidden: The matrix of the hidden layer, `[hidden, filters * channels]`.
        hidden_bias: What is added to it, `[hidden]`.
        output: The matrix of the output layer, `[channels, hidden]`.
        output_bias: What is added to it, `[channels]`.

    Example:
        >>> network = CellNetwork.random(channels=16, hidden=32)
        >>> network.channels, network.width
        (16, 32)

    Raises:
        ArgumentError: A filter is unknown, or the shapes do not fit.
    """

    filters: tuple[str, ...]
    hidden: Tensor
    hidden_bias: Tensor
    output: Tensor
    output_bias: Tensor

    def __post_init__(self) -> None:
        object.__setattr__(self, "filters", tuple(self.filters))
        for name in self.filters:
            if name not in FILTERS:
                known = ", ".join(FILTERS)
                raise ArgumentError(
                    f"`filters` has {name!r}{near(name, FILTERS)} (there are {known})"
                )
        if not self.filters:
            raise ArgumentError(f"`filters` needs one of {', '.join(FILTERS)} or more")
        channels, width = self.output.shape if self.output.ndim == 2 else (0, 0)
        wanted = {
            "hidden": (width, len(self.filters) * channels),
            "hidden_bias": (width,),
            "output": (channels, width),
            "output_bias": (channels,),
        }
        for name, shape in wanted.items():
            if tuple(getattr(self, name).shape) != shape or not channels:
                raise ArgumentError(
                    f"`{name}` must have the shape {shape} for {len(self.filters)} filters, "
                    f"{channels} channels and {width} hidden numbers, got "
                    f"{tuple(getattr(self, name).shape)}"
                )

    @classmethod
    def random(
        cls,
        channels: int,
        hidden: int,
        filters: Sequence[str] = ("identity", "sobel_y", "sobel_x"),
        *,
        scale: float = 0.0,
        seed: int = 0,
    ) -> Self:
        """An untrained network: the output layer is 0, or random with a scale."""
        draw = torch.Generator().manual_seed(seed)
        inside = len(filters) * channels
        bound = 1 / math.sqrt(inside)
        return cls(
            filters=tuple(filters),
            hidden=(torch.rand(hidden, inside, generator=draw) * 2 - 1) * bound,
            hidden_bias=(torch.rand(hidden, generator=draw) * 2 - 1) * bound,
            output=scale * torch.randn(channels, hidden, generator=draw) / math.sqrt(hidden),
            output_bias=torch.zeros(channels),
        )

    @property
    def channels(self) -> int:
        """The numbers of a cell."""
        return self.output.shape[0]

    @property
    def width(self) -> int:
        """The numbers of the hidden layer."""
        return self.output.shape[1]

    def tensors(self) -> dict[str, Tensor]:
        """Its matrices and biases, by name."""
        return {name: getattr(self, name) for name in _TENSORS}

    def to(self, device: torch.device | str, dtype: torch.dtype | None = None) -> Self:
        """The same network on another device, or in another floating type."""
        moved: Mapping[str, Tensor] = {
            name: x.to(device, dtype) for name, x in self.tensors().items()
        }
        return replace(self, **moved)

    def change(self, cells: CellVectors) -> Tensor:
        """How much every channel changes, `[*space, channels]`."""
        seen = perceived(cells, self.filters)
        inside = torch.relu(mixed(seen, self.hidden, self.hidden_bias))
        return mixed(inside, self.output, self.output_bias)

    def save(self, path: str | Path, **more: Tensor) -> None:
        """Write it as one safetensors file, with other tensors if given."""
        from safetensors.torch import save_file

        kept = {name: x.detach().cpu().contiguous() for name, x in self.tensors().items()}
        with whole_file(Path(path)) as aside:
            save_file({**kept, **more}, aside, metadata={"filters": " ".join(self.filters)})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote; numbers are returned in single precision.

        Raises:
            ArgumentError: There is no such file, or it does not contain a network.
        """
        return cls.read(path)[0]

    @classmethod
    def read(cls, path: str | Path) -> tuple[Self, dict[str, Tensor]]:
        """Read what `save` wrote: the network, and the other tensors.

        Raises:
            ArgumentError: There is no such file, or it does not contain a network.
        """
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(str(path), "pt") as file:
                filters = (file.metadata() or {}).get("filters", "").split()
                found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            own = {name: found.pop(name).float() for name in _TENSORS}
            return cls(filters=tuple(filters), **own), found
        except KeyError as missing:
            problem = f"it has no tensor {missing}"
        except (OSError, SafetensorError, ArgumentError) as wrong:
            problem = str(wrong)
        raise ArgumentError(f"`{path}` is not a cell network file: {problem}")
