"""The tables of `hotgrid tune`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def lines_of(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines that show the contents of the JSON to people."""
    if "cleared" in found:
        of = f" of {found['op']}" if found["op"] else ""
        yield f"Removed {found['cleared']} winners{of} in {found['file'] or 'no file'}."
    elif "options" in found:
        yield f"{found['op']} has the candidates {', '.join(found['candidates'])}"
        yield "Options, with their defaults:"
        yield from (
            f"  --set {name}={_word(value)}" for name, value in found["options"].items()
        )
        yield f"Example: {found['example']}"
    elif "winners" in found:
        yield from _winners(found)
    else:
        for number, call in enumerate(found["calls"]):
            if number:
                yield ""
            if "form" in call:
                size = "x".join(map(str, call["shape"]))
                yield f"{call['model_class']} on {size} runs in the form `{call['form']}`"
            else:
                yield from _explained(call) if "candidates" in call else _filled(call)


def _winners(found: Mapping[str, Any]) -> Iterator[str]:
    if not found["file"]:
        yield "Winners are not kept: `autotune.cache` is none."
        return
    if not found["winners"]:
        yield f"Nothing is stored in {found['file']} yet."
        return
    yield f"{len(found['winners'])} winners in {found['file']}"
    rows = [
        (
            each["candidate"] or "",
            _duration(each["seconds"]),
            _percent(each["share"]),
            each["date"],
            "" if each["valid"] else "of another machine or version",
            each["key"],
        )
        for each in found["winners"]
    ]
    yield from _table(("candidate", "time", "of limit", "date", "", "call"), rows)


def _filled(call: Mapping[str, Any]) -> Iterator[str]:
    yield f"{call['candidate']} wins with {_duration(call['seconds'])}: {call['key']}"


def _explained(call: Mapping[str, Any]) -> Iterator[str]:
    yield call["call"]
    if call["limit_seconds"]:
        rate = call["copy_bytes_per_second"] / 1e9
        least = _duration(call["limit_seconds"])
        yield f"limit: {call['bytes'] / 1e6:,.1f} MB at {rate:,.1f} GB/s take {least}"
    else:
        yield "limit: none, since such a call takes longer to start than to run"
    rows = [
        (
            each["name"],
            each["group"],
            _duration(each["minimum"]),
            _duration(each["median"]),
            _percent(each["spread"]),
            _duration(each["score"]),
            _percent(each["share"] if call["limit_seconds"] else None),
            _remark(each, call),
        )
        for each in call["candidates"]
    ]
    heads = ("candidate", "group", "minimum", "median", "spread", "score", "of limit", "")
    yield from _table(heads, rows)
    if call["absent"]:
        yield f"not for this call: {', '.join(call['absent'])}"
    for name, reason in call.get("drawbacks", {}).items():
        yield f"timed only for this report: {name} ({reason})"
    if call.get("rule"):
        yield f"runs use `{call['chosen']}` by rule, not by timing: {call['rule']}"
    elif call["chosen"] != call["winner"]:
        yield f"calls of this kind use `{call['chosen']}`, as chosen or stored before"


def _remark(each: Mapping[str, Any], call: Mapping[str, Any]) -> str:
    return "winner" if each["name"] == call["winner"] else each["problem"]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for row in (heads, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  " + "  ".join(cells).rstrip()


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    for factor, unit in ((1e6, "us"), (1e3, "ms")):
        if seconds * factor < 1000:
            return f"{seconds * factor:.1f} {unit}"
    return f"{seconds:.2f} s"


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"
