"""`hotgrid plan`: memory, step time and scaling on devices that you need not have."""

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hotgrid as hg
from hotgrid.cli._case_options import case_from, case_options
from hotgrid.cli._terminal import Terminal
from hotgrid.config import Case
from hotgrid.errors import ArgumentError

from ._text import (
    JITTER,
    Report,
    calibration_lines,
    check_lines,
    plain_report,
    report_lines,
)

if TYPE_CHECKING:
    from hotgrid.cluster.plan import Calibration, ClusterPlan, Device, Link, MessageSchedule
    from hotgrid.grid.run._plan_model import Checked

_MOST_SIMULATED = 1 << 16
_SUFFIXES = (".png", ".svg", ".pdf")


@case_options(
    "set",
    "dtype",
    "storage",
    size="The grid, such as 131072x131072; by default the model's own.",
    mesh="The only mesh to consider, such as 8x8; by default all of them.",
    depth="The only depth to consider: steps between two exchanges.",
)
def plan(
    model: str | None = None,
    /,
    *,
    devices: str | None = None,
    link: str | None = None,
    json: bool = False,
    plot: Path | None = None,
    calibrate: bool = False,
    check: bool = False,
    **options: Any,
) -> None:
    """Predict what a model would need and how fast it would be on many devices.

    Args:
        model: A name from `hotgrid models`, your own `file.py:ClassName`, or a case.toml.
        devices: Number and kind: 64xH200, 64x(80GB,3TB/s), or 4xlocal for four machines
            like this one.
        link: Bandwidth out of a device and latency, such as 450GB/s,3us.
        json: Print one JSON object instead of tables.
        plot: Draw the scaling curves into this .png, .svg or .pdf.
        calibrate: Measure this machine first, and the model on it, and store the result.
        check: Compare predictions for 1, 2 and 4 ranks on this machine with short runs.
        **options: Fields of `Case`.
    """
    case = case_from(model, options) if model is not None else None
    _expect_sense(case, devices, plot, calibrate, check)
    from hotgrid.grid.run._plan_model import checks, model_key, model_of

    found = hg.cluster.plan.load_calibration()
    saved: Path | None = None
    if calibrate:
        found = _calibrated(case, found)
        saved = found.save()
    report = None
    if devices is not None and case is not None:
        report = _report(case, devices, link, found)
    compared: list[Checked] = []
    if check and case is not None:
        if found is None:
            raise ArgumentError("`--check` needs a measured machine: add `--calibrate`")
        compared = list(checks(case, found, case.size or tuple(model_of(case).size)))
    console = Terminal(highlight=False, soft_wrap=True)
    if json:
        plain: dict[str, Any] = plain_report(report) if report else {}
        if calibrate and found is not None:
            plain["calibration"] = found.plain()
        if check:
            plain["check"] = [each.plain() for each in compared]
        console.out(dumps(plain, indent=2, ensure_ascii=False), highlight=False)
    else:
        lines: list[str] = []
        if calibrate and found is not None:
            lines += calibration_lines(found, model_key(case) if case else None, saved)
        if report is not None and case is not None:
            lines += report_lines(case, report)
        lines += check_lines(compared)
        console.out("\n".join(lines), highlight=False)
    if plot is not None and report is not None and case is not None:
        from ._plot import draw_scaling

        draw_scaling(plot, f"{case.model} on {report.plan.device.name}", report)


def _expect_sense(
    case: Case | None, devices: str | None, plot: Path | None, calibrate: bool, check: bool
) -> None:
    """Refuse invalid combinations before torch is imported."""
    if case is None and (not calibrate or devices is not None or check):
        raise ArgumentError(
            "name a model, such as `hotgrid plan karman --devices 64xH200 "
            "--link 450GB/s,3us`; only `--calibrate` does not need one"
        )
    if devices is None and not calibrate and not check:
        if case is not None:
            hg.grid.find_model(case.model)  # a misspelled name is reported first
        raise ArgumentError(
            "name devices, such as `--devices 64xH200 --link 450GB/s,3us`, `--devices "
            "64x(80GB,3TB/s)`, or `--devices 4xlocal` for machines like this one"
        )
    if plot is not None and (plot.suffix.lower() not in _SUFFIXES or devices is None):
        raise ArgumentError(
            f"`--plot {plot}` must end in {', '.join(_SUFFIXES)} and needs `--devices`"
        )


def _calibrated(case: Case | None, before: "Calibration | None") -> "Calibration":
    from hotgrid.grid.run._plan_model import measured_speed, model_key

    found = hg.cluster.plan.calibrate()
    if before is not None and before.machine == found.machine:
        for name, speed in before.models.items():
            found = found.with_model(name, speed)
    return found.with_model(model_key(case), measured_speed(case, found)) if case else found


def _report(case: Case, devices: str, link: str | None, found: "Calibration | None") -> Report:
    from hotgrid.grid.run._plan_model import job_of_case, model_key, model_of

    planner = hg.cluster.plan
    key = model_key(case)
    known = planner.known_devices()
    if found is not None:
        known["local"] = found.device(key)
    elif devices.strip().lower().endswith("local"):
        raise ArgumentError(
            f"`--devices {devices}` needs measured figures of this machine: add `--calibrate`"
        )
    count, device = planner.parse_devices(devices, known)
    share, source = _share(found, key, device)
    size = case.size or tuple(model_of(case).size)
    job = job_of_case(case, size, share)
    joined = _joined(link, device, count, found)
    weighed = {"mesh": case.mesh, "depth": case.depth}
    best = planner.best_plan(job, device, joined, count, **weighed)
    counts = sorted({2**k for k in range(count.bit_length())} | {count})
    return Report(
        size=size,
        plan=best,
        overlapped=planner.best_plan(job, device, joined, count, **weighed, overlap=True),
        share_source=source,
        strong=planner.strong_scaling(job, device, joined, counts, depth=case.depth),
        weak=planner.weak_scaling(
            job, device, joined, counts, best.best.block, depth=case.depth
        ),
        simulated=_simulated(best) if 1 < count <= _MOST_SIMULATED else None,
    )


def _share(found: "Calibration | None", key: str, device: "Device") -> tuple[float, str]:
    """The part of a copy's bandwidth to count with, and its source."""
    speed = found.models.get(key) if found is not None else None
    # The share of a processor is not that of a GPU.
    if found is not None and speed and (device.name == "local" or found.kind == "cuda"):
        return speed.share, f"measured on {found.date}, {found.machine}"
    from hotgrid.grid.forms.cut import ASSUMED_SHARE

    return ASSUMED_SHARE, "assumed; `--calibrate` on such a device measures it"


def _joined(
    link: str | None, device: "Device", count: int, found: "Calibration | None"
) -> "Link":
    if link is not None:
        return hg.cluster.plan.parse_link(link)
    if device.name == "local" and found is not None and found.link is not None:
        return found.link
    if count == 1:
        return hg.cluster.plan.Link(device.bandwidth, 0.0)
    raise ArgumentError(
        "give the link between devices: `--link 450GB/s,3us` (NVLink of an H200) or "
        "`--link 400Gb/s,5us` (a network card for each)"
    )


def _simulated(plan: "ClusterPlan") -> "tuple[MessageSchedule, MessageSchedule]":
    best = plan.best
    cycles = max(10, 200 // best.depth)
    plain, overlapped = (
        hg.cluster.plan.simulate_schedule(
            best.mesh,
            hg.cluster.plan.rounds_of(best, plan.job, plan.link),
            (best.compute + best.packing) * best.depth,
            interior=best.interior * best.depth,
            overlap=overlap,
            jitter=JITTER,
            cycles=cycles,
            periodic=plan.job.periodic,
        )
        for overlap in (False, True)
    )
    return plain, overlapped
