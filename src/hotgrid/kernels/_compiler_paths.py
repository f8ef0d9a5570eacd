"""Paths that torch.compile hands to the C++ compiler, where folders have blanks in their names.

Inductor joins its command line without quoting the folder of torch's libraries, the sources
and the result, and splits it again at blanks.
"""

import hashlib
import os
import shlex
import tempfile
from pathlib import Path

import torch


def quote_torch_folder() -> None:
    """Let Inductor find torch's libraries in a folder whose name has blanks.

    Example:
        >>> quote_torch_folder()
    """
    if is_one_word(torch.__path__[0]):
        return
    # It imports setuptools, and so does Inductor; without blanks neither is imported.
    from torch.utils import cpp_extension

    if not cpp_extension.TORCH_LIB_PATH.startswith("'"):
        cpp_extension.TORCH_LIB_PATH = shlex.quote(cpp_extension.TORCH_LIB_PATH)


def without_blanks(folder: str) -> str:
    """Return the folder, or a link to it from the folder for temporary files.

    Where no such link can be made the folder is returned as it is.

    Example:
        >>> without_blanks("/tmp/compiled")
        '/tmp/compiled'
    """
    if is_one_word(folder):
        return folder
    digest = hashlib.sha256(folder.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    link = Path(tempfile.gettempdir(), f"hotgrid-{os.getuid()}-{digest}")
    try:
        link.symlink_to(Path(folder).absolute())
    except FileExistsError:
        # Others may write there too: only a link of this user to this folder will do.
        if not link.is_symlink() or link.lstat().st_uid != os.getuid():
            return folder
        if link.readlink() != Path(folder).absolute():
            return folder
    except OSError:
        return folder
    return str(link)


def is_one_word(text: str) -> bool:
    """Whether a text stays one word in a command line that is split at blanks."""
    try:
        return shlex.split(text) == [text]
    except ValueError:  # a quote without its second
        return False
