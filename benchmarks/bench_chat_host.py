"""The host's share of a burst: microseconds of the engine for 32 replies, without a device.

    python benchmarks/bench_chat_host.py [--rows 32] [--steps 8] [--stream]

A batch that returns tokens at once stands for the device. So what is left is what the engine
does for a burst: blocks, numbers to draw with, tokens, ends, text and handing over. Whole
replies get their text at their end, streams with every burst.
"""

import time

import numpy as np
import torch
from chat_models import random_language
from options import parser
from report import report

from hotgrid.chat import Engine, Sampling
from hotgrid.chat._generate import _stepper


class Instant:
    """Bursts that have ended when they begin."""

    def __init__(self, model, caches, page, batch, blocks, steps) -> None:
        self._tokens = np.random.default_rng(0).integers(300, 500, (batch, steps)).tolist()
        self.last = None

    def start(self, rows, temperatures, uniforms, before=None) -> "Instant":
        """Take the shape."""
        self._shape = len(rows), len(uniforms)
        return self

    def prepare(self) -> None:
        """Nothing is compiled."""

    def near_end(self) -> None:
        """It has ended."""

    def chosen(self) -> list[list[int]]:
        """Return the tokens."""
        rows, steps = self._shape
        return [row[:steps] for row in self._tokens[:rows]]


def seconds(language, rows: int, *, stream: bool) -> float:
    """The shortest time of a burst, of 18."""
    engine = Engine(language, slots=rows, static=True)
    for seed in range(rows):
        request = engine.submit([1, 2, 3, 4], Sampling(seed=seed, max_tokens=200))
        request.notify(lambda: None, whole=not stream)
    for _ in range(3):
        engine.step()
    times = []
    for _ in range(18):
        begin = time.perf_counter()
        engine.step()
        times.append(time.perf_counter() - begin)
    return min(times)


def main() -> None:
    options = parser(__doc__, devices=("cpu",))
    options.add_argument("--rows", type=int, default=32)
    options.add_argument("--steps", type=int, default=8)
    options.add_argument("--stream", action="store_true")
    given = options.parse_args()
    torch.set_num_threads(1)
    _stepper.fusible = lambda model: True
    _stepper.FusedBatch = Instant
    _stepper._STEPS = given.steps
    language = random_language("tiny", "cpu")
    best = min(seconds(language, given.rows, stream=given.stream) for _ in range(12))
    row = {"rows": given.rows, "steps": given.steps, "us a burst": round(1e6 * best, 1)}
    report(f"chat-host-{'stream' if given.stream else 'whole'}", [row], device="cpu")


if __name__ == "__main__":
    main()
