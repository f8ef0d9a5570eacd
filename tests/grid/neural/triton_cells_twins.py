"""Run by a test under Triton's interpreter: the fused step against the plain one."""

import sys
from dataclasses import replace

import torch

from hotgrid.grid import Simulation
from hotgrid.grid.neural import CellNetwork, NeuralCells
from hotgrid.grid.neural._fused import FusedForm
from hotgrid.grid.neural._triton_cells import Tiling


class Cells(NeuralCells):
    def initial(self, size, generator):
        cells = torch.rand(self.network.channels, *size, generator=generator)
        return self.begun(cells, generator)


def agrees(channels: int, hidden: int, filters: tuple[str, ...], **options) -> bool:
    batch, size = options.pop("batch", None), options.pop("size", (7, 21))
    network = CellNetwork.random(channels, hidden, filters, scale=0.5)
    network = replace(network, output_bias=torch.linspace(-0.1, 0.1, channels))
    model = Cells(network, **options)
    sim = Simulation(
        model, size=size, batch=batch, compiled=False, form="vectors", device="cpu"
    )
    form = FusedForm(sim._setting)
    form._tiling = Tiling(16, 3, 4)
    form.load(sim._form.read())
    for steps in (1, 2):
        form.run(steps)
        sim.run(steps, progress=False)
        found, wanted = form.read(), sim._form.read()
        if not torch.allclose(found["cells"], wanted["cells"], rtol=0, atol=1e-5):
            return False
        if "random" in wanted and not torch.equal(found["random"], wanted["random"]):
            return False
    return True


CLASSIC = ("identity", "sobel_y", "sobel_x")
CASES = [
    (16, 32, CLASSIC, {}),
    (16, 16, ("identity", "laplacian"), {"fire": 0.5, "alive": 3}),
    (5, 12, (*CLASSIC, "laplacian"), {"fire": 0.7, "alive": 1, "alive_around": False}),
    (20, 24, ("sobel_x", "sobel_x", "laplacian"), {"batch": 2}),
    (16, 16, CLASSIC, {"boundary": "neumann", "alive": 0, "threshold": 0.9}),
    (16, 16, CLASSIC, {"boundary": "mirror", "size": (4, 16)}),
    (12, 16, CLASSIC, {"boundary": ((0.5, "neumann"), (-1.0, 2.0)), "alive": 2}),
    (16, 16, CLASSIC, {"boundary": ("periodic", ("mirror", 0.25)), "fire": 0.5}),
]

wrong = [case for case in CASES if not agrees(*case[:3], **case[3])]
print(f"{len(CASES)} cases, wrong: {wrong}")
sys.exit(bool(wrong))
