"""data: documents from files, shuffled and packed into batches that resume exactly.

`Shards` reads documents from text, JSON lines and parquet files. `ShuffleBuffer` and `Packer`
are the two steps between documents and rows of equal length. `PackedBatches` joins them:
batches of rows, prepared ahead in a thread, split over ranks, and resumable in the middle of
a file.
"""

from ._batches import PackedBatches as PackedBatches
from ._counters import Counters as Counters
from ._packer import Packer as Packer
from ._shards import Document as Document, Position as Position, Shards as Shards
from ._shuffle import ShuffleBuffer as ShuffleBuffer
