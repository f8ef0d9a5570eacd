"""A model that waits in the middle of a run, once, for somebody to pull the cable.

It waits where a file `wait` lies, and until there is a file `pulled`.
"""

import os
import time
from pathlib import Path
from typing import Any

from hotgrid.grid import pde

_CALLS = [0]


class Patient(pde.Heat):
    """Heat, with a rest."""

    def step(self, state: Any, inputs: Any, params: Any) -> Any:
        _CALLS[0] += 1
        if _CALLS[0] == 14 and os.environ["RANK"] == "0" and Path("wait").exists():
            while not Path("out/checkpoints/step-000000010").is_dir():
                time.sleep(0.02)
            Path("wait").rename("waiting")
            while not Path("pulled").exists():
                time.sleep(0.02)
        return super().step(state, inputs, params)
