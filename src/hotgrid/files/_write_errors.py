"""Errors of writing: the path was wrong, or the disk failed."""

import errno
from pathlib import Path
from typing import NoReturn

from hotgrid.errors import ArgumentError, StoreError

# Another path would help. Anything else is a fault of the disk, not of the argument.
_OF_THE_PATH = {
    errno.EACCES,
    errno.EEXIST,
    errno.EINVAL,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EPERM,
    errno.EROFS,
}


def raise_write_error(path: Path, problem: OSError, *own: Path) -> NoReturn:
    """Raise the error for a `path` that could not be written.

    A problem with a file that is neither in `own`, nor inside one of these, nor a parent of
    `path`, is raised unchanged.
    """
    if problem.filename is not None:
        named = Path(str(problem.filename))
        if named not in path.parents and not any(named.is_relative_to(each) for each in own):
            raise problem
    kind = ArgumentError if problem.errno in _OF_THE_PATH else StoreError
    raise kind(f"cannot write `{path}`: {problem.strerror or problem}") from problem
