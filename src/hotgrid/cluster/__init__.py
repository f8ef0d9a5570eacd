"""cluster: the same program on many devices.

Layer: above `kernels`, below `store`. A `Mesh` lays ranks out over a grid and a `Block` is
what one of them owns: plain integers. A `Communicator` is one rank's access to a group of
ranks, always passed explicitly. It is used by `HaloExchange`, which fills the margins of
blocks in place, the differentiable collectives (`all_reduce`, `all_gather`,
`reduce_scatter`, `all_to_all`, `broadcast`, `permute`, `to_device`, `halo_exchange`,
`redistribute`), `GridFourier`, which transforms a grid that is split over ranks, and
the entry points of data-parallel training. `hotgrid.cluster.plan` predicts what a cluster
would do. Checkpoints are in `hotgrid.store`.
"""

from . import plan as plan
from ._all_or_raise import all_or_raise as all_or_raise
from ._block import Block as Block, shares as shares
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
    Communicator as Communicator,
    Message as Message,
    Pending as Pending,
    SingleRank as SingleRank,
)
from ._data_parallel import (
    data_parallel as data_parallel,
    fully_sharded as fully_sharded,
)
from ._fourier import GridFourier as GridFourier, redistribute as redistribute
from ._group import GroupCommunicator as GroupCommunicator
from ._halo import HaloExchange as HaloExchange, Needs as Needs, Traffic as Traffic
from ._launch import (
    StopRequest as StopRequest,
    follow_slurm as follow_slurm,
    is_primary as is_primary,
    job as job,
    launch as launch,
    launched as launched,
    restarts as restarts,
    run_module as run_module,
    run_ranks as run_ranks,
    world as world,
)
from ._mesh import Mesh as Mesh
from ._pieces import join as join, take as take
from ._shards import rank_seed as rank_seed, shard_of as shard_of
from ._trace import trace as trace
