"""`hotgrid view` as a process: how it ends."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from websockets.sync.client import connect


def test_sigterm_ends_a_film_well(tmp_path: Path):
    command = "-m hotgrid view heat --size 16x16 --no-open --port 0 --device cpu --paused --out"
    running = subprocess.Popen(
        [sys.executable, *command.split(), str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "HOTGRID_COMPILE_ENABLED": "off"},
    )
    try:
        assert running.stdout is not None
        found = re.search(r":(\d+)/\?token=(\S+)", running.stdout.readline())
        assert found is not None
        address = f"ws://127.0.0.1:{found[1]}/m/heat/live?token={found[2]}"
        with connect(address, compression=None, max_size=None) as socket:
            socket.send('{"type":"record","on":true,"name":"waves"}')
            socket.send('{"type":"step","count":5}')
            for message in socket:
                if isinstance(message, str) and '"recording":true' in message.replace(" ", ""):
                    break
            running.send_signal(signal.SIGTERM)
            assert running.wait(60) == 143
        [film] = tmp_path.glob("waves.*")
        assert film.stat().st_size > 100
    finally:
        running.kill()
        running.communicate()
