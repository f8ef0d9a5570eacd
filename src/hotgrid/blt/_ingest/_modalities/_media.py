"""PyAV: audio and video, within the limit on what they decode to."""

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotgrid.blt._ingest._settings import IngestSettings
from hotgrid.errors import DamagedError, HotgridError, MissingPartError

from ._modality import expect_decoded


def sound_of(data: bytes, settings: IngestSettings) -> tuple[NDArray[np.int16], int, int]:
    """The samples of the first sound in a file, their rate, and the number of channels."""
    av = _av("sounds other than WAV")
    try:
        with av.open(io.BytesIO(data), metadata_errors="ignore") as file:
            if not file.streams.audio:
                raise DamagedError("there is no audio in the file")
            stream = file.streams.audio[0]
            rate, channels = stream.codec_context.sample_rate, stream.codec_context.channels
            layout = stream.codec_context.layout.name
            resampler = av.AudioResampler(format="s16", layout=layout, rate=rate)
            parts, size = [], 0
            for frame in _frames(file, stream):
                for each in resampler.resample(frame):
                    parts.append(each.to_ndarray().ravel())
                    size += parts[-1].nbytes
                    expect_decoded(size, settings)
            for each in resampler.resample(None):
                parts.append(each.to_ndarray().ravel())
    except HotgridError:
        raise
    except Exception as problem:  # noqa: BLE001 - decoders raise whatever they meet
        raise DamagedError(f"the audio is damaged: {problem}"[:300]) from None
    return np.concatenate(parts) if parts else np.empty(0, np.int16), rate, channels


def pictures_of(
    data: bytes, settings: IngestSettings, every: int, side: int
) -> tuple[list[tuple[float, NDArray[np.uint8]]], dict[str, int]]:
    """Every Nth frame of a film as squares of RGB with their times, and its size."""
    av = _av("films")
    found: list[tuple[float, NDArray[np.uint8]]] = []
    try:
        with av.open(io.BytesIO(data), metadata_errors="ignore") as file:
            if not file.streams.video:
                raise DamagedError("there is no video in the file")
            stream = file.streams.video[0]
            size = {"width": stream.codec_context.width, "height": stream.codec_context.height}
            expect_decoded(3 * size["width"] * size["height"], settings)
            for number, frame in enumerate(_frames(file, stream)):
                if number % every:
                    continue
                small = frame.reformat(side, side, "rgb24", interpolation="BILINEAR")
                found.append((float(frame.time or 0.0), small.to_ndarray()))
                expect_decoded(3 * side * side * len(found), settings)
    except HotgridError:
        raise
    except Exception as problem:  # noqa: BLE001 - decoders raise whatever they meet
        raise DamagedError(f"the video is damaged: {problem}"[:300]) from None
    return found, size


def _frames(file: Any, stream: Any) -> Iterator[Any]:
    # Threads of a decoder keep frames back, and their number would be that of the machine.
    stream.thread_type = "NONE"
    for packet in file.demux(stream):
        yield from packet.decode()


def _av(what: str) -> Any:
    try:
        import av
        import av.logging
    except ImportError:
        raise MissingPartError(f"{what} need PyAV: pip install 'hotgrid[video]'") from None
    # Damaged files would fill the terminal with messages of FFmpeg.
    av.logging.set_level(None)
    return av
