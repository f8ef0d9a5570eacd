"""Audio: decoded to 16-bit samples and taken in frames of 160."""

import io
import wave

import numpy as np
from numpy.typing import NDArray

from hotgrid.blt._ingest._settings import IngestSettings
from hotgrid.blt._sidecar._graph import Leaf
from hotgrid.errors import DamagedError

from ._media import sound_of
from ._modality import Modality, View, expect_decoded
from ._text import Text

FRAME = 160
_MAGICS = (b"fLaC", b"OggS", b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")


class Audio(Modality):
    """WAV files by themselves; FLAC, Ogg and MP3 with PyAV."""

    name = "audio"

    def accepts(self, head: bytes, name: str) -> bool:
        """Whether the first bytes are those of a sound."""
        if head[:4] == b"RIFF":
            return head[8:12] == b"WAVE"
        # A text may begin with the same letters.
        return head.startswith(_MAGICS) and not Text().accepts(head, name)

    def views(self, data: bytes, name: str, settings: IngestSettings) -> list[View]:
        """The samples of all channels in turn, 16-bit and little-endian."""
        try:
            samples, rate, channels = _wav(data, settings)
        except _OtherCodingError:
            samples, rate, channels = sound_of(data, settings)
        return [_view(samples, rate, channels)]


class _OtherCodingError(Exception):
    """The file is not a WAV file, or not one of plain samples."""


def _wav(data: bytes, settings: IngestSettings) -> tuple[NDArray[np.int16], int, int]:
    if data[:4] != b"RIFF":
        raise _OtherCodingError
    try:
        with wave.open(io.BytesIO(data)) as file:
            count, width, channels = file.getnframes(), file.getsampwidth(), file.getnchannels()
            # The header may promise more than there is.
            expect_decoded(min(count * channels * 2, 2 * len(data)), settings)
            raw, rate = file.readframes(count), file.getframerate()
    except wave.Error as problem:
        if "unknown format" in str(problem):
            raise _OtherCodingError from None
        raise DamagedError(f"the WAV file is damaged: {problem}") from None
    except (EOFError, RuntimeError) as problem:
        raise DamagedError(f"the WAV file is damaged: {problem or 'it is cut'}") from None
    whole = raw[: len(raw) // (width * channels) * width * channels]
    if width == 1:
        samples = (np.frombuffer(whole, np.uint8).astype(np.int16) - 128) * 256
    else:
        # The two highest of the bytes of each sample.
        parts = np.frombuffer(whole, np.uint8).reshape(-1, width)[:, -2:]
        samples = np.ascontiguousarray(parts).view("<i2")[:, 0]
    return samples.astype(np.int16, copy=False), rate, channels


def _view(samples: NDArray[np.int16], rate: int, channels: int) -> View:
    data = samples.astype("<i2", copy=False).tobytes()
    if not data:
        raise DamagedError("the audio has no samples")
    step = FRAME * channels * 2
    pieces = [
        Leaf(
            "audio_frame",
            begin,
            min(begin + step, len(data)),
            1.0,
            {"frame_index": begin // step},
        )
        for begin in range(0, len(data), step)
    ]
    extra = {"sample_rate": rate, "channels": channels, "frame_size_samples": FRAME}
    return View("audio", "audio", data, pieces, extra, framed=True)
