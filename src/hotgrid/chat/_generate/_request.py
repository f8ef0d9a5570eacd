"""`Request`: one reply that an engine works on."""

import threading
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from hotgrid.errors import HotgridError

from ._reply import Reply
from ._text import Piece


class Worker(Protocol):
    """The parts of an engine that a request needs."""

    @property
    def running(self) -> bool:
        """Whether it works in a thread of its own."""
        ...

    def step(self) -> bool:
        """Do one step."""
        ...

    def wake(self) -> None:
        """Have it look at its requests again."""
        ...


class UnavailableError(HotgridError, RuntimeError):
    """An engine takes no request now: too many wait, or it has been stopped."""

    exit_code = 1


def joined(pieces: Sequence[Piece]) -> Piece:
    """Return one piece of several."""
    if len(pieces) == 1:
        return pieces[0]
    return Piece(
        "".join(piece.text for piece in pieces),
        tuple(token for piece in pieces for token in piece.tokens),
        tuple(each for piece in pieces for each in piece.likelihoods),
        pieces[-1].finish if pieces else None,
    )


class Request:
    """A reply of an engine: iterate for its pieces, as with `generate`.

    Attributes:
        number: Requests are numbered as they come.
        reply: The sequence so far. It belongs to the engine.
    """

    def __init__(self, engine: Worker, number: int, reply: Reply) -> None:
        self.number, self.reply = number, reply
        # The engine's: which blocks and slot it has, how many tokens are in the cache, and how
        # many are under way; the cache has them, too, but for the last.
        self.blocks: array[int] = array("q")
        self.slot, self.cached, self.coming = -1, 0, 0
        self.cancelled = False
        self._engine = engine
        self._pieces: deque[Piece] = deque()
        self._changed = threading.Condition()
        self._problem: Exception | None = None
        self._notify: Callable[[], None] | None = None
        self._whole = False
        self._ended = False

    @property
    def pending(self) -> int:
        """How many tokens are not in the cache yet."""
        return len(self.reply.tokens) + self.coming - self.cached

    @property
    def left(self) -> int:
        """The most tokens that can still come after those being computed."""
        return self.reply.left - self.coming

    def cancel(self) -> None:
        """End it soon; its last piece says `cancelled`. Nothing happens if it has ended."""
        self.cancelled = True
        self._engine.wake()

    @property
    def at_end(self) -> bool:
        """Whether its text is wanted only once it has ended, and cannot end it."""
        return self._whole and not self.reply.sampling.stop

    @property
    def ready(self) -> bool:
        """Whether there is something to take that `notify` tells of."""
        there = self._ended if self._whole else self._pieces
        return bool(there) or self._problem is not None

    def notify(self, function: Callable[[], None], *, whole: bool = False) -> None:
        """Have a function called in the engine's thread whenever there is something to take.

        With `whole`, only once it is complete. A function of several requests is called
        once for what they get at the same time.
        """
        with self._changed:
            self._notify, self._whole = function, whole
            ready = self.ready
        if ready:
            function()

    def take(self, *, wait: bool = True) -> list[Piece]:
        """Return the pieces that are there; with `wait`, at least one unless it has ended.

        Raises:
            Exception: What the model raised, if it did.
        """
        with self._changed:
            while wait and not self._pieces and self._problem is None and not self._ended:
                if self._engine.running:
                    # A time, as the engine may be stopped by then.
                    self._changed.wait(0.5)
                else:
                    self._changed.release()
                    try:
                        self._engine.step()
                    finally:
                        self._changed.acquire()
            found = list(self._pieces)
            self._pieces.clear()
        if not found and self._problem is not None:
            raise self._problem
        return found

    def __iter__(self) -> Iterator[Piece]:
        while True:
            for piece in (found := self.take()):
                yield piece
                if piece.finish is not None:
                    return
            if not found:
                return

    def deliver(self, piece: Piece) -> Callable[[], None] | None:
        """Hand over a piece; the engine does, and then calls what this returns."""
        with self._changed:
            self._pieces.append(piece)
            self._ended = self._ended or piece.finish is not None
            self._changed.notify_all()
            return self._notify if self.ready else None

    def fail(self, problem: Exception) -> Callable[[], None] | None:
        """Hand over an error; the engine does, and then calls what this returns."""
        with self._changed:
            self._problem = problem
            self._changed.notify_all()
            return self._notify
