"""Devices and links are read as people write them, and mistakes are explained."""

import pytest

from hotgrid.cluster.plan import Device, Link, known_devices, parse_devices, parse_link
from hotgrid.errors import ArgumentError


def test_known_devices_are_named_in_any_case():
    count, device = parse_devices("64xh200")
    assert (count, device.name, device.bandwidth) == (64, "H200", 4.2e12)
    assert parse_devices("H100")[0] == 1
    assert "datasheet" in known_devices()["H100"].source
    assert "measured" in known_devices()["H200"].source


@pytest.mark.parametrize(
    ("text", "memory", "bandwidth"),
    [
        ("8x(80GB,3TB/s)", 80e9, 3e12),
        ("8x( 24GiB , 900 GB/s )", 24 * 2**30, 9e11),
        ("8x(0.5TB,8e2Gb/s)", 5e11, 1e11),
    ],
)
def test_other_devices_are_described(text, memory, bandwidth):
    count, device = parse_devices(text)
    assert (count, device.memory_bytes, device.bandwidth) == (8, memory, bandwidth)


def test_a_table_of_your_own_is_searched_instead():
    own = {"local": Device("local", 1e9, 1e10)}
    assert parse_devices("2xlocal", own) == (2, own["local"])


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("450GB/s,3us", Link(450e9, 3e-6)),
        ("400Gb/s, 5 µs", Link(50e9, 5e-6)),
        ("1.5TB/s,0s", Link(1.5e12, 0.0)),
        ("100MB/s,0.2ms", Link(1e8, 2e-4)),
    ],
)
def test_links(text, link):
    found = parse_link(text)
    assert found.bandwidth == pytest.approx(link.bandwidth)
    assert found.latency == pytest.approx(link.latency)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("64xH20", "did you mean `64xH200`"),
        ("64xtoaster", "known are H200"),
        ("64xtoaster", "`64xlocal` is a machine like this one"),
        (
            "2",
            "`2` is a count without a device; write which device, such as `2xH200`, or `2xl",
        ),
        ("0xH200", "`0xH200` must be a count and a device"),
        ("", "must be a count and a device"),
        ("99999999999999999999xH200", "`99999999999999999999xH200` is more than can be"),
        (f"{'9' * 5000}xH200", "use at most 1,000,000 devices"),
        ("1000001xH200", "use at most 1,000,000 devices"),
        ("4x(80gb,3TB/s)", "did you mean `80GB`"),
        ("4x(80GB)", "memory and copy bandwidth in parentheses"),
        ("4x(80GB,3TB/s", "memory and copy bandwidth in parentheses"),
        ("4x(0GB,3TB/s)", "`0GB` must be above 0"),
        ("4x(GB,3TB/s)", "a number and a unit"),
    ],
)
def test_mistakes_in_devices_are_explained(text, said):
    with pytest.raises(ArgumentError) as problem:
        parse_devices(text)
    assert said in str(problem.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("450gb/s,3us", "did you mean `450GB/s` or `450Gb/s`"),
        ("450GB/s", "must be bandwidth and latency"),
        ("450GB,3us", "did you mean `450GB/s`"),
        ("450GB/s,3", "unknown unit ``"),
        ("0GB/s,3us", "must be above 0"),
    ],
)
def test_mistakes_in_links_are_explained(text, said):
    with pytest.raises(ArgumentError) as problem:
        parse_link(text)
    assert said in str(problem.value)


def test_figures_that_are_impossible_are_refused():
    with pytest.raises(ArgumentError, match="`bandwidth` must be above 0, got 0"):
        Link(0, 1e-6)
    with pytest.raises(ArgumentError, match="`latency` must be 0 or more, got -1"):
        Link(1e9, -1)
    with pytest.raises(ArgumentError, match="`memory_bytes` must be above 0, got nan"):
        Device("nothing", float("nan"), 1e9)


def test_ranks_on_one_device_share_it():
    half = Device("whole", 100.0, 10.0, step_overhead=1.0).shared(2)
    assert (half.memory_bytes, half.bandwidth, half.step_overhead) == (50.0, 5.0, 1.0)
