"""A neural automaton of 16 channels: the forms of the engine against plain torch.

    python benchmarks/bench_neural_ca.py [--device cuda] [--size 1024] [--steps 200]

Every form is first compared with a slow reference in double precision. Then come Mcell/s, the
seconds of starting, and the memory of a gradient with and without `remat`.
"""

import gc
import time
from collections.abc import Callable

import torch
from options import parser
from report import absent, report
from torch import Tensor
from torch.nn import functional

from hotgrid.grid import Simulation, rollout
from hotgrid.grid.neural import CellNetwork, NeuralCells

CHANNELS = 16
KINDS = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16}


class Cells(NeuralCells):
    """Random cells that a small random network changes."""

    def initial(self, size, generator):
        """Numbers from 0 to 1."""
        cells = torch.rand(self.network.channels, *size, generator=generator)
        return self.begun(cells, generator)


def automaton(hidden: int, masked: bool) -> Cells:
    network = CellNetwork.random(CHANNELS, hidden, scale=0.02, seed=1)
    return Cells(network, **({"fire": 0.5, "alive": 3} if masked else {}))


def kernels(device: str, dtype: torch.dtype) -> Tensor:
    """Identity and Sobel as filters of a depthwise convolution, `[3 * channels, 1, 3, 3]`."""
    sobel = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]]) / 8
    identity = torch.zeros(3, 3)
    identity[1, 1] = 1
    each = torch.stack([identity, sobel.T, sobel])
    return each.repeat(CHANNELS, 1, 1)[:, None].to(device, dtype)


def by_convolution(network: CellNetwork, x: Tensor) -> Tensor:
    """A step as most people write it: depthwise convolution and 1 x 1 convolutions."""
    filters = kernels(str(x.device), x.dtype)
    seen = functional.conv2d(
        functional.pad(x[None], (1, 1, 1, 1), mode="circular"), filters, groups=CHANNELS
    )
    # Of each channel its three filters; the network has of each filter its channels.
    seen = seen.unflatten(1, (CHANNELS, 3)).transpose(1, 2).flatten(1, 2)
    inside = functional.conv2d(
        seen, network.hidden.to(x)[:, :, None, None], network.hidden_bias.to(x)
    )
    change = functional.conv2d(
        torch.relu(inside), network.output.to(x)[:, :, None, None], network.output_bias.to(x)
    )
    return x + change[0]


def by_shifts(network: CellNetwork) -> Callable[[Tensor], Tensor]:
    """Shifts and matrix products with channels last, `[rows, columns, channels]`, by hand."""
    hidden, output = network.hidden.T.contiguous(), network.output.T.contiguous()

    def step(x: Tensor) -> Tensor:
        left, right = x.roll(1, 1), x.roll(-1, 1)
        across, along = right - left, left + 2 * x + right
        sobel_y = (along.roll(-1, 0) - along.roll(1, 0)) / 8
        sobel_x = (across.roll(1, 0) + 2 * across + across.roll(-1, 0)) / 8
        seen = torch.cat([x, sobel_y, sobel_x], -1)
        inside = torch.relu(seen @ hidden + network.hidden_bias)
        return x + (inside @ output + network.output_bias)

    return step


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def timed(go: Callable[[int], object], device: str, steps: int) -> tuple[float, float]:
    """The seconds of the first call and those of a step, the best of three."""
    begin = time.perf_counter()
    go(1)
    wait(device)
    first = time.perf_counter() - begin
    go(steps)
    best = float("inf")
    for _ in range(3):
        wait(device)
        begin = time.perf_counter()
        go(steps)
        wait(device)
        best = min(best, (time.perf_counter() - begin) / steps)
    return first, best


LIMITS = {"fp32": 1e-5, "tf32": 2e-3, "bf16": 5e-2}


def check(sim: Simulation, kind: str) -> float:
    """The largest difference from the slow reference after three steps; then back to the start.

    The reference is uncompiled, over planes, in double precision.
    """
    start = sim.state
    sim.run(3, progress=False)
    wide = {k: x.double() if x.is_floating_point() else x for k, x in start.items()}
    twin = Simulation(
        sim.model, size=sim.size, state=wide, dtype=torch.float64, compiled=False,
        form="padded", device=sim.device,
    )  # fmt: skip
    twin.run(3, progress=False)
    off = (sim.state["cells"].double() - twin.state["cells"]).abs().max().item()
    if not off < LIMITS[kind]:
        raise SystemExit(f"{sim.form} in {kind} is off by {off:g}, more than {LIMITS[kind]:g}")
    sim.reset()
    return off


Prepared = tuple[Callable[[int], object], Simulation | None]


def ours(model: Cells, form: str, compiled: bool, **options) -> Prepared:
    sim = Simulation(model, form=form, compiled=compiled, **options)
    # Not the method itself: the form may be another one after the first step.
    return lambda steps: sim._form.run(steps), sim  # noqa: PLW0108


def peer(step, size, last: bool, compiled: bool, device: str, dtype: torch.dtype) -> Prepared:
    call = torch.compile(step, dynamic=False) if compiled else step
    shape = (*size, CHANNELS) if last else (CHANNELS, *size)
    held = [torch.rand(shape, device=device, dtype=dtype)]

    def go(steps: int) -> None:
        with torch.no_grad():
            for _ in range(steps):
                held[0] = call(held[0])

    return go, None


def contestants(model: Cells, size: tuple[int, int], device: str, kind: str, quick: bool):
    """Each by name, as a function that prepares it."""
    options = {"size": size, "device": device, "dtype": KINDS[kind]}
    masked = model.alive is not None
    if not quick:
        yield "eager", lambda: ours(model, "vectors", False, **options)
    if device == "cuda":
        yield "fused", lambda: ours(model, "fused", True, **options)
        odd = {**options, "size": (61, 150)}
        yield "fused, 61x150", lambda: ours(model, "fused", True, **odd)
    yield "compiled", lambda: ours(model, "vectors", True, **options)
    if masked:
        return
    network = model.network.to(device, KINDS[kind])
    more = (device, KINDS[kind])
    yield (
        "peer: torch.compile of shifts + matmul",
        lambda: peer(by_shifts(network), size, True, True, *more),
    )
    if not quick:
        yield (
            "peer: convolutions",
            lambda: peer(lambda x: by_convolution(network, x), size, False, False, *more),
        )


def gradient_memory(device: str, side: int) -> list[dict]:
    """The largest memory of a gradient through 64 steps, with and without remat."""
    found = []
    for remat in (None, 8):
        network = CellNetwork.random(CHANNELS, 128, scale=0.02).to(device)
        for x in network.tensors().values():
            x.requires_grad_()
        model = Cells(network)
        state = {"cells": torch.rand(CHANNELS, side, side, device=device)}
        torch.cuda.reset_peak_memory_stats()
        wait(device)
        begin = time.perf_counter()
        later = rollout(model, state, 64, remat=remat)["cells"]
        later.square().mean().backward()
        wait(device)
        found.append({
            "case": f"gradient of 64 steps, {side}^2, hidden 128, remat {remat}",
            "seconds": round(time.perf_counter() - begin, 3),
            "peak GB": round(torch.cuda.max_memory_allocated() / 1e9, 2),
        })  # fmt: skip
    return found


def agrees_with_peers() -> None:
    """Both peers compute what the model does."""
    model = automaton(32, masked=False)
    start = torch.rand(CHANNELS, 20, 33, dtype=torch.float64)
    sim = Simulation(
        model, size=(20, 33), state={"cells": start}, dtype=torch.float64, compiled=False,
        form="padded", device="cpu",
    )  # fmt: skip
    sim.step()
    network = model.network.to("cpu", torch.float64)
    shifted = by_shifts(network)(start.movedim(0, -1)).movedim(-1, 0)
    for found in (shifted, by_convolution(network, start)):
        torch.testing.assert_close(found, sim.state["cells"])


def measured(prepare: Callable[[], Prepared], kind: str, device: str, steps: int):
    """Seconds of starting and of a step, how far off it is, and its grid."""
    go, sim = prepare()
    off = None if sim is None else check(sim, kind)
    first, seconds = timed(go, device, steps)
    if sim is None:
        return first, seconds, off, None
    # The first step of ours was inside the check.
    return sim.speed.startup_seconds, seconds, off, sim.size


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--size", type=int, default=0, help="side; default 1024, 128 on a CPU")
    options.add_argument("--steps", type=int, default=0)
    options.add_argument("--hidden", type=int, nargs="*", default=[32, 128])
    options.add_argument("--all", action="store_true", help="every type in every case; longer")
    given = options.parse_args()
    device = given.device
    side = given.size or (1024 if device == "cuda" else 128)
    steps = given.steps or (200 if device == "cuda" else 10)
    agrees_with_peers()
    rows = []
    for hidden in given.hidden:
        for masked in (False, True):
            quick = not given.all and (masked or hidden != given.hidden[0])
            for kind in ("bf16",) if quick else KINDS if device == "cuda" else ("fp32", "bf16"):
                torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
                torch.backends.cudnn.allow_tf32 = kind == "tf32"
                model = automaton(hidden, masked)
                for name, prepare in contestants(model, (side, side), device, kind, quick):
                    try:
                        first, seconds, off, size = measured(prepare, kind, device, steps)
                    except Exception as problem:  # noqa: BLE001  one contestant less
                        absent(name, problem)
                        continue
                    rows_, columns = size or (side, side)
                    rows.append({
                        "case": name, "hidden": hidden, "type": kind, "masked": masked,
                        "Mcell/s": round(rows_ * columns / seconds / 1e6, 2),
                        "first step s": round(first, 2),
                        "off": "" if off is None else f"{off:.1e}",
                    })  # fmt: skip
                    print("  ", rows[-1], flush=True)
                    gc.collect()
                    if device == "cuda":
                        torch.cuda.empty_cache()
    if device == "cuda":
        rows += gradient_memory(device, 256)
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    report(f"neural-ca-{device}", rows, device=name, grid=side, torch=torch.__version__)


if __name__ == "__main__":
    main()
