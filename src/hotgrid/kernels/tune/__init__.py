"""kernels.tune: measure the machine, so that choices rest on figures and not on beliefs.

An `Op` holds a reference and candidates as data; `Tuned` makes it a function that times
the candidates on the first call of a kind, keeps the winner, and from then on only looks
it up. `explain` tells why. `Faults` is where guarded kernels note bad accesses;
`in_red_zones` finds those of kernels that note nothing.
"""

from ._array import expect_array as expect_array
from ._bandwidth import (
    Bandwidth as Bandwidth,
    copy_bandwidth as copy_bandwidth,
    kept_bandwidth as kept_bandwidth,
)
from ._cache import TuningCache as TuningCache
from ._call import Call as Call, Work as Work, bucket as bucket
from ._candidate import (
    NATIVE as NATIVE,
    TENSOR as TENSOR,
    TRITON as TRITON,
    Candidate as Candidate,
    Group as Group,
    always as always,
)
from ._contest import Contest as Contest
from ._dispatch import Tuned as Tuned
from ._explain import Explanation as Explanation, explain as explain, sampled as sampled
from ._op import Op as Op
from ._operator import operator_of as operator_of
from ._out import written as written
from ._outside import outside_of_modes as outside_of_modes
from ._peak import matmul_peak as matmul_peak
from ._plain import plain as plain, signature_of as signature_of, unwatched as unwatched
from ._ranking import Outcome as Outcome, Ranking as Ranking
from ._red_zones import in_red_zones as in_red_zones
from ._sampling import Timing as Timing
from ._shortcuts import check_of as check_of
from ._stamp import stamp as stamp
from ._tracing import (
    autocast_type as autocast_type,
    differentiated as differentiated,
    plain_sizes as plain_sizes,
    traced as traced,
    transformed as transformed,
)
from ._validation import Faults as Faults
