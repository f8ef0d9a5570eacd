"""Collectives with gradients: arguments, operators and the functions that users call."""

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
