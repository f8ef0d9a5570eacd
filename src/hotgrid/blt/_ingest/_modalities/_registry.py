"""Every modality, in the order in which they are asked."""

from ._audio import Audio
from ._code import Code
from ._elf import Elf
from ._image import Picture
from ._mach_o import MachO
from ._modality import Modality
from ._pdf import Pdf
from ._pe import Pe
from ._text import Text, UnknownBytes
from ._video import Video

HEAD = 4096
"""How many bytes of a file decide what it is."""

MODALITIES: tuple[Modality, ...] = (
    Picture(),
    Pdf(),
    Audio(),
    Video(),
    Elf(),
    Pe(),
    MachO(),
    Code(),
    Text(),
    UnknownBytes(),
)
"""The kinds of documents. The first that accepts a file decodes it; the last takes all."""


def modality_of(head: bytes, name: str = "", *, pure: bool = False) -> Modality:
    """Return the modality of a file.

    Args:
        head: Its first bytes, 4096 or all.
        name: Its name, which decides between kinds of text.
        pure: Whether it is known to be text, or a part of a longer file.

    Example:
        >>> modality_of(b"%PDF-1.7 ...").name
        'pdf'
        >>> modality_of(b"def f(): pass", "f.py").name
        'code'
    """
    asked = MODALITIES[-2:] if pure else MODALITIES
    return next(each for each in asked if each.accepts(head[:HEAD], name))
