"""kernels: operations with two or more implementations, and the measurements that choose.

Stands on `tensors`; `cluster` and everything above stand on it. A caller names
what is to be computed and this room decides how. `tune` holds the machinery of
that decision; its first part measures the copy bandwidth of a device, the figure
that every "share of the hardware limit" in hotgrid is a share of.
"""

from .tune import Bandwidth as Bandwidth, copy_bandwidth as copy_bandwidth
