"""A plan as text, as tables and as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotgrid.config import Case

if TYPE_CHECKING:
    from hotgrid.cluster.plan import (
        Calibration,
        ClusterPlan,
        Estimate,
        MessageSchedule,
        ScalingPoint,
    )
    from hotgrid.grid.run._plan_model import Checked

# By how much ranks are late in the simulated schedule, as a part of their computing.
JITTER = 0.05
_MESHES = (
    "mesh",
    "depth",
    "step",
    "communication",
    "margins",
    "efficiency",
    "memory",
    "overlap",
)
_SCALING = ("devices", *("mesh", "depth", "step", "efficiency") * 2)


@dataclass(frozen=True)
class Report:
    """Everything that a plan reports.

    Attributes:
        size: The grid as users see it.
        plan: The plan that runs today: first computing, then messages.
        overlapped: The same with messages hidden by the interior.
        share_source: The source of the share of copy.
        strong: The same grid on more and more devices.
        weak: The same block for each of more and more devices.
        simulated: The simulated schedule, without and with overlap; None for very many.
    """

    size: tuple[int, ...]
    plan: "ClusterPlan"
    overlapped: "ClusterPlan"
    share_source: str
    strong: "list[ScalingPoint]"
    weak: "list[ScalingPoint]"
    simulated: "tuple[MessageSchedule, MessageSchedule] | None"


def report_lines(case: Case, report: Report) -> list[str]:
    """A report as lines: facts, the alternatives, and how it scales."""
    lines = [f"{case.model} on {_times(report.size)}, {case.dtype}"]
    lines += [f"{name:<12}{text}" for name, text in _facts(report)]
    lines += ["", "The best depth of other meshes"]
    lines += _table([_MESHES, *[_alternative(each) for each in report.plan.alternatives()]])
    lines += ["", "The same grid on more devices; each with the same block on more devices"]
    weak = {each.devices: each for each in report.weak}
    scaling = [
        (f"{each.devices:,}", *_point(each), *_point(weak[each.devices]))
        for each in report.strong
        if each.devices in weak
    ]
    lines += _table([_SCALING, *scaling])
    if any(not each.estimate.fits for each in report.strong):
        lines.append("* does not fit into memory")
    return lines


def _facts(report: Report) -> list[tuple[str, str]]:
    plan, best, late = report.plan, report.plan.best, report.overlapped.best
    device, link = plan.device, plan.link
    rows = [
        (
            "devices",
            f"{best.mesh.ranks} x {device.name}, {device.memory_bytes / 1e9:,.0f} GB, "
            f"copy {device.bandwidth / 1e9:,.0f} GB/s ({device.source})",
        ),
        ("link", f"{_rate(link.bandwidth)} out of each, {_time(link.latency)}"),
        ("model", f"{plan.job.share:.0%} of copy ({report.share_source})"),
        ("memory", _memory(plan)),
        (
            "best",
            f"mesh {best.mesh}, depth {best.depth}: blocks of {_times(best.block)}, "
            f"{best.redundancy:.1%} of the work is margins",
        ),
        ("step", f"{_time(best.step_time)}, {best.mlups:,.0f} MLUPS"),
        (
            "messages",
            f"{best.messages:g} and {best.bytes / 1e6:,.3g} MB a step from each "
            f"device; communication is {best.communication_share:.1%} of the time",
        ),
        ("efficiency", f"{best.efficiency:.1%}"),
        (
            "overlap",
            f"would make it {_time(late.step_time)} with mesh {late.mesh}, depth "
            f"{late.depth}; communication {late.communication_share:.1%}, efficiency "
            f"{late.efficiency:.1%}",
        ),
    ]
    if report.simulated is not None:
        plain, hidden = (each.seconds_per_cycle / best.depth for each in report.simulated)
        rows.append(
            (
                "simulated",
                f"ranks late by {JITTER:.0%} on average: {_time(plain)} a "
                f"step, {_time(hidden)} with overlap",
            )
        )
    return rows


def _memory(plan: "ClusterPlan") -> str:
    best = plan.best
    text = f"{best.memory_bytes / 1e9:,.2f} GB of {plan.device.memory_bytes / 1e9:,.0f} GB each"
    if best.fits:
        return text
    return f"{text}: IT DOES NOT FIT; take {plan.fewest_devices} devices or more"


def _alternative(each: "Estimate") -> tuple[str, ...]:
    return (
        str(each.mesh),
        str(each.depth),
        _time(each.step_time),
        f"{each.communication_share:.1%}",
        f"{each.redundancy:.1%}",
        f"{each.efficiency:.1%}",
        f"{each.memory_bytes / 1e9:,.2f} GB",
        _time(each.with_overlap(True).step_time),
    )


def _point(each: "ScalingPoint") -> tuple[str, ...]:
    best = each.estimate
    mark = "" if best.fits else "*"
    return (
        f"{mark}{best.mesh}",
        str(best.depth),
        _time(best.step_time),
        f"{each.efficiency:.1%}",
    )


def check_lines(compared: "Sequence[Checked]") -> list[str]:
    if not compared:
        return []
    rows = [("ranks", "mesh", "depth", "grid", "predicted", "measured", "error", "")]
    for each in compared:
        best = each.predicted
        rows.append(
            (
                str(best.mesh.ranks),
                str(best.mesh),
                str(best.depth),
                _times(each.size),
                _time(best.step_time),
                _time(each.measured),
                f"{each.error:+.0%}",
                "more ranks than cores" if each.crowded else "",
            )
        )
    return ["", "Predicted and measured on this machine, for a step", *_table(rows)]


def calibration_lines(found: "Calibration", key: str | None, saved: Path | None) -> list[str]:
    rows = [
        ("machine", f"{found.machine}, {found.memory_bytes / 1e9:,.0f} GB"),
        ("copy", f"{found.copy_bandwidth / 1e9:,.1f} GB/s"),
        (
            "link",
            f"{_rate(found.link.bandwidth)}, {_time(found.link.latency)}, between two "
            "ranks here"
            if found.link
            else "with one GPU there is no link; give `--link`",
        ),
    ]
    if key is not None:
        speed = found.models[key]
        rows.append(
            (
                key,
                f"{speed.share:.0%} of copy, {_time(speed.step_overhead)} for a step "
                "of no cells",
            )
        )
    rows.append(("kept in", str(saved) if saved else "nowhere; `autotune.cache` is none"))
    width = max(len(name) for name, _ in rows) + 2
    return [*[f"{name:<{width}}{text}" for name, text in rows], ""]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(f"{text:>{width}}" for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _times(size: Sequence[int]) -> str:
    return "x".join(map(str, size))


def _time(seconds: float) -> str:
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= factor:
            return f"{seconds / factor:.4g} {unit}"
    return f"{seconds / 1e-6:.3g} us"


def _rate(bandwidth: float) -> str:
    return f"{bandwidth / 1e9:,.4g} GB/s"


def plain_report(report: Report) -> dict[str, Any]:
    plan = report.plan
    simulated = report.simulated
    return {
        "devices": plan.best.mesh.ranks,
        "device": plan.device.name,
        "device_memory_bytes": plan.device.memory_bytes,
        "copy_bandwidth": plan.device.bandwidth,
        "figures_from": plan.device.source,
        "link": {"bandwidth": plan.link.bandwidth, "latency": plan.link.latency},
        "share_of_copy": plan.job.share,
        "share_from": report.share_source,
        "best": _plain_estimate(plan.best),
        "best_with_overlap": _plain_estimate(report.overlapped.best),
        "fewest_devices": plan.fewest_devices,
        "alternatives": [_plain_estimate(each) for each in plan.alternatives()],
        "strong_scaling": [_plain_point(each) for each in report.strong],
        "weak_scaling": [_plain_point(each) for each in report.weak],
        "simulated_seconds_per_step": simulated
        and {
            "jitter": JITTER,
            "plain": simulated[0].seconds_per_cycle / plan.best.depth,
            "overlap": simulated[1].seconds_per_cycle / plan.best.depth,
        },
    }


def _plain_point(each: "ScalingPoint") -> dict[str, Any]:
    return {
        "devices": each.devices,
        **_plain_estimate(each.estimate),
        "efficiency": each.efficiency,
    }


def _plain_estimate(each: "Estimate") -> dict[str, Any]:
    return {
        "mesh": str(each.mesh),
        "depth": each.depth,
        "block": list(each.block),
        "memory_bytes": each.memory_bytes,
        "fits": each.fits,
        "seconds_per_step": each.step_time,
        "mlups": each.mlups,
        "communication_share": each.communication_share,
        "messages_per_step": each.messages,
        "bytes_per_step": each.bytes,
        "redundancy": each.redundancy,
        "efficiency": each.efficiency,
    }
