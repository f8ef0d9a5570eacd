"""Video: every second frame, as 224 x 224 pixels of RGB."""

from hotgrid.blt._ingest._settings import IngestSettings
from hotgrid.blt._sidecar._graph import Leaf
from hotgrid.errors import DamagedError

from ._media import pictures_of
from ._modality import Modality, View

EVERY, SIDE = 2, 224


class Video(Modality):
    """MP4, QuickTime, Matroska and WebM, AVI; with PyAV."""

    name = "video"

    def accepts(self, head: bytes, name: str) -> bool:
        """Whether the first bytes are those of a film."""
        matroska = head.startswith(b"\x1a\x45\xdf\xa3")
        return (
            head[4:8] == b"ftyp" or matroska or (head[:4] == b"RIFF" and head[8:11] == b"AVI")
        )

    def views(self, data: bytes, name: str, settings: IngestSettings) -> list[View]:
        """The frames one after another; a piece is a frame, with its time in seconds."""
        frames, size = pictures_of(data, settings, EVERY, SIDE)
        if not frames:
            raise DamagedError("the video has no frames")
        step = 3 * SIDE * SIDE
        pieces = [
            Leaf(
                f"video_frame_{n}",
                n * step,
                (n + 1) * step,
                1.0,
                {"timestamp": round(time, 6), "frame_idx": n * EVERY},
            )
            for n, (time, _) in enumerate(frames)
        ]
        joined = b"".join(each.tobytes() for _, each in frames)
        extra = {"width": SIDE, "height": SIDE, "format": "rgb24"}
        extra |= {"original_width": size["width"], "original_height": size["height"]}
        return [View("video", self.name, joined, pieces, extra, framed=True)]
