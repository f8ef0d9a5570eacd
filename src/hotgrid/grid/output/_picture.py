"""Pictures of a simulation: one view with title and colour bar."""

import io
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from torch import Tensor

from hotgrid.cluster import Block
from hotgrid.errors import ArgumentError, MissingPartError, near
from hotgrid.files import whole_file
from hotgrid.grid.forms import GridState, look_at

from ._aspect import Aspect
from ._colours import Colours, colours_for

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray


_DPI = 120
# All in inches: the largest and smallest picture, and the space around it.
_WIDEST, _TALLEST, _THINNEST = 8.0, 6.4, 0.9
_LEFT, _RIGHT, _BOTTOM, _TOP = 0.65, 1.1, 0.55, 0.4
_TITLE, _BAR_GAP, _BAR = 4.2, 0.12, 0.16
# More cells than this along a side are not visible, only slow.
_MOST_CELLS = 4096


class Picture:
    """One view of a simulation as a figure, which can follow the simulation.

    Three dims are shown as a slice, the middle one of the first; one dim as a curve. Solid
    cells are grey: those of an input `solid`, or of the model's `solid(size)`. Of a
    batch the first run is shown. In a notebook a picture shows itself.

    Arguments:
        simulation: What is drawn.
        view: One of the model's views, by default the model's own choice; or an `Aspect`,
            which has colours, their limits and a slice as well.

    Example:
        >>> from hotgrid.grid import pde
        >>> sim = Simulation(pde.Heat(), size=(16, 32), compiled=False)
        >>> Picture(sim, "u").pixels().shape[2]
        3

    Raises:
        ArgumentError: The model has no such view.
        MissingPartError: matplotlib is not installed.
    """

    def __init__(self, simulation: GridState, view: "str | Aspect | None" = None) -> None:
        need_matplotlib()
        self._simulation = simulation
        self._aspect = view if isinstance(view, Aspect) else Aspect(view)
        self.view = view_name(simulation, self._aspect.view)
        numbers = self._numbers()
        self._colours = self._range = self._suited(numbers)
        self.figure, self._axes, self._when = _frame(self._title(), numbers.shape)
        if numbers.ndim == 1:
            self._drawn: Any = self._axes.plot(numbers, color="0.15", lw=1.2)[0]
            self._axes.set_ylabel(self.view)
            if self._aspect.limits is not None:
                self._axes.set_ylim(*self._aspect.limits)
        else:
            self._drawn = _image(self.figure, self._axes, numbers, self._colours)
            down, along = (name for i, name in enumerate("zyx") if i != self._aspect.axis)
            if len(simulation.size) == 3:
                self._axes.set(xlabel=along, ylabel=down)
            if simulation.model.y_up:
                self._axes.invert_yaxis()
        self._when.set_text(self._moment())
        self._still: Any = None

    def __repr__(self) -> str:
        model = type(self._simulation.model).__name__
        return f"<picture of {self.view} of {model}; .save('{self.view}.png') keeps it>"

    def redraw(self) -> None:
        """Show the present state; the range of the colours follows it slowly."""
        numbers = self._numbers()
        self._range = self._range.followed(self._suited(numbers))
        if numbers.ndim == 1:
            self._drawn.set_ydata(numbers)
            self._axes.relim()
            self._axes.autoscale_view()
            self._still = None
        else:
            self._drawn.set_data(numbers)
        if numbers.ndim > 1 and not self._colours.suits(self._range):
            self._colours = self._range
            self._drawn.set_clim(self._colours.low, self._colours.high)
            self._drawn.set_cmap(self._colours.colour_map())
            self._still = None
        self._when.set_text(self._moment())

    def pixels(self) -> "NDArray[np.uint8]":
        """The picture as `[height, width, 3]`; both are even, as films need them."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        moving = (self._drawn, self._when)
        if self._still is None:
            # Axes and texts take most of the time, and do not change from frame to frame.
            canvas = FigureCanvasAgg(self.figure)
            for artist in moving:
                artist.set_visible(False)
            canvas.draw()
            self._still = canvas.copy_from_bbox(self.figure.bbox)
            for artist in moving:
                artist.set_visible(True)
        canvas: Any = self.figure.canvas
        canvas.restore_region(self._still)
        for artist in (*moving, *self._axes.spines.values()):
            artist.draw(canvas.get_renderer())
        return np.asarray(canvas.buffer_rgba())[..., :3].copy()

    def palette(self) -> "NDArray[np.uint8]":
        """The 256 colours that approximate the pixels, `[256, 3]`: the map and greys."""
        if self._colours.kind == "coded":
            return self._colours.palette()
        colours = self._colours.colour_map()(np.linspace(0, 1, 224))[:, :3]
        greys = np.linspace(0, 1, 32)[:, None].repeat(3, 1)
        return (255 * np.concatenate([colours, greys])).round().astype(np.uint8)

    def save(self, path: str | Path) -> Path:
        """Write it in the format of the suffix (`.png`, `.pdf`, `.svg`), atomically.

        Raises:
            ArgumentError: The suffix is unknown or the path cannot be written.
        """
        path = Path(path)
        kinds = self.figure.canvas.get_supported_filetypes()
        kind = path.suffix.removeprefix(".").lower()
        if kind not in kinds:
            raise ArgumentError(
                f"`{path}` must end in .png, .pdf, .svg or another kind of picture"
                f"{near(kind, kinds)}"
            )
        with whole_file(path) as aside:
            self.figure.savefig(aside, format=kind)
        return path

    def _repr_png_(self) -> bytes:
        memory = io.BytesIO()
        self.figure.savefig(memory, format="png")
        return memory.getvalue()

    def _numbers(self) -> np.ndarray:
        """The view as an array of one or two dims, solid cells masked."""
        simulation = self._simulation
        # For a grid over ranks, only what is drawn is sent.
        if simulation._form.ranks is None or simulation.model.reach_of(self.view) is None:
            seen = simulation.view(self.view)
            numbers = self._cut(seen[0] if simulation._setting.batch else seen)
        else:
            places = self._aspect.places(simulation.size, _MOST_CELLS)
            numbers = self._plane(look_at(simulation, self.view, places).cpu())
        if numbers.dtype.kind not in "buif":
            raise ArgumentError(f"the view `{self.view}` has no real numbers")
        solid = solid_cells(simulation)
        return numbers if solid is None else np.ma.masked_array(numbers, mask=self._cut(solid))

    def _cut(self, x: Tensor) -> np.ndarray:
        """The visible part of `[*space]`: a slice of three dims, thinned if it is large."""
        places = self._aspect.places(x.shape, _MOST_CELLS)
        return self._plane(x[tuple(slice(p.start, p.stop, p.step) for p in places)])

    def _plane(self, x: Tensor) -> np.ndarray:
        x = x.select(self._aspect.axis, 0) if x.ndim == 3 else x
        # NumPy has no bfloat16, and percentiles of float16 are coarse.
        return (x.float() if x.is_floating_point() else x).numpy()

    def _suited(self, numbers: np.ndarray) -> Colours:
        found = colours_for(self._simulation.model, self.view, _unmasked(numbers))
        if found.kind == "coded":
            return found
        limits = self._aspect.limits
        found = found if limits is None else found.within(*limits)
        return replace(found, map=self._aspect.colours)

    def _title(self) -> str:
        size = self._simulation.size
        axis = self._aspect.axis
        where = (
            f", slice {self._aspect.slice_of(size)} of {size[axis]}" if len(size) == 3 else ""
        )
        name = self.view.replace("_", " ")
        return f"{type(self._simulation.model).__name__}: {name}{where}"

    def _moment(self) -> str:
        return f"step {self._simulation.step_count:,}   time {self._simulation.time:g}"


@overload
def draw(simulation: GridState, view: str | None = None, path: None = None) -> Picture: ...
@overload
def draw(simulation: GridState, view: str | None, path: str | Path) -> Path: ...
@overload
def draw(simulation: GridState, view: str | None = None, *, path: str | Path) -> Path: ...


def draw(
    simulation: GridState, view: str | None = None, path: str | Path | None = None
) -> Picture | Path:
    """Draw one view of a simulation, and write it to a file if a path is given.

    Arguments:
        simulation: What is drawn.
        view: One of the model's views; by default the model's own choice.
        path: Where to write it; the suffix gives the format.

    Returns:
        The `Picture`, whose `figure` is matplotlib's; or the path that was written.

    Example:
        >>> from hotgrid.grid import pde
        >>> sim = Simulation(pde.Heat(), size=(16, 32), compiled=False)
        >>> draw(sim, path="heat.png").name
        'heat.png'

    Raises:
        ArgumentError: There is no such view, or the path cannot be written.
        MissingPartError: matplotlib is not installed.
    """
    picture = Picture(simulation, view)
    return picture if path is None else picture.save(path)


def need_matplotlib() -> None:
    """Raise `MissingPartError` where pictures cannot be drawn."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise MissingPartError(
            "pictures need matplotlib: run `pip install matplotlib`"
        ) from None


def view_name(simulation: GridState, view: str | None) -> str:
    """The name of a view, or of the one shown by default.

    Raises:
        ArgumentError: The model has no such view, or none at all.
    """
    model = simulation.model
    views = model.views()
    if not views:
        raise ArgumentError(f"{type(model).__name__} has no views; give it a `@view`")
    name = view or model.picture or next(iter(views))
    if name not in views:
        raise ArgumentError(
            f"{type(model).__name__} has no view `{name}`{near(name, views)} "
            f"(its views are {', '.join(views)})"
        )
    return name


def solid_cells(simulation: GridState) -> Tensor | None:
    """Where a model is solid, bool `[*space]` on the CPU, or None if it does not define it."""
    setting = simulation._setting
    if "solid" in setting.inputs:
        part, size = setting.part_inputs, setting.size
        inputs = part(Block((0,) * len(size), size, size)) if part else setting.inputs
        return inputs["solid"][0].cpu() != 0
    say = getattr(simulation.model, "solid", None)
    # A view of that name takes a state, not a size.
    if not callable(say) or hasattr(say, "_grid_role"):
        return None
    found = say(simulation.size)
    return found if isinstance(found, Tensor) and found.shape == simulation.size else None


def _unmasked(numbers: np.ndarray) -> np.ndarray:
    return numbers.compressed() if isinstance(numbers, np.ma.MaskedArray) else numbers


def _frame(title: str, shape: tuple[int, ...]) -> tuple["Figure", Any, Any]:
    """A figure that fits the grid, its axes, and the text with the time."""
    from matplotlib.figure import Figure

    rows, columns = shape if len(shape) == 2 else (3, 8)
    scale = min(_WIDEST / columns, _TALLEST / rows)
    width, height = max(columns * scale, _THINNEST), max(rows * scale, _THINNEST)
    titled = max(width, _TITLE)
    full_width = _even(_LEFT + titled + _RIGHT)
    full_height = _even(_BOTTOM + height + _TOP)
    figure = Figure((full_width, full_height), dpi=_DPI)
    left, bottom = _LEFT / full_width, _BOTTOM / full_height
    axes = figure.add_axes((left, bottom, width / full_width, height / full_height))
    axes.set_xlabel("x")
    line = bottom + (height + 0.1) / full_height
    figure.text(left, line, title, size=11, weight="bold")
    when = figure.text(left + titled / full_width, line, "", size=10, color="0.35", ha="right")
    return figure, axes, when


def _even(inches: float) -> float:
    """The nearest length that is an even number of pixels."""
    return 2 * round(_DPI * inches / 2) / _DPI


def _image(figure: "Figure", axes: Any, numbers: np.ndarray, colours: Colours) -> Any:
    image = axes.imshow(
        numbers,
        cmap=colours.colour_map(),
        vmin=colours.low,
        vmax=colours.high,
        aspect="auto",
        interpolation_stage="data",
    )
    axes.set_ylabel("y")
    if colours.kind == "coded":
        return image
    inch, box = 1 / figure.get_figwidth(), axes.get_position()
    beside = figure.add_axes((box.x1 + _BAR_GAP * inch, box.y0, _BAR * inch, box.height))
    bar = figure.colorbar(image, cax=beside, extend="both" if colours.beyond else "neither")
    if colours.kind == "states":
        bar.set_ticks([0, 1])
    return image
