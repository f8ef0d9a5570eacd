"""blt: bytes in patches."""

from ._entropy._byte_model import ByteModel as ByteModel, EntropyStream as EntropyStream
from ._entropy._config import ENTROPY_SIZES as ENTROPY_SIZES, EntropyConfig as EntropyConfig
from ._entropy._files import (
    load_entropy_model as load_entropy_model,
    save_entropy_model as save_entropy_model,
)
from ._entropy._model import EntropyModel as EntropyModel, EntropyOutput as EntropyOutput
from ._entropy._signals import PatchSignals as PatchSignals, Signals as Signals
from ._layers._ids import byte_ids as byte_ids, bytes_of as bytes_of, documents_of as documents_of
