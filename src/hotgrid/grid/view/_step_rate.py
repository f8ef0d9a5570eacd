"""`StepRate`: how many steps a run makes in a second."""

from collections import deque

# Seconds over which steps are averaged, and between two notes.
_WINDOW = 2.0
_NOTE_EVERY = 0.05


class StepRate:
    """Steps a second over the last seconds, from step to step: at least over one of them."""

    def __init__(self) -> None:
        self._notes: deque[tuple[float, int]] = deque()

    def forget(self) -> None:
        """Start again, as after a pause."""
        self._notes.clear()

    def note(self, now: float, step: int) -> None:
        """Call before the first step, and after each or some of them.

        Arguments:
            now: The seconds of a clock.
            step: The step count.
        """
        notes = self._notes
        if notes and step < notes[-1][1]:
            notes.clear()
        if notes and (step == notes[-1][1] or now - notes[-1][0] < _NOTE_EVERY):
            return
        notes.append((now, step))
        while len(notes) > 2 and notes[1][0] <= now - _WINDOW:
            notes.popleft()

    def at(self, now: float) -> float:
        """Steps a second; it falls when the next step is overdue."""
        if len(self._notes) < 2:
            return 0.0
        (first, begun), (last, made) = self._notes[0], self._notes[-1]
        overdue = max(0.0, now - last - (last - first) / (len(self._notes) - 1))
        return (made - begun) / (last - first + overdue)
