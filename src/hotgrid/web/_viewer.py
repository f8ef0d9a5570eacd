"""One connected page: a slot for the latest frame, a window of two, and messages."""

import asyncio
import contextlib
import itertools
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from starlette.websockets import WebSocketDisconnect

from ._messages import DEFAULT_LIMITS, Limits, MessageError, Meter

WINDOW = 2
"""Frames under way that a page has not acknowledged."""
_SEND_TIMEOUT = 5.0
_MOST_TEXTS = 256
_NUMBERS = itertools.count(1)
_LOG = logging.getLogger("hotgrid.web")
# The errors that show that a page has left or was closed.
_GONE = (ConnectionError, TimeoutError, RuntimeError, WebSocketDisconnect)


class Socket(Protocol):
    """The part of a socket that a viewer needs; Starlette's has it."""

    async def send_bytes(self, data: bytes) -> None: ...
    async def send_text(self, data: str) -> None: ...
    async def receive(self) -> Any: ...
    async def close(self, code: int = 1000, reason: str | None = None) -> None: ...


class Viewer:
    """One connected page.

    Frames go into a slot that holds the latest only; a frame is made when the page can take
    one, so a slow page gets fewer frames and holds no memory. Texts queue up to a limit. A page
    that takes nothing for some seconds is closed; it reconnects by itself.

    Arguments:
        socket: The connection, accepted.
        limits: The limits on the messages of the page.
        timeout: Seconds after which a send that does not end closes the connection.
    """

    def __init__(
        self, socket: Socket, limits: Limits = DEFAULT_LIMITS, timeout: float = _SEND_TIMEOUT
    ) -> None:
        self.number = next(_NUMBERS)
        self._socket = socket
        self._limits = limits
        self._timeout = timeout
        self._texts: deque[str] = deque()
        self._frame: bytes | None = None
        self._sent = self._acknowledged = 0
        self._wake = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.closed = False

    @property
    def ready(self) -> bool:
        """Whether the page can take another frame."""
        return (
            not self.closed and self._frame is None and self._sent - self._acknowledged < WINDOW
        )

    @property
    def next_frame(self) -> int:
        """The number of the next frame."""
        return self._sent + 1

    def show(self, frame: bytes) -> None:
        """Put a frame into the slot, over one that was not sent yet."""
        self._frame = frame
        self._stir()

    def tell(self, message: dict[str, Any]) -> None:
        """Queue a message; one too many closes the connection."""
        if len(self._texts) >= _MOST_TEXTS:
            self.closed = True
        else:
            self._texts.append(json.dumps(message, allow_nan=False, separators=(",", ":")))
        self._stir()

    def _stir(self) -> None:
        """Wake the sender; frames and messages come from other threads too."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._wake.set)

    def acknowledge(self, frame: int) -> None:
        """Note that the page has drawn a frame."""
        if self._acknowledged < frame <= self._sent:
            self._acknowledged = frame

    async def serve(self, receive: Callable[[str | bytes], Awaitable[None]]) -> None:
        """Send and receive until the page leaves.

        Arguments:
            receive: Called with every message; a `MessageError` it raises is answered.
        """
        tasks = [asyncio.create_task(self._send()), asyncio.create_task(self._receive(receive))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.closed = True
            for task in tasks:
                task.cancel()
            # Not `gather`: cancelled itself, it raises the CancelledError of a task, which a
            # cancel scope around this one does not take for its own.
            await asyncio.wait(tasks)
            for task in tasks:
                problem = None if task.cancelled() else task.exception()
                if problem is not None and not isinstance(problem, _GONE):
                    _LOG.error("a viewer ended with an error", exc_info=problem)
            with contextlib.suppress(Exception):
                await asyncio.wait_for(self._socket.close(1011 if self._texts else 1000), 1)

    async def _send(self) -> None:
        while not self.closed:
            await self._wake.wait()
            self._wake.clear()
            while self._texts:
                text = self._texts.popleft()
                await asyncio.wait_for(self._socket.send_text(text), self._timeout)
            if self._frame is not None:
                # In this order: another thread must not find both the slot and the window free.
                self._sent += 1
                frame, self._frame = self._frame, None
                await asyncio.wait_for(self._socket.send_bytes(frame), self._timeout)

    async def _receive(self, receive: Callable[[str | bytes], Awaitable[None]]) -> None:
        meter = Meter(self._limits)
        while True:
            found = await self._socket.receive()
            if found["type"] == "websocket.disconnect":
                return
            if not meter.take():
                self.tell({"type": "error", "text": "too many messages; slow down"})
                await asyncio.sleep(1 / self._limits.rate)
            text = found.get("text")
            try:
                await receive(text if text is not None else found.get("bytes") or b"")
            except MessageError as problem:
                self.tell({"type": "error", "text": str(problem)})
