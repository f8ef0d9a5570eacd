"""`UnderWay`: a burst of an engine that was begun."""

from dataclasses import dataclass

from ._fused._batch import Begun
from ._request import Request


@dataclass(frozen=True)
class UnderWay:
    """A burst whose tokens have not been read.

    Attributes:
        begun: What the device is at.
        requests: Its rows. Those that have left meanwhile get none of its tokens.
        counts: How many tokens it gives to each, the last ones of its row.
    """

    begun: Begun
    requests: list[Request]
    counts: list[int]
