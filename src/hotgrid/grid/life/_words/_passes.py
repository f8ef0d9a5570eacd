"""Packed Life, handwritten: several generations in one pass over memory.

A compiled step reads and writes the whole grid for every generation. These forms keep
a part of it in registers or caches for many, and share the sums of a row among the three
rows that need them. The rule is the same, and so is every bit.
"""

import importlib.util
from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from hotgrid import _native
from hotgrid.grid.forms import Form, Setting
from hotgrid.grid.model import State

# More would need more registers than a thread has; measured on an H200.
_DEPTH_ON_GPU = 6


class GenerationsForm(Form):
    """Two buffers of words, and a pass from one to the other."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._words = torch.empty(0)
        self._spare = torch.empty(0)
        # The grids of both buffers, as `_go` takes them.
        self._given: list[Any] = []
        self._to: list[Any] = []

    def load(self, state: State) -> None:
        """Copy a state into the buffers."""
        self._words = state["cells"].to(self.setting.device).clone()
        self._spare = torch.empty_like(self._words)
        self._given, self._to = self._grids(self._words), self._grids(self._spare)

    def read(self) -> State:
        """The present words, `[*batch, 1, rows, words]`."""
        return {"cells": self._words}

    def advance(self, steps: int) -> None:
        """Advance by a number of generations."""
        while steps > 0:
            generations = self._deep(steps)
            for to, given in zip(self._to, self._given, strict=True):
                self._go(to, given, generations)
            self._words, self._spare = self._spare, self._words
            self._given, self._to = self._to, self._given
            steps -= generations

    def _grids(self, x: Tensor) -> list[Any]:
        """The grid of every run in a buffer, `[rows, words]` each, sharing its memory."""
        return list(x.flatten(0, -3).unbind(0))

    @property
    def _torus(self) -> bool:
        return self.setting.model.fields[0].boundary == "periodic"

    @property
    def _masks(self) -> tuple[int, int]:
        rule = self.setting.model.rule  # pyright: ignore[reportAttributeAccessIssue]
        return rule.mask(alive=False), rule.mask(alive=True)

    @abstractmethod
    def _deep(self, steps: int) -> int:
        """How many of the steps that are left the next pass takes."""

    @abstractmethod
    def _go(self, to: Any, given: Any, generations: int) -> None:
        """A pass from one grid of `_grids` to another."""


class NativeLifeForm(GenerationsForm):
    """Generations by the native core, on a CPU."""

    name = "native"

    @property
    def compiled(self) -> bool:
        """The core already exists."""
        return False

    @staticmethod
    def obstacle(setting: Setting) -> str:
        """The form needs the core, and words in the memory of the CPU."""
        if setting.device.type != "cpu":
            return f"it runs on a CPU, not on {setting.device}"
        return _native.missing() or ""

    @staticmethod
    def drawback(setting: Setting) -> str:
        """None, but uncompiled steps are meant to be those of the model itself."""
        return "" if setting.compiled else "`compiled` is off"

    def _grids(self, x: Tensor) -> list[Any]:
        """NumPy's views, made once.

        To take a tensor, the core calls `Tensor.__dlpack__`, which is Python: a Ctrl-C that
        comes while it runs is lost there.
        """
        return [grid.numpy() for grid in super()._grids(x)]

    def _deep(self, steps: int) -> int:
        return min(steps, _native.core().life_depth(self._given[0]))

    def _go(self, to: Any, given: Any, generations: int) -> None:
        _native.core().life(to, given, *self._masks, self._torus, generations)


class TritonLifeForm(GenerationsForm):
    """Generations by Triton, on a GPU."""

    name = "triton"

    @staticmethod
    def obstacle(setting: Setting) -> str:
        """The form needs Triton, and pairs of words."""
        rows, words = setting.size
        if setting.device.type != "cuda":
            return f"it runs on a GPU, not on {setting.device}"
        if importlib.util.find_spec("triton") is None:
            return "Triton is not installed; `pip install triton` brings it"
        if words % 2 or rows < _DEPTH_ON_GPU * 2:
            return (
                f"it needs {_DEPTH_ON_GPU * 2} rows and a multiple of 64 columns, "
                f"got {rows} and {words * 32}"
            )
        return ""

    @staticmethod
    def drawback(setting: Setting) -> str:
        """None, but uncompiled steps are meant to be those of the model itself."""
        return "" if setting.compiled else "`compiled` is off"

    def _deep(self, steps: int) -> int:
        return _DEPTH_ON_GPU if steps >= _DEPTH_ON_GPU else 1

    def _go(self, to: Tensor, given: Tensor, generations: int) -> None:
        from ._triton_life import life_pass

        life_pass(to, given, *self._masks, torus=self._torus, generations=generations)
