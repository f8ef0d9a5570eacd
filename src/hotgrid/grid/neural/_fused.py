"""Neural cells on a GPU: a whole step as one kernel, with the products on tensor cores."""

import importlib.util
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hotgrid.grid.forms import Form, Setting
from hotgrid.grid.model import FieldFace, State

from ._cell_network import FILTERS, CellNetwork

if TYPE_CHECKING:
    from ._triton_cells import Ends, PackedNetwork, Tiling

# Wider layers do not fit into the registers of a program.
_WIDEST = 256
_MOST_CHANNELS = 64
_KINDS = (torch.float32, torch.bfloat16, torch.float16)
# Smaller grids are not worth timing.
_CELLS_WORTH_TIMING = 1 << 16
# Steps that are timed together.
_STEPS = 16


class FusedForm(Form):
    """Two buffers with channels last, and a pass from one to the other."""

    name = "fused"
    live_params = True

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        model: Any = setting.model
        self._model = model
        self._network = packed(model.network, setting.device, setting.dtype)
        self._numbers = beyond_ends(setting).to(setting.device)
        self._ends = seen_ends(setting)
        self._cells = torch.empty(0)
        self._spare = torch.empty(0)
        self._random: Tensor | None = None
        self._tiling: Tiling | None = None

    @staticmethod
    def obstacle(setting: Setting) -> str:
        """It needs Triton, a GPU and a network of moderate size."""
        network: CellNetwork = setting.model.network  # pyright: ignore[reportAttributeAccessIssue]
        if setting.device.type != "cuda":
            return f"it runs on a GPU, not on {setting.device}"
        if importlib.util.find_spec("triton") is None:
            return "Triton is not installed; `pip install triton` brings it"
        if setting.dtype not in _KINDS:
            return f"it computes in {', '.join(map(str, _KINDS))}, not in {setting.dtype}"
        if setting.rank != 2 or min(setting.size) < 2:
            return f"it needs a plane of 2 x 2 cells or more, got {setting.size}"
        if network.channels > _MOST_CHANNELS or network.width > _WIDEST:
            return (
                f"it takes {_MOST_CHANNELS} channels and {_WIDEST} hidden numbers at most, "
                f"got {network.channels} and {network.width}"
            )
        return ""

    @staticmethod
    def drawback(setting: Setting) -> str:
        """None, but uncompiled steps are meant to be those of the model itself."""
        return "" if setting.compiled else "`compiled` is off"

    def load(self, state: State) -> None:
        """Copy a state, each cell's channels next to each other."""
        self._cells = self._runs(state["cells"])
        self._spare = torch.empty_like(self._cells)
        random = state.get("random")
        self._random = None if random is None else self._runs(random).squeeze(-1)

    def read(self) -> State:
        """The present state; what is written into it is what the next step reads."""
        found = {"cells": self._planes(self._cells)}
        if self._random is not None:
            found["random"] = self._planes(self._random.unsqueeze(-1))
        return found

    def advance(self, steps: int) -> None:
        """Advance by a number of steps."""
        if self._tiling is None:
            self._tiling = self._fastest()
        for _ in range(steps):
            self._go(self._spare, self._cells, self._random, self._tiling)
            self._cells, self._spare = self._spare, self._cells

    def _runs(self, x: Tensor) -> Tensor:
        """`[*batch, channels, rows, columns]` copied as `[runs, rows, columns, channels]`."""
        x = x.to(self.setting.device).movedim(-3, -1)
        x = x if self.setting.batch else x.unsqueeze(0)
        return x.clone(memory_format=torch.contiguous_format)

    def _planes(self, x: Tensor) -> Tensor:
        x = x if self.setting.batch else x.squeeze(0)
        return x.movedim(-1, -3)

    def _go(self, to: Tensor, given: Tensor, random: Tensor | None, tiling: "Tiling") -> None:
        from ._triton_cells import cells_pass

        cells_pass(
            to,
            given,
            random,
            self._network,
            self._numbers,
            self._ends,
            alive=self._model.alive,
            around=self._model.alive_around,
            tf32=bool(torch.backends.cuda.matmul.allow_tf32),
            tiling=tiling,
        )

    def _fastest(self) -> "Tiling":
        """The tiling that is the fastest here, as this machine's tuner found."""
        from hotgrid.kernels.tune import Call, Contest

        from ._triton_cells import TILINGS

        setting, network = self.setting, self._model.network
        if setting.cells < _CELLS_WORTH_TIMING:
            return TILINGS[0]
        call = Call(
            op="neural_cells",
            dtype=str(setting.dtype).removeprefix("torch."),
            device=setting.device,
            layout="+".join(network.filters),
            settings={
                "size": "x".join(map(str, setting.size)),
                "runs": math.prod(setting.batch),
                "storage": str(setting.storage).removeprefix("torch."),
                "network": f"{network.channels}x{network.width}",
                "alive": self._model.alive is not None,
                "fire": self._random is not None,
            },
        )
        named = {"x".join(map(str, each)): each for each in TILINGS}
        contest = Contest(
            key=call.key("full"),
            device=setting.device,
            candidates={name: self._timed(each) for name, each in named.items()},
            units=_STEPS,
        )
        able = [each for each in contest.ranking().outcomes if each.able]
        best = min(able, key=lambda each: each.score or math.inf, default=None)
        return TILINGS[0] if best is None else named[best.name]

    def _timed(self, tiling: "Tiling") -> Callable[[], Callable[[], object]]:
        def prepare() -> Callable[[], object]:
            given, to = self._cells.clone(), torch.empty_like(self._cells)
            random = None if self._random is None else self._random.clone()

            def steps() -> None:
                for _ in range(_STEPS):
                    self._go(to, given, random, tiling)

            steps()
            return steps

        return prepare


def packed(network: CellNetwork, device: torch.device, dtype: torch.dtype) -> "PackedNetwork":
    """A network as the kernel reads it."""
    from ._triton_cells import PackedNetwork

    channels, width = network.channels, network.width
    padded, wide = (max(16, 1 << (n - 1).bit_length()) for n in (channels, width))
    hidden = torch.zeros(len(FILTERS), padded, wide)
    parts = network.hidden.detach().cpu().float().unflatten(1, (len(network.filters), channels))
    # A filter that is named twice is one whose matrices are added.
    for k, name in enumerate(network.filters):
        hidden[FILTERS.index(name), :channels, :width] += parts[:, k].T
    biases = torch.zeros(wide), torch.zeros(padded)
    biases[0][:width] = network.hidden_bias.detach().cpu()
    biases[1][:channels] = network.output_bias.detach().cpu()
    output = torch.zeros(wide, padded)
    output[:width, :channels] = network.output.detach().cpu().T
    return PackedNetwork(
        filters=sum(1 << k for k, name in enumerate(FILTERS) if name in network.filters),
        hidden=hidden.to(device, dtype),
        hidden_bias=biases[0].to(device),
        output=output.to(device, dtype),
        output_bias=biases[1].to(device),
    )


def seen_ends(setting: Setting) -> "Ends":
    """The rows and columns that cells see beyond the ends; -1 for a constant."""
    from ._triton_cells import Ends

    def seen(face: FieldFace, count: int, high: bool) -> int:
        if not isinstance(face, str):
            return -1
        nearest = {"periodic": 0 if high else count - 1, "neumann": count - 1 if high else 0}
        return nearest.get(face, count - 2 if high else 1)

    faces = setting.model.fields[0].faces(2)
    found = [
        seen(face, count, bool(side))
        for axis, count in zip(faces, setting.size, strict=True)
        for side, face in enumerate(axis)
    ]
    return Ends(*found)


def beyond_ends(setting: Setting) -> Tensor:
    """Float32 `[6]`: constants beyond the four ends, the threshold and the rate of firing."""
    model: Any = setting.model
    faces = [face for axis in model.fields[0].faces(2) for face in axis]
    constants = [0.0 if isinstance(face, str) else float(face) for face in faces]
    return torch.tensor([*constants, model.threshold, model.fire], dtype=torch.float32)
