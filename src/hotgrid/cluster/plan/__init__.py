"""cluster.plan: memory, step time and scaling of a job on a cluster that need not exist.

`estimate` computes one layout, `best_plan` the best of all, `strong_scaling` and
`weak_scaling` the curves, `simulate_schedule` the messages one by one. `calibrate` measures
this machine. It builds on the rest of `hotgrid.cluster`, which does not import it.
"""

from ._calibration import (
    Calibration as Calibration,
    ModelSpeed as ModelSpeed,
    calibrate as calibrate,
    load_calibration as load_calibration,
)
from ._estimate import Estimate as Estimate, Job as Job, estimate as estimate
from ._machine import (
    Device as Device,
    Link as Link,
    known_devices as known_devices,
    parse_devices as parse_devices,
    parse_link as parse_link,
)
from ._plan import ClusterPlan as ClusterPlan, best_plan as best_plan
from ._scaling import (
    ScalingPoint as ScalingPoint,
    strong_scaling as strong_scaling,
    weak_scaling as weak_scaling,
)
from ._schedule import (
    MessageSchedule as MessageSchedule,
    Round as Round,
    rounds_of as rounds_of,
    simulate_schedule as simulate_schedule,
)
