"""kernels.tune: choose between candidates by timing them, and measure the machine.

An `Op` holds a reference and candidates as data; `Tuned` makes it a function that times
the candidates on the first call of a kind, keeps the winner, and from then on only looks
it up. `explain` shows why. Guarded kernels record bad accesses in `Faults`;
`in_red_zones` finds those of kernels that record nothing.
"""

from ._arguments import expect_array as expect_array, written as written
from ._call import Call as Call, Work as Work, bucket as bucket
from ._check._red_zones import in_red_zones as in_red_zones
from ._check._validation import Faults as Faults
from ._dispatch import Tuned as Tuned
from ._explain import Explanation as Explanation, explain as explain, sampled as sampled
from ._measure._bandwidth import (
    Bandwidth as Bandwidth,
    copy_bandwidth as copy_bandwidth,
    kept_bandwidth as kept_bandwidth,
)
from ._measure._sampling import Timing as Timing, matmul_peak as matmul_peak
from ._measure._stamp import stamp as stamp
from ._modes import (
    autocast_type as autocast_type,
    differentiated as differentiated,
    outside_of_modes as outside_of_modes,
    plain_sizes as plain_sizes,
    traced as traced,
    transformed as transformed,
)
from ._op import (
    NATIVE as NATIVE,
    TENSOR as TENSOR,
    TRITON as TRITON,
    Candidate as Candidate,
    Group as Group,
    Op as Op,
    always as always,
)
from ._operator import operator_of as operator_of
from ._trials._cache import TuningCache as TuningCache
from ._trials._contest import Contest as Contest
from ._trials._ranking import Outcome as Outcome, Ranking as Ranking
from ._triton_launch import TritonLauncher as TritonLauncher
