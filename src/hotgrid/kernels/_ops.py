"""Every tuned op by name, for `hotgrid tune` and the conformance tests."""

from collections.abc import Mapping
from types import MappingProxyType

from ._codebook import tuned_codebook
from ._convolve import tuned_convolve
from ._gemv import tuned_gemv
from ._topk import tuned_topk
from .tune import Tuned

OPS: Mapping[str, Tuned] = MappingProxyType(
    {
        each.op.name: each
        for each in (
            tuned_codebook,
            tuned_convolve,
            tuned_gemv,
            tuned_topk,
        )
    }
)
"""Every op that has candidates, by name."""
