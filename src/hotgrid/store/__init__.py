"""store: checkpoints and the folders of runs. Builds on `cluster`.

`RunFolder` is the folder of one run. `Checkpoints` is a folder
of saved steps, sharded over ranks, atomic, with checksums, written in the background if
requested, and readable on another mesh. Tensors are safetensors, the rest is JSON or TOML:
nothing that is read can run code.
"""

from ._checkpoints import Checkpoints as Checkpoints
from ._load import Checkpoint as Checkpoint
from ._run import RunFolder as RunFolder
from ._shard import Shard as Shard
