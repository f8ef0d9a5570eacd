"""Stop requests: SIGTERM, as schedulers send it, and Ctrl-C."""

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

Handler = Callable[[int, FrameType | None], None]


class StopRequest:
    """Whether a run was asked to stop; inside the block SIGTERM does not end the process.

    Args:
        heeded: Whether the run checks it; otherwise signals have their usual effect.
        interrupts: Whether Ctrl-C is such a request as well, the first time.

    Example:
        >>> with StopRequest() as stop:
        ...     stop()
        False
    """

    def __init__(self, heeded: bool = True, *, interrupts: bool = False) -> None:
        # Only the main thread of a program receives signals.
        heeded = heeded and threading.current_thread() is threading.main_thread()
        self._handlers: dict[signal.Signals, Handler] = {}
        if heeded:
            self._handlers[signal.SIGTERM] = self._received
        # A job in the background of a shell ignores it, and stays so.
        if heeded and interrupts and signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
            self._handlers[signal.SIGINT] = self._interrupted
        self._before: dict[signal.Signals, Any] = {}
        self._came = False

    def __call__(self) -> bool:
        """Whether it was received."""
        return self._came

    def __enter__(self) -> "StopRequest":
        for number, handler in self._handlers.items():
            self._before[number] = signal.signal(number, handler)
        return self

    def _received(self, number: int, frame: FrameType | None) -> None:
        self._came = True

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        if self._came:
            raise KeyboardInterrupt
        self._came = True
        if os.environ.get("RANK", "0") == "0":
            # Not `print`: the signal may have come in the middle of one.
            os.write(2, b"\nstopping after this step; Ctrl-C again exits immediately\n")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
