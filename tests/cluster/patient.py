"""A model that waits once, after the first checkpoint of a run, until the network is cut.

It waits where a file `wait` lies, and until there is a file `pulled`.
"""

import os
import time
from pathlib import Path
from typing import Any

from hotgrid.grid import pde


class Patient(pde.Heat):
    """Heat, with a rest."""

    def step(self, state: Any, inputs: Any, params: Any) -> Any:
        if os.environ["RANK"] == "0" and Path("wait").exists():
            # Not by the number of calls: a step is tried before a run begins.
            if Path("out/checkpoints/step-000000010").is_dir():
                Path("wait").rename("waiting")
                while not Path("pulled").exists():
                    time.sleep(0.02)
            else:
                # So that the first checkpoint is on disk before the second is due.
                time.sleep(0.2)
        return super().step(state, inputs, params)
