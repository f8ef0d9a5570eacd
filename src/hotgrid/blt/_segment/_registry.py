"""Segmenters by name, for the command line and configs."""

from collections.abc import Callable
from functools import partial
from types import MappingProxyType

from hotgrid.blt._entropy._byte_model import ByteModel
from hotgrid.blt._entropy._ngram_table import load_ngram_table
from hotgrid.errors import ArgumentError, near

from ._at_most import AtMost
from ._entropy import EntropyBudget, EntropyJump, EntropyThreshold, EntropyThresholdAndJump
from ._segmenter import Segmenter
from ._space import Space
from ._static import Static
from ._syntax import SYNTAXES, Syntax
from ._tokens import Tokens

Made = Callable[[ByteModel | None, float | None, float | None], Segmenter]


def _static(model: ByteModel | None, threshold: float | None, size: float | None) -> Segmenter:
    _refuse_threshold("static", threshold)
    if size is not None and not float(size).is_integer():
        raise ArgumentError(f"`static` patches need an integer size, got {size}")
    return Static(4 if size is None else int(size))


def _plain(kind: Callable[[], Segmenter], name: str) -> Made:
    def made(model: ByteModel | None, threshold: float | None, size: float | None) -> Segmenter:
        _refuse_threshold(name, threshold)
        if size is not None:
            raise ArgumentError(f"the segmenter `{name}` takes no size of patches")
        return kind()

    return made


def _tokens() -> Segmenter:
    from hotgrid.tokens import DEFAULT_ENCODING, get_encoding

    return Tokens(get_encoding(DEFAULT_ENCODING))


def _entropy(kind: Callable[..., Segmenter]) -> Made:
    def made(model: ByteModel | None, threshold: float | None, size: float | None) -> Segmenter:
        if threshold is not None and size is not None:
            raise ArgumentError(
                f"give a threshold ({threshold}) or a mean size of patches ({size}), not both"
            )
        model = load_ngram_table() if model is None else model
        return kind(model, threshold, 4.5 if size is None else size)

    return made


def _budget(model: ByteModel | None, threshold: float | None, size: float | None) -> Segmenter:
    _refuse_threshold("budget", threshold)
    return EntropyBudget(
        load_ngram_table() if model is None else model, 4.5 if size is None else size
    )


def _refuse_threshold(name: str, threshold: float | None) -> None:
    if threshold is not None:
        raise ArgumentError(f"the segmenter `{name}` takes no threshold, got {threshold}")


SEGMENTERS: MappingProxyType[str, Made] = MappingProxyType(
    {
        "threshold": _entropy(EntropyThreshold),
        "jump": _entropy(EntropyJump),
        "threshold-and-jump": _entropy(EntropyThresholdAndJump),
        "budget": _budget,
        "space": _plain(Space, "space"),
        "static": _static,
        "tokens": _plain(_tokens, "tokens"),
        **{name: _plain(partial(Syntax, name), name) for name in SYNTAXES},
    }
)
"""Makes each segmenter by name, from a model, a threshold and a mean size, each or None."""


def segmenter(
    name: str = "threshold",
    *,
    model: ByteModel | None = None,
    threshold: float | None = None,
    size: float | None = None,
    most: int | None = None,
) -> Segmenter:
    """Return a segmenter by name, one of `SEGMENTERS`.

    Args:
        name: Which one.
        model: The model of entropies; by default the n-gram table that comes with hotgrid.
        threshold: In nats; by default the calibrated one for `size`.
        size: The mean length of patches; by default 4.5, and 4 for static ones.
        most: Split longer patches.

    Raises:
        ArgumentError: There is none of this name, or it does not take an option.

    Example:
        >>> segmenter("space").patches(b"Cut after words.")
        [b'Cut ', b'after ', b'words.']
    """
    if name not in SEGMENTERS:
        raise ArgumentError(
            f"there is no segmenter `{name}`{near(name, SEGMENTERS)} "
            f"(there are {', '.join(SEGMENTERS)})"
        )
    made = SEGMENTERS[name](model, threshold, size)
    return made if most is None else AtMost(made, most)
