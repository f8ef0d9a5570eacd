"""From the engine's thread to the event loop: pieces of requests as they arise."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence

from hotgrid.chat._generate._request import Request, joined
from hotgrid.chat._generate._text import Piece


class Bell:
    """Wakes all waiters of an event loop, once per step."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.waiting: set[Pieces] = set()

    def ring(self) -> None:
        """Have them look; the engine's thread calls this."""
        # The loop is closed when the server was stopped meanwhile.
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._look)

    def _look(self) -> None:
        for pieces in self.waiting:
            pieces.look()


class Pieces:
    """Pieces of several requests, as they arise in the engine's thread.

    With `whole`, nothing is looked at before a request has ended, which saves the time of many
    wake-ups that the engine would have to wait for.
    """

    def __init__(self, requests: Sequence[Request], bell: Bell, *, whole: bool) -> None:
        self._requests, self._bell = requests, bell
        self._ready = asyncio.Event()
        self._abandoned = False
        bell.waiting.add(self)
        for request in requests:
            request.notify(bell.ring, whole=whole)

    def look(self) -> None:
        """Go on if there is something to take."""
        if any(request.ready for request in self._requests):
            self._ready.set()

    def __len__(self) -> int:
        return len(self._requests)

    async def __aiter__(self) -> AsyncGenerator[list[tuple[int, Piece]], None]:
        """Yield the places of requests and what is new of them, whenever there is something.

        Pieces of a request that wait are joined. It ends with the requests, or once abandoned.
        """
        left = dict(enumerate(self._requests))
        try:
            while left:
                await self._ready.wait()
                self._ready.clear()
                if self._abandoned:
                    return
                new: list[tuple[int, Piece]] = []
                for index, request in list(left.items()):
                    try:
                        found = request.take(wait=False)
                    except Exception:
                        if new:
                            yield new
                        raise
                    if not found:
                        continue
                    new.append((index, joined(found)))
                    if found[-1].finish is not None:
                        left.pop(index)
                    elif request.ready:
                        # An error is behind the last piece.
                        self._ready.set()
                if new:
                    yield new
        finally:
            self.cancel()

    def cancel(self) -> None:
        """End all requests that have not ended."""
        self._bell.waiting.discard(self)
        for request in self._requests:
            request.cancel()

    def abandon(self) -> None:
        """End what waits for pieces, as the client has gone."""
        self._abandoned = True
        self._ready.set()

    async def whole(self) -> list[Piece] | None:
        """Return all of each request as one piece; None where it was abandoned."""
        try:
            # Not by the generator: this is the path from one reply to the next request.
            while not self._abandoned and not all(each.ready for each in self._requests):
                self._ready.clear()
                await self._ready.wait()
            return None if self._abandoned else [_all_of(each) for each in self._requests]
        finally:
            self.cancel()


def _all_of(request: Request) -> Piece:
    found = request.take(wait=False)
    while found[-1].finish is None:
        # An error is behind the last piece.
        found += request.take(wait=False)
    return joined(found)
