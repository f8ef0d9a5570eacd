"""Claim: codebook layers are several times as fast as torch in fp32, and say what they lose.

First a layer of shape [3072, 1024] with Gaussian weights, one vector: time against torch in
fp32, taken in turn in one run, bytes kept and the relative error of the outputs. Then a
network trained on real data, before and after: which package of Python's standard library a
piece of source comes from, told by counts of its trigrams; files are either for training
or for testing.

    python benchmarks/bench_codebook.py [--device cuda]
"""

import argparse
import sysconfig
import zlib
from collections import Counter
from functools import partial
from pathlib import Path

import torch
from report import once, report
from torch import nn

from hotgrid.kernels import CodebookLinear, compress

SHAPE = (3072, 1024)
FORMS = (
    ("rows", None),
    ("pq", "1bit"),
    ("pq", "2bit"),
    ("pq", "3bit"),
    ("pq", "4bit"),
    ("int4", None),
    ("int8", None),
)
FEATURES, PIECE, PIECES = 1024, 400, 30


def in_turn(calls, turns: int = 20, burst: int = 20) -> list[float]:
    """The shortest time of each; they take turns, in bursts, each with its own warm caches."""
    times = [[min(once(call) for _ in range(burst)) for call in calls] for _ in range(turns)]
    return [min(column) for column in zip(*times, strict=True)]


def speed(device: str) -> list[dict]:
    torch.manual_seed(0)
    layer = nn.Linear(SHAPE[1], SHAPE[0], bias=False)
    layer.weight.data = torch.randn(SHAPE)
    layer.requires_grad_(False)
    x = torch.randn(1, SHAPE[1], device=device)
    whole = layer.weight.numel() * 4
    rows = []
    for form, target in FORMS:
        small = compress(layer, target, form, force=True).to(device)
        there = layer.to(device)
        exact = there(x)
        error = float((small(x) - exact).norm() / exact.norm())
        theirs, ours = in_turn([partial(there, x), partial(small, x)])
        rows.append(
            {
                "form": form,
                "bits": f"{small.bits:.2f}",
                "torch fp32 us": theirs * 1e6,
                "hotgrid us": ours * 1e6,
                "times torch": theirs / ours,
                "kB": small.bytes / 1e3,
                "times smaller": whole / small.bytes,
                "error": f"{small.error:.4f}",
                "error here": f"{error:.4f}",
            }
        )
    return rows


def pieces() -> tuple[list[str], list[tuple[int, int, torch.Tensor]]]:
    """Pieces of source: package, number of the file, counts of trigrams in FEATURES slots."""
    library = Path(sysconfig.get_path("stdlib"))
    inside = lambda path: path.relative_to(library).parts
    files = [
        path
        for path in sorted(library.rglob("*.py"))
        if len(inside(path)) > 1 and not {"site-packages", "test", "tests"} & {*inside(path)}
    ]
    sizes = Counter(inside(path)[0] for path in files)
    names = sorted(name for name, count in sizes.items() if count >= 15)
    found = []
    for number, path in enumerate(files):
        if inside(path)[0] in names:
            text = path.read_bytes()
            for start in range(0, min(len(text), PIECES * PIECE), PIECE):
                part = text[start : start + PIECE]
                slots = [zlib.crc32(part[i : i + 3]) % FEATURES for i in range(len(part) - 2)]
                counts = torch.zeros(FEATURES)
                counts.index_add_(
                    0, torch.tensor(slots, dtype=torch.long), torch.ones(len(slots))
                )
                found.append((names.index(inside(path)[0]), number, counts.sqrt()))
    return names, found


def trained(x, y, classes: int) -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(FEATURES, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU(),
        nn.Linear(512, classes),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    for _ in range(4):
        for some in torch.randperm(len(x)).split(128):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[some]), y[some]).backward()
            optimizer.step()
    return model.eval().requires_grad_(False)


def accuracy(model, x, y) -> float:
    """Eight at a time, so that codes are multiplied as they are."""
    right = [(model(a).argmax(1) == b) for a, b in zip(x.split(8), y.split(8), strict=True)]
    return float(torch.cat(right).float().mean())


def network() -> tuple[list[dict], str]:
    names, found = pieces()
    x = torch.stack([counts for _, _, counts in found])
    y = torch.tensor([package for package, _, _ in found])
    held = torch.tensor([number % 5 == 0 for _, number, _ in found])
    model = trained(x[~held], y[~held], len(names))
    some = x[~held][:: max(1, int((~held).sum()) // 1000)]
    before, whole = (
        accuracy(model, x[held], y[held]),
        sum(p.numel() for p in model.parameters()),
    )
    rows = [{"form": "fp32", "kB": whole * 4 / 1e3, "accuracy": f"{before:.4f}"}]
    for form, target in FORMS:
        row = {"form": f"{form} {target or ''}".strip()}
        for name, calibration in (("", None), (" calibrated", some)):
            small = compress(model, target, form, calibration=calibration, force=True)
            layers = [each for each in small.children() if isinstance(each, CodebookLinear)]
            row["kB"] = sum(each.bytes for each in layers) / 1e3
            row[f"largest error{name}"] = f"{max(each.error for each in layers):.3f}"
            row[f"accuracy{name}"] = f"{accuracy(small, x[held], y[held]):.4f}"
        rows.append(row)
    about = (
        f"{len(names)} packages, {int((~held).sum())} pieces learned, {int(held.sum())} asked"
    )
    return rows, about


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    device = parser.parse_args().device
    suffix = "" if device == "cpu" else "-cuda"
    report(f"codebook{suffix}", speed(device), torch=torch.__version__, shape=str(SHAPE))
    rows, about = network()
    report("codebook-network", rows, torch=torch.__version__, data=about)


if __name__ == "__main__":
    main()
