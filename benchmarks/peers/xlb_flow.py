"""D2Q9 by XLB on its JAX backend, periodic, all steps inside one compiled loop."""

import jax
import jax.numpy as jnp
import numpy as np
import xlb
import xlb.velocity_set
from xlb.grid import grid_factory
from xlb.operator.stepper import (
    IncompressibleNavierStokesStepper,
)

from .numba_flow import VELOCITIES


class XlbFlow:
    """One run: `start` is `[9, y, x]` float32, shifted by the weights."""

    def __init__(self, start: np.ndarray, omega: float) -> None:
        backend, policy = xlb.ComputeBackend.JAX, xlb.PrecisionPolicy.FP32FP32
        lattice = xlb.velocity_set.D2Q9(precision_policy=policy, compute_backend=backend)
        xlb.init(lattice, backend, policy)
        stepper = IncompressibleNavierStokesStepper(
            grid=grid_factory(start.shape[1:], compute_backend=backend), collision_type="BGK"
        )
        _, _, marks, missing = stepper.prepare_fields()
        velocities, weights = np.asarray(lattice._c), np.asarray(lattice._w)
        self._ours = [VELOCITIES.index((int(a), int(b))) for a, b in velocities.T]
        self._weights = weights.reshape(9, 1, 1)
        self._now = jnp.asarray(start[self._ours] + self._weights, jnp.float32)

        @jax.jit
        def advanced(f, steps):
            def step(t, f):
                return stepper(f, f, marks, missing, omega, t)[1]

            return jax.lax.fori_loop(0, steps, step, f)

        self._advanced = advanced

    def run(self, steps: int) -> None:
        """Take steps."""
        self._now = self._advanced(self._now, steps).block_until_ready()

    def read(self) -> np.ndarray:
        """The present state, in the layout of hotgrid."""
        found = np.empty(self._now.shape, np.float32)
        found[self._ours] = np.asarray(self._now) - self._weights
        return found
