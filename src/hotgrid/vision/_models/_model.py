"""`VisionModel`: what every family of image models can do."""

import dataclasses
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from hotgrid.contracts import assert_shape, checked

from ._config import ModelConfig


class VisionModel(nn.Module, ABC):
    """A model of images: stages, pooled features, and a linear head on top.

    A family names its parts as timm does, so that its weights load unchanged.

    Args:
        config: Its shape.

    Attributes:
        config: Its shape.
        widths: Channels of each stage.
    """

    head_name: ClassVar[str]
    """Where the head is: a dotted name."""
    first_name: ClassVar[str]
    """Where the layer is that reads the images."""
    block_types: ClassVar[tuple[type[nn.Module], ...]]
    """The classes of its blocks, such as `fully_sharded` takes."""
    stem_at: ClassVar[str]
    """A pattern of the names at depth 0; see `layer_ids`."""
    blocks_at: ClassVar[tuple[str, ...]]
    """Patterns whose groups are the numbers of a block; the first that matches counts."""
    last_at: ClassVar[str] = r"norm\."
    """A pattern of the names that have the depth of the last block."""
    no_decay: ClassVar[tuple[str, ...]] = ()
    """Parts of names of parameters that weight decay leaves out, beside 1-d ones."""

    def __init__(self, config: ModelConfig, widths: Iterable[int]) -> None:
        super().__init__()
        self.config = config
        self.widths = tuple(widths)

    @abstractmethod
    def stage_outputs(self, images: Tensor) -> list[Tensor]:
        """Return the output of each stage, in the family's own layout."""

    @abstractmethod
    def pooled(self, last: Tensor) -> Tensor:
        """Return the pooled features of the last stage's output: `batch channels`."""

    @abstractmethod
    def initialize(self) -> None:
        """Set weights as published, where the layers' own initial values differ."""

    def maps(self, stages: list[Tensor]) -> list[Tensor]:
        """Return the outputs of the stages as `batch channels height width`."""
        return stages

    @checked(images="batch in_chans height width", bind="self.config.in_chans")
    def features(self, images: Tensor) -> list[Tensor]:
        """Return the map of each stage, `batch channels height width`, the finest first."""
        return self.maps(self.stage_outputs(images))

    @checked(
        images="batch in_chans height width",
        bind="self.config.in_chans",
        returns="batch channels",
    )
    def embed(self, images: Tensor) -> Tensor:
        """Return the pooled features that the head reads."""
        return self.pooled(self.stage_outputs(images)[-1])

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits, `batch classes`; the pooled features if there is no head."""
        pooled = self.embed(images)
        if self.config.dropout:
            pooled = F.dropout(pooled, self.config.dropout, self.training)
        return self.head_layer()(pooled)

    def head_layer(self) -> nn.Module:
        """Return the head: a linear layer, or an identity if there are no classes."""
        return self.get_submodule(self.head_name)

    def reset_head(self, num_classes: int) -> None:
        """Replace the head with a new one for other classes; 0 removes it."""
        self.config = dataclasses.replace(self.config, num_classes=num_classes)
        like = next(self.parameters())
        head = new_head(self.widths[-1], num_classes)
        parent, _, name = self.head_name.rpartition(".")
        setattr(self.get_submodule(parent), name, head.to(like.device, like.dtype))

    def expect_size(self, images: Tensor) -> None:
        """Check that images have the size that the model was made for."""
        assert_shape(
            "b c image_size image_size", images, {"image_size": self.config.image_size}
        )

    def run(self, blocks: Iterable[nn.Module], x: Tensor) -> Tensor:
        """Apply blocks in turn, recomputed in the backward pass if `checkpointing`."""
        again = self.config.checkpointing and self.training and torch.is_grad_enabled()
        for block in blocks:
            x = checkpoint(block, x, use_reentrant=False) if again else block(x)
        return x

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Set all weights and buffers to their initial values, as after `to_empty`."""
        for module in self.modules():
            own = getattr(module, "reset_parameters", None)
            if module is not self and callable(own):
                own()
        self.initialize()
        head = self.head_layer()
        if isinstance(head, nn.Linear):
            fill_head(head)

    def layer_ids(self) -> dict[str, int]:
        """Return the depth of every parameter, for layer-wise decay of the learning rate.

        The stem is at 0, then every block adds 1, and the head has the highest number.
        """
        names = [name for name, _ in self.named_parameters()]
        places = {name: self._place(name) for name in names}
        order = {place: depth for depth, place in enumerate(sorted(set(places.values())))}
        return {name: order[place] for name, place in places.items()}

    def _place(self, name: str) -> tuple[float, ...]:
        if re.match(self.stem_at, name):
            return (-1.0,)
        for pattern in self.blocks_at:
            if found := re.match(pattern, name):
                return tuple(float(number or 0) for number in found.groups())
        return self._last_block() if re.match(self.last_at, name) else (float("inf"),)

    def _last_block(self) -> tuple[float, ...]:
        places = (
            tuple(float(number or 0) for number in found.groups())
            for name, _ in self.named_parameters()
            for found in (re.match(pattern, name) for pattern in self.blocks_at)
            if found
        )
        return max(places)

    def decays(self, name: str, parameter: Tensor) -> bool:
        """Return whether weight decay applies to a parameter of this name."""
        return parameter.ndim > 1 and not any(part in name for part in self.no_decay)

    @classmethod
    def renamed(cls, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return weights under the names of this family; another layout is recognised."""
        return dict(weights)

    def resized(self, name: str, weight: Tensor, like: Tensor) -> Tensor:
        """Return a weight of a file fitted to a parameter of another size, if it can be."""
        return weight

    def extra_repr(self) -> str:
        """Return the name."""
        return self.config.name


def new_head(width: int, num_classes: int) -> nn.Module:
    """A head for a number of classes, or none."""
    if num_classes == 0:
        return nn.Identity()
    head = nn.Linear(width, num_classes)
    fill_head(head)
    return head


@torch.no_grad()
def fill_head(head: nn.Linear) -> None:
    """Small weights, so that all classes are about equally likely at first."""
    nn.init.trunc_normal_(head.weight, std=0.02, a=-0.04, b=0.04)
    nn.init.zeros_(head.bias)
