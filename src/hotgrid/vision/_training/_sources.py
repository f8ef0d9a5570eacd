"""Which images there are: class folders, IDX files or a plan."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from hotgrid.data import (
    ClassFolders,
    DecodeCentreCrop,
    DecodeRandomCrop,
    IdxFiles,
    Order,
    Plan,
    SampleDraws,
    Samples,
    Source,
    Split,
    operator,
)
from hotgrid.errors import ArgumentError, DamagedError

# Images at most as large are decoded once and kept on the device.
SMALL = 64
# Images whose sizes are looked at before training.
_LOOKED_AT = 16
_HELD = ("test", "val", "valid", "validation")
_IDX = {"train": "train", "test": "t10k"}
_KINDS = {"pixels": "images-idx3-ubyte", "label": "labels-idx1-ubyte"}
_PIXELS, _LABEL, _KEY = "pixels", "label", "key"
COLUMNS = (_PIXELS, _LABEL, _KEY)


@operator("sample_key", inputs={"label": "int64"}, outputs={"key": "int64"})
def sample_key(label: int, *, draws: SampleDraws) -> int:
    """The key of a sample for `hotgrid.vision.BatchDraws`, of seed, epoch and index."""
    return draws.bits() >> 1


@dataclass(frozen=True)
class ImageData:
    """Images with classes, for training and held out.

    Attributes:
        name: What they are called.
        train: The source or the plan of those to train on.
        valid: The source or the plan of those held out.
        classes: The names of the classes.
        channels: 3, or 1 for grey images of IDX files or a plan.
        size: The largest height and width of some images; `None` if a plan decides it.
    """

    name: str
    train: Source | Plan
    valid: Source | Plan
    classes: tuple[str, ...]
    channels: int
    size: tuple[int, int] | None

    @property
    def planned(self) -> int | None:
        """The height and width that training cannot change; None for images of files.

        Those that a plan makes, and of pixels in files that are not kept in memory.
        """
        if isinstance(self.train, Plan):
            return self.train.types()[_PIXELS].sizes[0]
        as_they_are = _PIXELS in self.train.columns() and not self.small
        return self.size[0] if self.size is not None and as_they_are else None

    @property
    def share(self) -> float:
        """The part of the height and width that is evaluated, about the centre."""
        return 1.0 if self.small or self.planned else 0.875

    @property
    def small(self) -> bool:
        """Whether images are small enough to be kept in memory, decoded."""
        return self.size is not None and max(self.size) <= SMALL

    def plan(self, part: str, height: int, width: int, seed: int = 0) -> Plan:
        """Return the plan of `train` or `valid` that yields pixels, label and key."""
        found = self.train if part == "train" else self.valid
        order = Order(shuffle=part == "train", seed=seed)
        if isinstance(found, Plan):
            return replace(found.then("sample_key", _LABEL, _KEY), order=order).yielding(
                *COLUMNS
            )
        plan = Plan(found, order=order)
        if "data" in found.columns():
            crop = DecodeCentreCrop(height, width, share=self.share)
            random = DecodeRandomCrop(height, width)
            decode = random if part == "train" and not self.small else crop
            plan = plan.then(decode, "data", _PIXELS)
        return plan.then("sample_key", _LABEL, _KEY).yielding(*COLUMNS)


def open_images(where: str | Path, valid: str | Path | None = None) -> ImageData:
    """Find the images of a folder or a plan.

    Args:
        where: A folder with `train` and `test` (or `val`), each with a folder for every
            class; a folder with one folder for every class, of which a tenth is held out; a
            folder with the four IDX files of MNIST and its like, also as `.gz`; or the JSON
            file of a plan with columns `pixels` and `label`.
        valid: A folder of class folders, or a plan, to evaluate on instead.

    Raises:
        ArgumentError: There is none of these, or the held-out part has other classes.
        DamagedError: No image that was looked at can be read.

    Example:
        >>> from PIL import Image
        >>> for name in ("cat", "dog"):
        ...     Path(f"pets/{name}").mkdir(parents=True)
        ...     for n in range(10):
        ...         Image.new("RGB", (32, 32), (n, 0, 0)).save(f"pets/{name}/{n}.png")
        >>> open_images("pets").classes
        ('cat', 'dog')
    """
    path = Path(where)
    if path.suffix == ".json":
        return _planned(path, valid)
    if not path.is_dir():
        raise ArgumentError(f"`{where}` is neither a folder of images nor the JSON of a plan")
    if any(path.glob("*-images-idx3-ubyte*")):
        return _idx(path)
    return _folders(path, None if valid is None else Path(valid))


def _folders(path: Path, valid: Path | None) -> ImageData:
    train: Source = ClassFolders(str(path))
    held: Source | None = ClassFolders(str(valid)) if valid else None
    if (path / "train").is_dir():
        train = ClassFolders(str(path / "train"))
        found = next((path / name for name in _HELD if (path / name).is_dir()), None)
        if held is None and found is not None:
            held = ClassFolders(str(found))
    if held is None:
        train, held = Split(train, (0.9, 0.1), 0), Split(train, (0.9, 0.1), 1)
    opened = train.open()
    classes, others = opened.facts.get("classes"), held.open().facts.get("classes")
    if classes is None and isinstance(train, Split):
        classes = others = train.of.open().facts["classes"]
    _expect_same(classes or (), others or (), path)
    size = _largest(opened)
    return ImageData(path.resolve().name, train, held, tuple(classes or ()), 3, size)


def _largest(images: Samples) -> tuple[int, int]:
    """The largest height and the largest width of some images, which need not be alike."""
    sizes: list[tuple[int, int]] = []
    problems: list[str] = []
    last = len(images) - 1
    for number in sorted({last * n // (_LOOKED_AT - 1) for n in range(_LOOKED_AT)}):
        try:
            with Image.open(io.BytesIO(images.read(number, ["data"])["data"])) as found:
                sizes.append((found.height, found.width))
        except (DamagedError, UnidentifiedImageError, OSError) as problem:
            # Training leaves it out, names it and counts it.
            problems.append(f"`{images.place(number)}` is not an image: {problem}")
    if not sizes:
        raise DamagedError(problems[0])
    return max(height for height, _ in sizes), max(width for _, width in sizes)


def _idx(path: Path) -> ImageData:
    parts = {}
    for part, prefix in _IDX.items():
        files = {}
        for column, kind in _KINDS.items():
            found = sorted(path.glob(f"{prefix}-{kind}*"))
            if not found:
                raise ArgumentError(
                    f"`{path}` has no `{prefix}-{kind}`, plain or .gz, beside its IDX files"
                )
            files[column] = str(found[0])
        parts[part] = IdxFiles(files)
    sizes, held = (_sizes(each) for each in parts.values())
    large = max(sizes[:2]) > SMALL
    if sizes[2:] != held[2:] or (large and not sizes[0] == sizes[1] == held[0] == held[1]):
        raise ArgumentError(
            f"the images of `{path}` have the sizes {[*sizes]}, and those held out {[*held]}; "
            f"expected the same channels and, above {SMALL} pixels, where they are not "
            "resized, squares of one size"
        )
    count = 1 + max(max(each.open().values(_LABEL)) for each in parts.values())
    names = tuple(map(str, range(count)))
    size = (sizes[0], sizes[1])
    channels = sizes[2] if len(sizes) == 3 else 1
    return ImageData(path.resolve().name, parts["train"], parts["test"], names, channels, size)


def _sizes(source: IdxFiles) -> tuple[int, ...]:
    """Height and width of the images of IDX files, and their channels if they have some."""
    kind = source.columns()[_PIXELS]
    if kind.kind != "uint8" or len(kind.sizes) < 2 or kind.sizes[2:] not in ((), (1,), (3,)):
        raise ArgumentError(
            f"a sample of `{source.files[_PIXELS]}` is {kind}; expected bytes, uint8[28,28] or "
            "uint8[28,28,3]"
        )
    return kind.sizes


def _planned(path: Path, valid: str | Path | None) -> ImageData:
    if valid is None:
        raise ArgumentError(
            f"`{path}` is a plan; name the plan of held-out images too (--valid)"
        )
    if Path(valid).suffix != ".json":
        raise ArgumentError(f"`{path}` is a plan, so `--valid {valid}` must be one too")
    plans = [Plan.read(path), Plan.read(Path(valid))]
    shapes = [_pixels_of(each, place) for each, place in zip(plans, (path, valid), strict=True)]
    if shapes[0] != shapes[1]:
        raise ArgumentError(
            f"`{path}` makes images of the shape {shapes[0]}, and `{valid}` of {shapes[1]}"
        )
    opened, held = (each.source.open() for each in plans)
    classes, others = opened.facts.get("classes"), held.facts.get("classes")
    if classes is None:
        if _LABEL not in plans[0].source.columns():
            raise ArgumentError(f"the source of `{path}` does not say which classes there are")
        classes = [str(n) for n in range(1 + max(opened.values(_LABEL)))]
    elif others is not None:
        _expect_same(classes, others, path)
    channels = shapes[0][2] if len(shapes[0]) == 3 else 1
    return ImageData(path.stem, plans[0], plans[1], tuple(classes), channels, None)


def _pixels_of(plan: Plan, place: str | Path) -> tuple[int, ...]:
    """The shape of the images that a plan makes."""
    known = plan.types()
    for name in (_PIXELS, _LABEL):
        if name not in known:
            raise ArgumentError(
                f"the plan `{place}` has no column `{name}`; it has {', '.join(known)}"
            )
    kind = known[_PIXELS]
    shape = kind.sizes
    right = kind.kind == "uint8" and kind.fixed and len(shape) in (2, 3)
    if not right or shape[0] != shape[1] or shape[2:] not in ((), (1,), (3,)):
        raise ArgumentError(
            f"column `{_PIXELS}` of the plan `{place}` is {kind}; expected square images as "
            "bytes, such as uint8[224,224,3]. Training normalises them"
        )
    return shape


def _expect_same(classes: Sequence[str], others: Sequence[str], path: Path) -> None:
    if [*classes] != [*others]:
        apart = sorted({*classes} ^ {*others}) or classes
        raise ArgumentError(
            f"the images to train on in `{path}` and the held-out ones have different classes: "
            f"{', '.join(apart[:8])}"
        )
