"""Films of a simulation: a frame every N steps."""

import contextlib
import importlib.util
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any

from hotgrid.errors import ArgumentError, MissingPartError
from hotgrid.files import whole_file
from hotgrid.grid.forms import GridState
from hotgrid.grid.model import checked_path, whole_number

from ._aspect import Aspect
from ._picture import Picture


class Recorder:
    """Films a simulation while it runs, from the state it has when the film begins.

    An `.mp4` needs PyAV (`pip install hotgrid[video]`) and is written frame by frame; a
    `.gif` needs no more than matplotlib, and its frames stay in memory until the end.
    The film appears when the block ends, also when an exception ends it, with the
    frames there are.

    Arguments:
        simulation: What is filmed.
        path: The film; its suffix gives the format.
        every: Steps from frame to frame.
        view: One of the model's views, by default the model's own choice; or an `Aspect`.
        frames_per_second: How fast it plays.

    Attributes:
        path: The film.
        frames: How many frames it has so far.

    Example:
        >>> from hotgrid.grid import pde
        >>> sim = Simulation(pde.Heat(), size=(16, 16), compiled=False)
        >>> with Recorder(sim, "heat.gif", every=10) as film:
        ...     speed = sim.run(30)
        >>> film.frames
        4

    Raises:
        ArgumentError: The suffix or the view is unknown, or the path cannot be written.
        MissingPartError: matplotlib or PyAV is needed and not installed.
    """

    def __init__(
        self,
        simulation: GridState,
        path: str | Path,
        every: int,
        view: "str | Aspect | None" = None,
        frames_per_second: int = 25,
    ) -> None:
        self.path = checked_path("path", path)
        self.frames = 0
        every = whole_number("every", every, 1)
        frames_per_second = whole_number("frames_per_second", frames_per_second, 1)
        if self.path.suffix not in (".mp4", ".gif"):
            raise ArgumentError(f"`{path}` is not a film; it must end in .mp4 or .gif")
        if self.path.suffix == ".mp4" and importlib.util.find_spec("av") is None:
            raise MissingPartError(
                f"`{path}` needs PyAV: run `pip install hotgrid[video]`, or record a .gif"
            )
        self._simulation = simulation
        self._every = every
        self._speed = frames_per_second
        self._picture = Picture(simulation, view)
        self._open = contextlib.ExitStack()
        self._film: _Mp4 | _Gif | None = None

    def __enter__(self) -> "Recorder":
        kind = _Mp4 if self.path.suffix == ".mp4" else _Gif
        with contextlib.ExitStack() as opening:
            self._film = kind(opening.enter_context(whole_file(self.path)), self._speed)
            self.take(self._simulation)
            self._open = opening.pop_all()
        self._simulation.every(self._every, self.take)
        return self

    def take(self, simulation: GridState) -> None:
        """Add the present state as a frame; nothing when the film has ended."""
        if self._film is not None:
            self._picture.redraw()
            self._film.add(self._picture)
            self.frames += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        film, self._film = self._film, None
        with self._open:
            if film is not None:
                film.finish()


class _Mp4:
    """H.264, which every browser and player shows."""

    def __init__(self, path: Path, frames_per_second: int) -> None:
        import av

        self._video: Any = av.open(path, "w", format="mp4")
        self._speed = Fraction(frames_per_second)
        self._stream: Any = None

    def add(self, picture: Picture) -> None:
        import av

        pixels = picture.pixels()
        if self._stream is None:
            quality = {"crf": "18", "preset": "fast"}
            self._stream = self._video.add_stream("libx264", rate=self._speed, options=quality)
            self._stream.height, self._stream.width = pixels.shape[:2]
            self._stream.pix_fmt = "yuv420p"
        frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
        self._video.mux(self._stream.encode(frame))

    def finish(self) -> None:
        self._video.mux(self._stream.encode())
        self._video.close()


class _Gif:
    """An animated GIF; Pillow comes with matplotlib."""

    def __init__(self, path: Path, frames_per_second: int) -> None:
        self._path = path
        self._milliseconds = round(1000 / frames_per_second)
        self._frames: list[Any] = []

    def add(self, picture: Picture) -> None:
        from PIL import Image

        # The colours of the map itself: exact, quick, and the same from frame to frame.
        palette = Image.new("P", (1, 1))
        palette.putpalette(picture.palette().tobytes())
        frame = Image.fromarray(picture.pixels())
        self._frames.append(frame.quantize(palette=palette, dither=Image.Dither.NONE))

    def finish(self) -> None:
        first, *others = self._frames
        first.save(
            self._path,
            format="GIF",
            save_all=True,
            append_images=others,
            duration=self._milliseconds,
            loop=0,
        )
