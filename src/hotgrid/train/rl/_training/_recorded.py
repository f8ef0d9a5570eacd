"""`Recorded`: a function of many small operations, recorded once and then replayed."""

from collections.abc import Callable
from functools import partial

import torch

from ._recorder import Call, Recorder, Tape


class Recorded:
    """A function without arguments, which changes tensors in place.

    It is for a CPU what a CUDA graph is for a GPU. Where tensors are small, most of the time
    goes into autograd, views, memory and Python. A replay only calls the kernels, on the
    memory of the recording. They are the same kernels in the same order, so the results are
    equal bit for bit, and whether a call is replayed or not makes no difference.

    The first call is a plain one, the second is recorded, and the third is made both ways and
    compared. If they differ, or if the function looks at numbers or needs much memory, all
    further calls are plain.

    Args:
        function: Its lasting state must be tensors that change in place.

    Example:
        >>> x = torch.zeros(3)
        >>> count = Recorded(lambda: x.add_(torch.ones(3) * 2))
        >>> for _ in range(5):
        ...     count()
        >>> x, count.replays
        (tensor([10., 10., 10.]), True)
    """

    def __init__(self, function: Callable[[], object]) -> None:
        self._function = function
        self._call: Call = self._first

    @property
    def replays(self) -> bool:
        """Whether the next call is a replay."""
        return isinstance(getattr(self._call, "__self__", None), Tape)

    def __call__(self) -> None:
        """Call the function, or replay it."""
        self._call()

    def _first(self) -> None:
        self._function()
        self._call = self._second

    def _second(self) -> None:
        with Recorder() as recorder:
            self._function()
        tape = recorder.tape()
        self._call = self._function if tape is None else partial(self._third, tape)

    def _third(self, tape: Tape) -> None:
        # A replay on both sides: what the function does beside torch shows in one of them.
        before = tape.snapshot()
        tape.replay()
        replays = [tape.snapshot()]
        tape.restore(before)
        self._function()
        after = tape.snapshot()
        tape.restore(before)
        tape.replay()
        replays.append(tape.snapshot())
        tape.restore(after)
        same = all(
            torch.equal(x, y) for found in replays for x, y in zip(found, after, strict=True)
        )
        self._call = tape.replay if same else self._function
