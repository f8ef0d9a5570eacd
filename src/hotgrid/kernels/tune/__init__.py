"""kernels.tune: measure the machine, so that choices rest on figures and not on beliefs."""

from ._bandwidth import Bandwidth as Bandwidth, copy_bandwidth as copy_bandwidth
