"""`Rollback`: raised inside the loop when a step went wrong."""

from ._guard import Fault


class Rollback(Exception):  # noqa: N818  it never leaves the loop
    """A step went wrong, and the run must go back or end."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault
