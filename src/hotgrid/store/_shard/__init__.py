"""Shards: parts of tensors, their files, and the blocks that files are checked by."""

from ._blocks import BLOCK as BLOCK, blocks_of as blocks_of, check_blocks as check_blocks
from ._dtypes import bytes_of as bytes_of, dtype_of as dtype_of, is_known as is_known
from ._file import checked_places as checked_places, write_shard_file as write_shard_file
from ._region import Region as Region, fault_in_cover as fault_in_cover, whole as whole
from ._shard import (
    Shard as Shard,
    Spec as Spec,
    as_shards as as_shards,
    described as described,
    planned as planned,
)
from ._straight import Straight as Straight
