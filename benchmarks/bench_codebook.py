"""Claim: codebook layers are several times as fast as torch in fp32, with a measured error.

First a layer of shape [3072, 1024] with Gaussian weights, one vector: time against torch in
fp32, taken in turn in one run, bytes kept and the relative error of the outputs. Then a
network trained on real data, before and after: which package of Python's standard library a
piece of source comes from, by counts of its trigrams; files are either for training
or for testing.

On a GPU random codes take the place of learned ones in a second shape, [4096, 14336]: the codes
do not change the time. Calls are queued, and timed with CUDA events around many of them: once
as Python makes them, and once recorded in a CUDA graph, which is the time of the kernels alone.
So many layers take turns that no cache holds them all. First every candidate of every form,
guarded too, is compared with the reference.

    python benchmarks/bench_codebook.py [--device cuda] [--only check|speed|network]
"""

import itertools
import math
import sys
import sysconfig
import zlib
from collections import Counter
from functools import partial
from pathlib import Path

import torch
from options import parser
from report import once, report
from torch import nn

from hotgrid.kernels import OPS, CodebookLinear, compress
from hotgrid.kernels._codebook._coded import Coded, blocked, packed
from hotgrid.kernels.tune._op import fitting

SHAPE, LARGE = (3072, 1024), (4096, 14336)
# What is checked: around blocks of 32 rows and groups of 64 columns, and odd sizes; with
# several vectors, rotated, and guarded, where that is worth the compiling of more kernels.
CHECKED = ((1, 8), (33, 72), (64, 128), (129, 1000), SHAPE, (300, 14336))
SEVERAL, ROTATED, GUARDED = CHECKED[1:4:2], CHECKED[3:4], CHECKED[1::4]
MANY = 2**28  # bytes of layers that take turns; the cache of an H200 holds a fifth
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


def in_turn(calls, turns: int = 12, burst: int = 150) -> list[float]:
    """The shortest time of each; they take turns, in bursts, each with its own warm caches.

    A burst lasts longer than the threads of the other contestant look for more work.
    """
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


def random_layer(form: str, bits: str | None, shape: tuple[int, int], device: str):
    """A layer of random codes."""
    rows, cols = shape
    whole = lambda low, high, *size: torch.randint(low, high, size, device=device)
    nibbles = lambda: packed(whole(0, 16, rows, cols).to(torch.uint8))
    scale = torch.rand(rows, device=device) + 0.5
    if form == "int8":
        return Coded(form, cols, whole(-127, 128, rows, cols).to(torch.int8), scale)
    if form == "int4":
        groups = torch.rand(rows, -(-cols // 64), device=device) + 0.5
        return Coded(form, cols, nibbles(), groups.bfloat16())
    if form == "rows":
        k = min(256, rows)
        table, ids = whole(-127, 128, k, cols).to(torch.int8), whole(0, k, rows)
        return Coded(form, cols, ids.to(torch.uint8), scale[:k], table)
    if bits == "4bit":
        return Coded(form, cols, nibbles(), scale, whole(-127, 128, 16).to(torch.int8))
    width, books = {"1bit": (8, 2), "2bit": (4, 2), "3bit": (4, 3)}[bits]
    codes = blocked(whole(0, 16, rows, cols // width * books).to(torch.uint8))
    return Coded(form, cols, codes, scale, torch.randn(books, width, 16, device=device))


def calls_to_check(device: str):
    """Calls of every form, each with whether its guarded variant is to be checked, too."""
    for (form, bits), shape in itertools.product(FORMS, CHECKED):
        coded = random_layer(form, bits, shape, device)
        parts = (coded.codes, coded.scale, coded.table)
        signs = (torch.randint(0, 2, (shape[1],), device=device) * 2 - 1).to(torch.int8)
        x = torch.randn(8, shape[1], device=device)
        yield shape in GUARDED, (form, x[:1], *parts, None)
        if shape in SEVERAL:
            yield shape in GUARDED, (form, x[:3].bfloat16(), *parts, None)
            yield shape in GUARDED, (form, x.half(), *parts, None)
        if shape in ROTATED and form == "pq":
            yield False, (form, x[:2], *parts, signs)


def check(device: str) -> None:
    """Stop unless every candidate of every form agrees with the reference."""
    op, wrong, done = OPS["codebook"].op, [], Counter()
    for guarded, call in calls_to_check(device):
        expected = op.reference(*call)
        for candidate in fitting(op.candidates, op.describe(*call)):
            variants = {"": candidate.function, " guarded": guarded and candidate.checked}
            for name, function in variants.items():
                if function:
                    problem = op.compare(expected, function(*call), *call)
                    done[candidate.name + name] += 1
                    if problem:
                        sizes = [tuple(part.shape) for part in call[1:] if part is not None]
                        wrong.append(f"{candidate.name}{name} {call[0]} {sizes}: {problem}")
    print(f"checked on {device}: {dict(done)}; wrong: {len(wrong)}", *wrong[:20], sep="\n  ")
    if wrong:
        sys.exit(1)


def queued(calls, repeats: int = 7, most: float = 0.05) -> tuple[float, float]:
    """Seconds of one of the calls: queued one after the other by Python, and recorded."""
    for call in calls:
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()

    def timed(run) -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        rounds = 1
        while True:
            torch.cuda.synchronize()
            begin.record()
            for _ in range(rounds):
                run()
            end.record()
            end.synchronize()
            taken = begin.elapsed_time(end) / 1e3
            if taken > most or rounds >= 2**12:
                return taken / rounds / len(calls)
            rounds *= 2

    def all_of_them() -> None:
        for call in calls:
            call()

    shortest = lambda run: min(timed(run) for _ in range(repeats))
    return shortest(all_of_them), shortest(graph.replay)


def speed_on_gpu(shape: tuple[int, int]) -> list[dict]:
    rows, cols = shape
    x = torch.randn(1, cols, device="cuda")
    turns = lambda make, size: [make() for _ in range(max(2, math.ceil(MANY / size)))]
    dense = {}
    for dtype in (torch.float32, torch.bfloat16):
        size = rows * cols * dtype.itemsize
        many = turns(partial(torch.randn, rows, cols, device="cuda", dtype=dtype), size)
        vector = x.to(dtype)
        dense[dtype] = queued([partial(nn.functional.linear, vector, each) for each in many])
        del many
    (_, fp32), (_, bf16) = dense[torch.float32], dense[torch.bfloat16]
    whole = rows * cols * 4
    table = [
        {"form": f"torch {str(dtype)[6:]}", "bits": f"{8 * dtype.itemsize}",
         "queued us": both[0] * 1e6, "recorded us": both[1] * 1e6,
         "GB/s": rows * cols * dtype.itemsize / both[1] / 1e9}
        for dtype, both in dense.items()
    ]  # fmt: skip
    for form, bits in FORMS:
        first = CodebookLinear(random_layer(form, bits, shape, "cuda"))
        make = lambda form=form, bits=bits: CodebookLinear(
            random_layer(form, bits, shape, "cuda")
        )
        layers = turns(make, first.bytes)
        coded = first.coded
        call = (form, x, coded.codes, coded.scale, coded.table, coded.signs)
        together, alone = queued([partial(each, x) for each in layers])
        table.append(
            {
                "form": form,
                "bits": f"{first.bits:.2f}",
                "queued us": together * 1e6,
                "recorded us": alone * 1e6,
                "GB/s": first.bytes / alone / 1e9,
                "times fp32": fp32 / alone,
                "times bf16": bf16 / alone,
                "times fp32, queued": dense[torch.float32][0] / together,
                "times smaller": whole / first.bytes,
                "by": OPS["codebook"].candidate_for(*call).name,
            }
        )
        del layers
    return table


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
    options = parser(__doc__)
    options.add_argument("--only", choices=("check", "speed", "network"))
    given = options.parse_args()
    torch.manual_seed(0)
    if given.only in (None, "check"):
        check(given.device)
    if given.only in (None, "speed"):
        suffix = "" if given.device == "cpu" else "-cuda"
        facts = {"torch": torch.__version__}
        report(f"codebook{suffix}", speed(given.device), **facts, shape=str(SHAPE))
        if suffix:
            facts["device"] = torch.cuda.get_device_name()
            for shape in (SHAPE, LARGE):
                name = f"codebook{suffix}-queued-{shape[0]}x{shape[1]}"
                report(name, speed_on_gpu(shape), **facts, shape=str(shape))
    if given.only in (None, "network"):
        rows, about = network()
        report("codebook-network", rows, torch=torch.__version__, data=about)


if __name__ == "__main__":
    main()
