"""Dense networks with a leading axis of seeds, and the weights they use, as flat tensors."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from hotgrid.contracts import checked
from hotgrid.errors import ArgumentError
from hotgrid.train._optimizers import AdamW

from ._draws import Draws


@dataclass(frozen=True)
class Dense:
    """A multilayer perceptron for many seeds at once: one matrix product for all of them.

    The weights of a seed are one row of a tensor `[seeds, count]`, so that a target network,
    a checkpoint and a step of the optimizer are one operation each.

    Attributes:
        sizes: The number of inputs, of every hidden layer, and of outputs.

    Example:
        >>> net = Dense((4, 64, 2))
        >>> net(net.initial(3, Draws(0, "cpu")), torch.zeros(3, 10, 4)).shape
        torch.Size([3, 10, 2])
    """

    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.sizes) < 2 or any(type(n) is not int or n < 1 for n in self.sizes):
            raise ArgumentError(
                f"`sizes` is {self.sizes!r}; expected at least two numbers from 1"
            )

    @property
    def parts(self) -> list[int]:
        """The sizes of each matrix and each bias, in turns."""
        pairs = zip(self.sizes, self.sizes[1:], strict=False)
        return [n for a, b in pairs for n in (a * b, b)]

    @property
    def count(self) -> int:
        """How many weights one seed has."""
        return sum(self.parts)

    def initial(self, seeds: int, draws: Draws) -> Tensor:
        """Return weights as `torch.nn.Linear` begins with, `[seeds, count]`."""
        found = 2 * draws.uniform(seeds, self.count) - 1
        reach = [1 / math.sqrt(n) for n in self.sizes[:-1] for _ in range(2)]
        for part, scale in zip(found.split(self.parts, -1), reach, strict=True):
            part.mul_(scale)
        return found

    @checked(weights="seeds count", x="seeds rows inputs")
    def __call__(self, weights: Tensor, x: Tensor) -> Tensor:
        """Return the outputs of every row, each seed with its own weights."""
        parts = weights.split(self.parts, -1)
        # A product of two matrices takes fewer calls than one of stacks.
        one = len(weights) == 1
        product, stack = (torch.addmm, ()) if one else (torch.baddbmm, (len(weights),))
        x = x.squeeze(0) if one else x
        last = len(self.sizes) - 2
        for layer, (a, b) in enumerate(zip(self.sizes, self.sizes[1:], strict=False)):
            matrix, bias = parts[2 * layer].view(*stack, a, b), parts[2 * layer + 1]
            x = product(bias.view(*stack, 1, b), x, matrix)
            if layer < last:
                x = x.relu_()
        return x.unsqueeze(0) if one else x


class Weights:
    """Trainable weights, with their optimizer. All of it changes in place.

    Args:
        start: The initial weights, `[seeds, count]`; this memory is used.
        rate: The learning rate.
        clip: The largest norm of the gradient of one seed; None is no limit.
    """

    def __init__(self, start: Tensor, rate: float, clip: float | None = None) -> None:
        self.value = start.detach().requires_grad_()
        self._clip = clip
        self._optimizer = AdamW(rate=rate)
        self._slots = self._optimizer.slots(start)
        self._values = {"rate": rate, "decay": 0.0, "beta1": 0.9, "beta2": 0.999}

    def fit(self, loss: Tensor) -> None:
        """Take a step down a loss that is the sum of the losses of all seeds."""
        (gradient,) = torch.autograd.grad(loss, self.value)
        with torch.no_grad():
            if self._clip is not None:
                gradient = torch.renorm(gradient, 2, 0, self._clip)
            slots = {name: [tensor] for name, tensor in self._slots.items()}
            self._optimizer.update([self.value], [gradient], slots, self._values)

    def tensors(self) -> dict[str, Tensor]:
        """Return the weights and the state of the optimizer."""
        return {"weights": self.value.detach(), **self._slots}
