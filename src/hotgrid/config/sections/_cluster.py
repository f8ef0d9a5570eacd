"""The section `[cluster]`."""

from dataclasses import dataclass, field
from typing import Literal

from hotgrid.config._rules import Number, OneOf, Whole
from hotgrid.config._section import Section, about

Backend = Literal["auto", "gloo", "nccl"]


@dataclass(frozen=True, kw_only=True)
class Cluster(Section):
    """How ranks communicate; owned by `hotgrid.cluster`.

    Example:
        >>> Cluster(margin_depth=4).timeout
        300.0
    """

    backend: Backend = field(
        default="auto",
        metadata=about(
            OneOf(Backend), "The transport of messages: auto is nccl on GPUs and gloo on CPUs."
        ),
    )
    timeout: float = field(
        default=300.0,
        metadata=about(
            Number(1, 86_400),
            "Seconds to wait for another rank before the run stops with an error.",
        ),
    )
    margin_depth: int | Literal["auto"] = field(
        default="auto",
        metadata=about(
            Whole(1, 1024, auto=True),
            "Steps between two exchanges of the margin; auto leaves it to the planner.",
        ),
    )
