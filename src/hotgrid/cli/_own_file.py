"""What went wrong in a user's own model, in one sentence instead of a traceback."""

import linecache
from collections.abc import Mapping
from types import FrameType

from hotgrid.errors import near

# What `hotgrid.grid.run` calls the modules that it makes of such files.
_PREFIX = "hotgrid_file_"


def fault_in_own_file(problem: BaseException) -> str | None:
    """The line of a model's own file that failed, and how; None if none did.

    Of a name that a dict does not have, it says which names there are.
    """
    found: tuple[FrameType, int] | None = None
    step = problem.__traceback__
    while step is not None:
        if step.tb_frame.f_globals.get("__name__", "").startswith(_PREFIX):
            found = step.tb_frame, step.tb_lineno
        step = step.tb_next
    if found is None:
        return None
    frame, number = found
    code = frame.f_code
    line = linecache.getline(code.co_filename, number).strip()
    told = f": {problem}" if str(problem) else ""
    return (
        f"{code.co_filename}:{number}: `{code.co_qualname}` fails with "
        f"{type(problem).__name__}{told} (`{line}`){_known(problem, frame, line)}"
    )


def _known(problem: BaseException, frame: FrameType, line: str) -> str:
    """The names in the dict of a failing line that has not the one looked up."""
    if not isinstance(problem, KeyError) or not problem.args:
        return ""
    key = problem.args[0]
    for name, value in frame.f_locals.items():
        looked_up = f"{name}['{key}']" in line.replace('"', "'")
        if looked_up and isinstance(value, Mapping) and key not in value:
            return f"; `{name}` has {', '.join(map(str, value)) or 'nothing'}{near(key, value)}"
    return ""
