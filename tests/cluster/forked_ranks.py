"""Two ranks as processes: forked, as importing torch is most of what they would do."""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

_PROGRAM = """
import os, socket, sys

folder, source = sys.argv.pop(1), sys.argv.pop(1)
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
os.environ.update(WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
children = []
for rank in range(2):
    children.append(os.fork())
    if children[-1] == 0:
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
        os.dup2(os.open(f"{folder}/{rank}", os.O_WRONLY | os.O_CREAT), 1)
        exec(source, {"__name__": "__main__"})
        sys.exit()
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
sys.exit(str(codes) if any(codes) else 0)
"""


def run_forked(
    source: str, *arguments: str, loaded: str = "hotgrid.grid", options: tuple[str, ...] = ()
) -> list[str]:
    """Run a program on two ranks, and return what each prints; both must end well.

    Args:
        source: The program.
        arguments: What it finds in `sys.argv`.
        loaded: What is imported before there are two.
        options: Options of Python.
    """
    program = f"import {loaded}\n{_PROGRAM}"
    with TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, *options, "-c", program, folder, source, *arguments],
            env={**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"},
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=250,
        )
        assert done.returncode == 0, done.stderr
        return [Path(folder, str(rank)).read_text() for rank in range(2)]


def run_worker(script: Path, place: Path, *options: str) -> list[str]:
    """Run a script on two ranks that takes its rank and a place where they meet."""
    source = (
        "import os, runpy, sys\n"
        f"sys.argv = [{str(script)!r}, os.environ['RANK'], {str(place)!r}]\n"
        f"sys.path.insert(0, {str(script.parent)!r})\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    return run_forked(source, loaded="hotgrid.train, torch.distributed.fsdp", options=options)
