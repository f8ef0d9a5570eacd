"""`hotgrid tune`: the winners of the tuner, why they won, and how to fill or clear them."""

from json import dumps
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

import hotgrid as hg
from hotgrid import config
from hotgrid.cli._terminal import Terminal
from hotgrid.cli._whole_number import WholeNumber
from hotgrid.errors import ArgumentError, ConfigError, near

from ._grid import GRID, expect_grid_sense, grid_calls, grid_stamps

if TYPE_CHECKING:
    from hotgrid.kernels.tune import Ranking, Tuned, TuningCache


def tune(
    op: str | None = None,
    /,
    *shapes: str,
    explain: bool = False,
    fill: bool = False,
    clear: bool = False,
    k: WholeNumber = None,
    dim: WholeNumber = None,
    set_: Annotated[tuple[str, ...], Parameter(name="--set", metavar="NAME=VALUE")] = (),
    dtype: str = "float32",
    device: str = "cpu",
    json: bool = False,
) -> int:
    """Show the winners of the tuner; explain a choice, or fill or clear the cache.

    Args:
        op: An op, such as topk, or grid for the forms of a simulation; with nothing else
            given, only its winners are shown.
        shapes: Shapes of its main tensor, such as 1024x4096; of grid a model and sizes,
            such as heat 512x512.
        explain: Time every candidate on each shape; without one, list the op's options.
        fill: Tune each shape now, so that no later call has to.
        clear: Remove every winner, or those of the op, also of other machines in the file.
        k: The number of elements, for ops that have it; by default 1.
        dim: The dimension, for ops that have it; by default -1, the last.
        set_: Any option of the op, such as radius=8; repeatable. They are listed below.
        dtype: The type of the tensor; by default float32.
        device: Its device; by default cpu.
        json: Print one JSON object instead of tables.
    """
    given = {"k": k, "dim": dim}
    options = {name: str(value) for name, value in given.items() if value is not None}
    options |= _pairs(set_)
    _expect_sense(op, shapes, explain, fill, clear, options)
    if op == GRID:
        expect_grid_sense(shapes, k is not None or dim is not None)
    sizes = [_sizes(shape) for shape in (shapes[1:] if op == GRID else shapes)]
    tuned = _tuned(op) if op not in (None, GRID) else None
    _expect_known_choices()
    console = Terminal(highlight=False, soft_wrap=True)
    if clear:
        found = _cleared(op)
    elif op == GRID and sizes:
        found = grid_calls(shapes, sizes, options, dtype, device, explain=explain)
    elif tuned is not None and explain and not sizes:
        found = _options(tuned)
    elif tuned is not None and sizes:
        ask = _explained if explain else _filled
        found = {
            "op": op,
            "calls": [ask(tuned, each, options, dtype, device) for each in sizes],
        }
    else:
        found = _remembered(op)
    from ._text import lines_of

    text = dumps(found, indent=2) if json else "\n".join(lines_of(found))
    console.out(text, highlight=False)
    return 0


def _pairs(texts: tuple[str, ...]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for text, (name, equals, _) in zip(texts, pairs, strict=True):
        if not (name.strip() and equals):
            raise ArgumentError(f"`--set {text}` must be NAME=VALUE, as in largest=false")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _expect_sense(
    op: str | None,
    shapes: tuple[str, ...],
    explain: bool,
    fill: bool,
    clear: bool,
    options: dict[str, str],
) -> None:
    """Refuse invalid combinations before torch is imported."""
    if explain + fill + clear > 1:
        raise ArgumentError("give one of --explain, --fill and --clear")
    bare = explain and not options and op != GRID
    if (explain or fill) and not (op and (shapes or bare)):
        word = "--explain" if explain else "--fill"
        needs, example = "an op and a shape", "topk 1024x4096"
        if op == GRID:
            needs, example = "a model and a size", "grid heat 512x512"
        raise ArgumentError(f"`{word}` needs {needs}, such as `hotgrid tune {word} {example}`")
    if not (explain or fill) and (shapes or options):
        extra = shapes[0] if shapes else f"{next(iter(options))}"
        raise ArgumentError(f"`{extra}` needs --explain or --fill")


def _sizes(text: str) -> tuple[int, ...]:
    parts = text.lower().split("x")
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ArgumentError(
            f"`{text}` is not a shape; write sizes of 1 or more, as in 1024x4096"
        )
    return tuple(int(part) for part in parts)


def _tuned(op: str) -> "Tuned":
    ops = hg.kernels.OPS
    if op not in ops:
        known = [*ops, GRID]
        raise ArgumentError(
            f"`{op}` is not an op; there are: {', '.join(known)}{near(op, known)}"
        )
    return ops[op]


def _expect_known_choices() -> None:
    for pair in config.current().kernels.choose:
        op = pair.partition("=")[0]
        if op not in hg.kernels.OPS:
            raise ConfigError(
                f"`kernels.choose` names the op `{op}`; there are: {', '.join(hg.kernels.OPS)}"
            )


def _cache() -> "TuningCache":
    from hotgrid.kernels.tune import TuningCache

    return TuningCache.at(config.current().autotune.cache)


def _cleared(op: str | None) -> dict[str, Any]:
    cache = _cache()
    try:
        count = cache.clear(op)
    except OSError as error:
        raise ConfigError(
            f"`{cache.path}` cannot be cleared ({error.strerror or error}); "
            "`autotune.cache` sets another folder"
        ) from None
    return {"file": str(cache.path) if cache.path else None, "op": op, "cleared": count}


def _options(tuned: "Tuned") -> dict[str, Any]:
    from ._options import EXAMPLES

    op = tuned.op
    return {
        "op": op.name,
        "options": dict(op.options),
        "candidates": list(op.names),
        "example": EXAMPLES[op.name],
    }


def _remembered(op: str | None) -> dict[str, Any]:
    """Every winner that is kept, the last of each key and machine."""
    cache = _cache()
    last = {(each.key, each.stamp): each for each in cache.rankings()}
    rows = [
        {**_winner(each), "valid": _valid(each)}
        for each in last.values()
        if op in (None, each.op)
    ]
    return {"file": str(cache.path) if cache.path else None, "winners": rows}


def _winner(ranking: "Ranking") -> dict[str, Any]:
    best = ranking.winner
    return {
        "key": ranking.key,
        "candidate": best.name if best else None,
        "seconds": best.minimum if best else None,
        "share": best.share if best and ranking.limit else None,
        "date": ranking.date,
    }


def _valid(ranking: "Ranking") -> bool:
    """Whether a winner holds on this machine, with the candidates of today."""
    import torch

    from hotgrid.kernels.tune import stamp

    if ranking.op not in hg.kernels.OPS and ranking.op != GRID:
        return False
    try:
        _, _, kind, *_ = ranking.key.split()
        devices = [torch.device(kind)]
    except (ValueError, RuntimeError):  # no key of ours
        return False
    if kind == "cuda":
        devices = [torch.device(kind, n) for n in range(torch.cuda.device_count())]
    if ranking.op == GRID:
        return ranking.stamp in grid_stamps(ranking, devices)
    names = hg.kernels.OPS[ranking.op].op.names
    return ranking.stamp in [stamp(names, device) for device in devices]


def _filled(
    tuned: "Tuned", shape: tuple[int, ...], options: dict[str, str], dtype: str, device: str
) -> dict[str, Any]:
    from hotgrid.kernels.tune import sampled

    arguments = sampled(tuned, shape, options, dtype=dtype, device=device)
    return {"shape": list(shape), **_winner(tuned.ranking_for(*arguments))}


def _explained(
    tuned: "Tuned", shape: tuple[int, ...], options: dict[str, str], dtype: str, device: str
) -> dict[str, Any]:
    from dataclasses import asdict

    from hotgrid.kernels.tune import copy_bandwidth, explain

    found = explain(tuned, shape, options, dtype=dtype, device=device)
    best = found.ranking.winner
    rate = copy_bandwidth(device).bytes_per_second if found.limit else None
    return {
        "shape": list(shape),
        "call": found.call,
        "bytes": found.bytes,
        "flops": found.flops,
        "limit_seconds": found.limit or None,
        "copy_bytes_per_second": rate,
        "candidates": [asdict(each) for each in found.outcomes],
        "absent": list(found.absent),
        "winner": best.name if best else None,
        "chosen": found.chosen,
    }
