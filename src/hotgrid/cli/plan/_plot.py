"""The scaling curves of a plan as a picture."""

from pathlib import Path
from typing import TYPE_CHECKING

from hotgrid.errors import MissingPartError
from hotgrid.files import whole_file

if TYPE_CHECKING:
    from ._text import Report

_CURVES = (("strong", "o-", "the same grid"), ("weak", "s--", "the same block each"))


def draw_scaling(path: Path, title: str, report: "Report") -> None:
    """Draw step time and efficiency over the number of devices.

    Raises:
        ArgumentError: The file cannot be written.
        MissingPartError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingPartError(
            "`--plot` needs matplotlib: run `pip install matplotlib`"
        ) from None
    figure = Figure(figsize=(9, 3.8), dpi=120, layout="constrained")
    time, efficiency = figure.subplots(1, 2)
    for name, line, label in _CURVES:
        points = report.strong if name == "strong" else report.weak
        devices = [each.devices for each in points]
        time.plot(devices, [each.estimate.step_time for each in points], line, label=label)
        efficiency.plot(devices, [100 * each.efficiency for each in points], line, label=label)
    time.set_xscale("log", base=2)
    time.set_yscale("log")
    time.set_ylabel("seconds for a step")
    efficiency.set_xscale("log", base=2)
    efficiency.set_ylim(0, 105)
    efficiency.set_ylabel("efficiency in %")
    for axes in (time, efficiency):
        axes.set_xlabel("devices")
        axes.grid(visible=True, alpha=0.3)
        axes.legend()
    figure.suptitle(title)
    with whole_file(path) as aside:
        figure.savefig(aside)
