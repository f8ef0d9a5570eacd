"""D2Q9 by lbmpy: pull, two arrays, single precision, OpenMP, constant loop sizes.

The step is generated twice, with vector intrinsics and plain for the compiler to
vectorise, and the faster one runs. Solids are lbmpy's own NoSlip (half-way), worked off
from a list of links before each step.
"""

import platform
import time

import lbmpy
import numpy as np
import pystencils as ps
import sympy as sp
from lbmpy.boundaries import NoSlip
from lbmpy.boundaries.boundaryhandling import (
    LatticeBoltzmannBoundaryHandling,
)
from pystencils.jit.cpu.compiler_info import (
    CompilerInfo,
)
from pystencils.jit.cpu.cpujit import CpuJit

from .numba_flow import VELOCITIES

_STENCIL = lbmpy.LBStencil(lbmpy.Stencil.D2Q9)
# For each population of lbmpy, whose velocities are (x, y), ours.
_OURS = [VELOCITIES.index((c[1], c[0])) for c in _STENCIL]
# The NEON headers of pystencils 2.0 are for newer compilers than most systems have.
_FLAGS = ["-D_Float16=__fp16", "-flax-vector-conversions"]


class LbmpyFlow:
    """One run: `start` is `[9, y, x]` float32, shifted; `solid` is bool `[y, x]` or None."""

    def __init__(
        self, start: np.ndarray, omega: float, solid=None, kind: str = "", *, threads: int
    ) -> None:
        if kind not in ("", "half-way"):
            raise ValueError(f"lbmpy has no {kind} walls")
        _, height, width = start.shape
        self._data = ps.create_data_handling(
            (width, height), default_layout="fzyx", default_ghost_layers=1
        )
        for name in ("src", "dst"):
            self._data.add_array(name, values_per_cell=9, dtype=np.float32, alignment=False)
        arrays = self._data.cpu_arrays
        self._pair = [arrays["src"], arrays["dst"]]
        for array in self._pair:
            array[1:-1, 1:-1] = start[_OURS].transpose(2, 1, 0)
        self._edges = [list(_edges(array)) for array in self._pair]
        self._omega = np.float32(omega)
        rule = _rule(self._pair[0].shape[:2])
        self._walls = None if solid is None else self._no_slip(rule.method, solid)
        self.how, self._step = self._fastest(rule, threads)
        for array in self._pair:
            array[1:-1, 1:-1] = start[_OURS].transpose(2, 1, 0)

    def run(self, steps: int) -> None:
        """Take steps."""
        for _ in range(steps):
            for ghost, inner in self._edges[0]:
                ghost[...] = inner
            if self._walls is not None:
                self._walls()
            self._step(src=self._pair[0], dst=self._pair[1], omega=self._omega)
            self._data.swap("src", "dst")
            self._pair.reverse()
            self._edges.reverse()

    def read(self) -> np.ndarray:
        """The present state, in the layout of hotgrid."""
        found = np.empty((9, *self._pair[0].shape[1::-1]), np.float32)
        found[_OURS] = self._pair[0].transpose(2, 1, 0)
        return found[:, 1:-1, 1:-1]

    def _no_slip(self, method, solid: np.ndarray):
        walls = LatticeBoltzmannBoundaryHandling(
            method, self._data, "src", openmp=True, default_dtype="float32"
        )
        height, width = solid.shape

        def inside(x, y):
            return solid[np.floor(y).astype(int) % height, np.floor(x).astype(int) % width]

        walls.set_boundary(NoSlip(), mask_callback=inside)
        walls.prepare()
        return walls

    def _fastest(self, rule, threads: int):
        found = {}
        problem: Exception = ValueError("no step was made")
        for vectors in (True, False):
            try:
                step = _kernel(rule, vectors, threads).compile()
                found["intrinsics" if vectors else "plain"] = step, self._seconds(step)
            except Exception as error:  # noqa: BLE001  any of many layers may refuse
                problem = error
        if not found:
            raise problem
        how = min(found, key=lambda name: found[name][1])
        return how, found[how][0]

    def _seconds(self, step) -> float:
        best = float("inf")
        for _ in range(12):
            begin = time.perf_counter()
            step(src=self._pair[0], dst=self._pair[1], omega=self._omega)
            best = min(best, time.perf_counter() - begin)
        return best


def _rule(size: tuple[int, int]):
    src, dst = ps.fields(f"src(9), dst(9): float32[{size[0]},{size[1]}]", layout="fzyx")
    return lbmpy.create_lb_update_rule(
        lbm_config=lbmpy.LBMConfig(
            stencil=_STENCIL,
            method=lbmpy.Method.SRT,
            relaxation_rate=sp.Symbol("omega"),
            compressible=True,
            zero_centered=True,
            delta_equilibrium=True,
            streaming_pattern="pull",
        ),
        lbm_optimisation=lbmpy.LBMOptimisation(
            symbolic_field=src, symbolic_temporary_field=dst, field_layout="fzyx"
        ),
    )


def _kernel(rule, vectors: bool, threads: int):
    config = ps.CreateKernelConfig(
        target=ps.Target.CurrentCPU if vectors else ps.Target.GenericCPU,
        default_dtype="float32",
        ghost_layers=1,
    )
    if platform.machine() == "aarch64":
        config.jit = CpuJit(CompilerInfo.get_default(extra_cxxflags=_FLAGS))
    config.cpu.openmp.enable = True
    config.cpu.openmp.num_threads = threads
    if vectors:
        config.cpu.vectorize.enable = True
        config.cpu.vectorize.assume_inner_stride_one = True
    return ps.create_kernel(rule, config)


def _edges(array: np.ndarray):
    """Ghost cells and the cells they repeat, only for populations that cross there."""
    for axis in (0, 1):
        for sign in (1, -1):
            ghost, inner = (0, -2) if sign > 0 else (-1, 1)
            for k, c in enumerate(_STENCIL):
                if c[axis] == sign:
                    yield array[_at(axis, ghost, k)], array[_at(axis, inner, k)]


def _at(axis: int, place: int, k: int):
    return (place, slice(None), k) if axis == 0 else (slice(None), place, k)
