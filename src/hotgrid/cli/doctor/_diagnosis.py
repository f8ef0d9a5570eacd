"""The checks of the whole machine: one probe per section; failures are findings."""

from collections.abc import Callable, Iterator

from ._finding import Finding, not_seen
from ._machine_probes import compiler, machine, native_core, parts, version
from ._settings_probes import caches, settings
from ._torch_probes import bandwidth, devices, torch_build

Probe = Callable[[], Iterator[Finding]]


def diagnose(
    *, quick: bool = False, starting: Callable[[str], None] = lambda section: None
) -> list[Finding]:
    """Check everything and return the findings, in the order of the report.

    Args:
        quick: Leave out the bandwidth of each device, which takes seconds.
        starting: Called with the name of each section before it is checked.
    """
    probes: dict[str, Probe] = {
        "hotgrid": version,
        "machine": machine,
        "torch": torch_build,
        "devices": devices,
        "compiler": compiler,
        "native core": native_core,
        "bandwidth": bandwidth,
        "caches": caches,
        "config": settings,
        "parts": parts,
    }
    if quick:
        del probes["bandwidth"]
    findings: list[Finding] = []
    for section, probe in probes.items():
        starting(section)
        findings += guarded(section, probe)
    return findings


def guarded(section: str, probe: Probe) -> Iterator[Finding]:
    """Yield what a probe finds; an exception becomes one more finding."""
    try:
        yield from probe()
    except Exception as error:  # noqa: BLE001  a doctor reports, it never faints
        yield not_seen(section, "probe", error)
