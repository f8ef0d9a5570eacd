"""The interface of byte models that segmenters use."""

from abc import ABC, abstractmethod

from torch import Tensor


class EntropyStream(ABC):
    """Entropies of bytes that come in parts; each part continues the one before."""

    @abstractmethod
    def push(self, data: bytes) -> Tensor:
        """Return the entropy in nats of each of these bytes, predicted from those before."""


class ByteModel(ABC):
    """Something that predicts bytes, and says how uncertain it is before each one."""

    thresholds: dict[str, dict[str, float]]
    """Calibrated thresholds: by the name of a segmenter and the mean length of a patch."""

    @abstractmethod
    def entropies(self, data: bytes) -> Tensor:
        """Return the entropy in nats of each byte, predicted from those before it."""

    @abstractmethod
    def stream(self) -> EntropyStream:
        """Return a stream of entropies for bytes that come in parts."""
