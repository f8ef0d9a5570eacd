"""Two ranks as processes: forked, as importing torch is most of what they would do."""

import os
import subprocess
import sys

_PROGRAM = """
import os, socket, sys
import hotgrid.cluster, hotgrid.grid

source = sys.argv.pop(1)
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
os.environ.update(WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
os.environ.update(GLOO_SOCKET_IFNAME="lo")
children = []
for rank in range(2):
    children.append(os.fork())
    if children[-1] == 0:
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
        exec(source, {"__name__": "__main__"})
        sys.exit(0)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
sys.exit(str(codes) if any(codes) else 0)
"""


def run_forked(source: str, *arguments: str) -> str:
    """Run a program on two ranks, and return what they print; all must end well."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, source, *arguments],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
