"""Life by CAX, as it comes: floats, a convolution, many steps in one compiled scan."""

import numpy as np
from cax.cs.life import Life
from flax import nnx
from jax import numpy as jnp

# The number of steps is a constant of the compiled code.
_MANY = 8


class CaxLife:
    """One run of B3/S23 on a torus: `start` is 0 and 1, `[y, x]`."""

    def __init__(self, start: np.ndarray) -> None:
        birth, survival = Life.birth_survival_from_string("B3/S23")
        self._life = Life(birth=birth, survival=survival, rngs=nnx.Rngs(0))
        self._now = jnp.asarray(start[..., None], jnp.float32)

    def run(self, steps: int) -> None:
        """Take steps."""
        while steps:
            many = _MANY if steps >= _MANY else 1
            self._now = self._life(self._now, num_steps=many)
            steps -= many
        self._now.block_until_ready()

    def read(self) -> np.ndarray:
        """The present state, in the layout of hotgrid."""
        return np.asarray(self._now[..., 0]).astype(np.uint8)
