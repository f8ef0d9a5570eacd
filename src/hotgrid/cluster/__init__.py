"""cluster: the same program on many devices.

Floor: above `kernels`, below `store`. A `Mesh` lays ranks out over a grid and a `Block` is
what one of them owns: plain integers. A `Communicator` is one rank's end of a group of
ranks, always given explicitly. On it stand `HaloExchange`, which fills the margins of
blocks in place, the differentiable collectives (`all_reduce`, `all_gather`,
`reduce_scatter`, `all_to_all`, `broadcast`, `permute`, `to_device`, `halo_exchange`), and
the entry points of data-parallel training. `best_plan` and its relatives say what a cluster
that need not be here would do. Checkpoints are not here but in `store`.
"""

from ._block import Block as Block, shares as shares
from ._calibration import (
    Calibration as Calibration,
    ModelSpeed as ModelSpeed,
    calibrate as calibrate,
    load_calibration as load_calibration,
    run_module as run_module,
)
from ._collectives import (
    all_gather as all_gather,
    all_reduce as all_reduce,
    all_to_all as all_to_all,
    broadcast as broadcast,
    halo_exchange as halo_exchange,
    permute as permute,
    reduce_scatter as reduce_scatter,
    to_device as to_device,
)
from ._communicator import (
    Alone as Alone,
    Communicator as Communicator,
    Message as Message,
    Pending as Pending,
)
from ._data_parallel import (
    data_parallel as data_parallel,
    fully_sharded as fully_sharded,
)
from ._group import GroupCommunicator as GroupCommunicator
from ._halo import HaloExchange as HaloExchange, Needs as Needs, Traffic as Traffic
from ._launch import (
    job as job,
    launch as launch,
    launched as launched,
    restarts as restarts,
    speaks as speaks,
)
from ._mesh import Mesh as Mesh
from ._pieces import join as join, take as take
from ._plan import (
    Estimate as Estimate,
    Job as Job,
    Plan as Plan,
    best_plan as best_plan,
    estimate as estimate,
)
from ._plan_machine import (
    Device as Device,
    Link as Link,
    known_devices as known_devices,
    parse_devices as parse_devices,
    parse_link as parse_link,
)
from ._plan_scaling import (
    ScalingPoint as ScalingPoint,
    strong_scaling as strong_scaling,
    weak_scaling as weak_scaling,
)
from ._schedule import (
    Round as Round,
    Schedule as Schedule,
    rounds_of as rounds_of,
    simulate_schedule as simulate_schedule,
)
from ._shards import rank_seed as rank_seed, shard_of as shard_of
from ._threads import run_ranks as run_ranks
from ._together import together as together
from ._trace import trace as trace
from ._world import world as world
