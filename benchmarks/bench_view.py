"""Claim: watching a grid in the browser costs little, and viewers do not slow a run down.

With `--device cpu`, in bare Chromium (a debugger would copy every frame):
CPU milliseconds a frame over all processes while nothing is computed; what the server alone
takes; the time from a stroke to the frame that shows it; memory with 100 connections that
never read, and the rate of another viewer meanwhile.

With `--device cuda`: steps a second of a D2Q9 flow of 4096 x 4096 with no viewer, and with one
that takes 30 frames a second; then where the time of one frame goes.

    python benchmarks/bench_view.py --device cpu
"""

import json
import os
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import torch
from options import parser
from report import report
from websockets.sync.client import connect

from hotgrid.config import case_of
from hotgrid.grid.output import Colours
from hotgrid.grid.view import Eye, Gaze, Session, ViewApp
from hotgrid.grid.view._backlog import Stopwatch
from hotgrid.grid.view._look import box_of
from hotgrid.grid.view._reduce import quantized, sampled
from hotgrid.grid.view._source import WholeGrid
from hotgrid.web import PageServer

SECONDS = 8.0
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--enable-unsafe-swiftshader", "--window-size=1280,1100",
    "--disable-background-networking", "--no-first-run", "--remote-debugging-port=0",
)  # fmt: skip


class Stand:
    """A served model, in this process."""

    def __init__(self, model: str, size: int, device: str, *, playing: bool) -> None:
        case = case_of(model, {"size": f"{size}x{size}", "device": device})
        self.app = ViewApp(case, Path(tempfile.mkdtemp()), playing=playing)
        self.server: PageServer = self.app.serve(0)
        self.app.begin()
        self.session: Session = next(iter(self.app._sessions.values()))
        self.server.start()
        self.model = model
        self._ended = threading.Event()

    def keep_changing(self) -> None:
        """Have every frame made anew though nothing is computed."""

        def change() -> None:
            while not self._ended.wait(1 / 70):
                self.session._edits += 1
                self.session._wake.set()

        threading.Thread(target=change, daemon=True).start()

    @property
    def live(self) -> str:
        """The address of the socket."""
        host = f"ws://127.0.0.1:{self.server.port}"
        return f"{host}/m/{self.model}/live?token={self.server.token}"

    def close(self) -> None:
        """End it all."""
        self._ended.set()
        self.app.close()
        self.server.stop()


def acknowledged(session: Session) -> int:
    return sum(seat.viewer._acknowledged for seat in list(session._seats.values()))


def tree_seconds(group: int) -> float:
    """CPU seconds of all processes of a group."""
    ticks = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group:
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def in_browser(size: int) -> dict[str, Any]:
    """CPU milliseconds a frame, over the browser and this process."""
    found = next(filter(None, map(shutil.which, BROWSERS)))
    stand = Stand("heat", size, "cpu", playing=False)
    profile = tempfile.mkdtemp()
    browser = subprocess.Popen(
        [found, *FLAGS, f"--user-data-dir={profile}", stand.server.address],
        start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until = time.monotonic() + 60
        while acknowledged(stand.session) < 1 and time.monotonic() < until:
            time.sleep(0.1)
        stand.keep_changing()
        time.sleep(3)
        frames, own = acknowledged(stand.session), time.process_time()
        others, began = tree_seconds(browser.pid), time.monotonic()
        time.sleep(SECONDS)
        frames = acknowledged(stand.session) - frames
        own, others = time.process_time() - own, tree_seconds(browser.pid) - others
        rate = frames / (time.monotonic() - began)
        return {
            "what": f"{size}^2 in Chromium, CPU ms a frame",
            "value": 1000 * (own + others) / frames,
            "server": 1000 * own / frames,
            "frames/s": rate,
        }
    finally:
        os.killpg(browser.pid, 9)
        browser.wait()
        stand.close()
        shutil.rmtree(profile, ignore_errors=True)


class Client:
    """A plain socket that acknowledges frames, up to a number a second."""

    def __init__(self, stand: Stand, rate: float = 60.0, size: int = 1024) -> None:
        self.socket = connect(stand.live, max_size=None, compression=None, legacy=True)
        self.send(type="look", view=self.hello()["view"], region=[0, 0, 1e9, 1e9],
                  pixels=[size, size])  # fmt: skip
        self.frames, self.steps = 0, 0.0
        self._pause = 1 / rate
        self._ended = False
        self._thread = threading.Thread(target=self._read, daemon=True)

    def hello(self) -> dict[str, Any]:
        """The first message."""
        while True:
            text = self.socket.recv()
            if isinstance(text, str) and (found := json.loads(text))["type"] == "hello":
                return found

    def send(self, **message: Any) -> None:
        """Send a message."""
        self.socket.send(json.dumps(message))

    def start(self) -> "Client":
        """Begin to read."""
        self._thread.start()
        return self

    def _read(self) -> None:
        while not self._ended:
            data = self.socket.recv()
            if isinstance(data, bytes):
                self.frames += 1
                time.sleep(self._pause)
                self.send(type="ack", frame=int.from_bytes(data[4:8], "little"))

    def close(self) -> None:
        """Stop reading."""
        self._ended = True


def server_alone(size: int) -> dict[str, Any]:
    """CPU milliseconds of this process for a frame to a plain socket."""
    stand = Stand("heat", size, "cpu", playing=False)
    client = Client(stand, rate=1000, size=size).start()
    stand.keep_changing()
    time.sleep(1)
    # The client is a thread of this process; what it takes is measured apart and taken off.
    frames, own, mine = client.frames, time.process_time(), thread_seconds(client)
    time.sleep(SECONDS)
    frames, own = client.frames - frames, time.process_time() - own
    own -= thread_seconds(client) - mine
    client.close()
    stand.close()
    return {"what": f"{size}^2 to a plain socket, CPU ms a frame", "value": 1000 * own / frames}


def thread_seconds(client: Client) -> float:
    """CPU seconds of the two threads of a client."""
    ticks = 0
    for thread in (client._thread, client.socket.recv_events_thread):
        stat = Path(f"/proc/self/task/{thread.native_id}/stat").read_text()
        ticks += sum(map(int, stat.rpartition(")")[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def latency(size: int) -> dict[str, Any]:
    """From sending a stroke to receiving the frame that shows it."""
    stand = Stand("life", size, "cpu", playing=False)
    socket = connect(stand.live, max_size=None, compression=None, legacy=True)
    look = {"type": "look", "view": "alive", "region": [0, 0, 64, 64], "pixels": [64, 64]}
    socket.send(json.dumps(look))
    times: list[float] = []
    for n in range(40):
        stroke = {"type": "stroke", "stroke": n, "brush": "cells", "value": n % 2, "radius": 99,
                  "points": [[32, 32]]}  # fmt: skip
        time.sleep(0.05)
        began = time.perf_counter()
        socket.send(json.dumps(stroke))
        wanted = b"\xff" if n % 2 else b"\x00"
        while True:
            data = socket.recv(10)
            if isinstance(data, bytes):
                socket.send(
                    json.dumps({"type": "ack", "frame": int.from_bytes(data[4:8], "little")})
                )
                if data[80:] == wanted * len(data[80:]):
                    break
        times.append(time.perf_counter() - began)
    socket.close()
    stand.close()
    return {
        "what": f"stroke to changed frame at {size}^2, median ms",
        "value": 1000 * statistics.median(times),
    }


def resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def crowd(size: int, count: int = 100) -> list[dict[str, Any]]:
    """Connections that never read, beside one viewer that does."""
    stand = Stand("heat", size, "cpu", playing=False)
    stand.keep_changing()
    client = Client(stand, size=size).start()

    def rate() -> float:
        before, began = client.frames, time.monotonic()
        time.sleep(4)
        return (client.frames - before) / (time.monotonic() - began)

    alone, memory = rate(), resident()
    address = stand.live
    script = (
        "import sys, time; from websockets.sync.client import connect\n"
        f"s = [connect({address!r}, compression=None, legacy=True) for _ in range({count})]\n"
        "print('there', flush=True); time.sleep(60)"
    )
    others = subprocess.Popen(
        ["python3", "-c", script], stdout=subprocess.PIPE, env=_same_python()
    )
    if others.stdout is not None:
        others.stdout.readline()
    time.sleep(4)
    among, grown = rate(), resident() - memory
    others.kill()
    others.wait()
    client.close()
    stand.close()
    return [
        {"what": f"{count} connections that never read: memory, MB", "value": grown},
        {"what": "frames/s of another viewer, alone", "value": alone},
        {"what": "frames/s of another viewer, among them", "value": among},
    ]


def _same_python() -> dict[str, str]:
    import sys

    paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": paths, "PYTHONPATH": os.pathsep.join(sys.path)}


VIEWER = """
import json, sys, time
from websockets.sync.client import connect
address, view, size, rate = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
socket = connect(address, max_size=None, compression=None, legacy=True)
look = {"type": "look", "view": view, "region": [0, 0, 1e9, 1e9], "pixels": [size, size]}
socket.send(json.dumps(look))
due = time.monotonic()
while True:
    data = socket.recv()
    if isinstance(data, bytes):
        due = max(due + 1 / rate, time.monotonic() - 1)
        time.sleep(max(0.0, due - time.monotonic()))
        socket.send(json.dumps({"type": "ack", "frame": int.from_bytes(data[4:8], "little")}))
"""


def viewer(stand: Stand, rate: float, size: int = 1024) -> subprocess.Popen[bytes]:
    """A plain socket client in a process of its own, so that it does not slow the server."""
    view = stand.session.live.simulation.model.views()
    told = [stand.live, next(iter(view)), str(size), str(rate)]
    return subprocess.Popen(["python3", "-c", VIEWER, *told], env=_same_python())


def parts_of_a_frame(simulation: Any, pixels: int = 1024) -> list[dict[str, Any]]:
    """Where the time of one frame goes, in milliseconds of the device; medians."""
    size = simulation.size
    view = next(iter(simulation.model.views()))
    look = Gaze(view, (0.0, 0.0, float(size[0]), float(size[1])), (pixels, pixels))
    box, eye = box_of(look, size), Eye(simulation)
    plain, fast = WholeGrid(simulation, fused=False), WholeGrid(simulation, fused=True)
    values = fast.pixels(view, box)
    for _ in range(fast.fused.steady):
        values = fast.pixels(view, box)
    colours = Colours("plain", 0.0, 1.0)
    frame = eye.frame(look)
    steps = {
        "the view and its means, as they are": lambda: plain.pixels(view, box),
        "the same, fused": lambda: fast.pixels(view, box),
        "numbers for the range": lambda: sampled(values, states=False),
        "numbers to bytes": lambda: quantized(values, colours),
        "bytes to main memory": lambda: quantized(values, colours).cpu(),
        "a whole frame, one after the other": lambda: eye.frame(look),
        "the message, on the host": lambda: frame and frame.packed(1, 1, 255),
        "all observables": simulation.observe,
        "one step": lambda: simulation._ready().run(1),
    }
    rows: list[dict[str, Any]] = []
    with torch.no_grad():
        for what, do in steps.items():
            do()
            times: list[float] = []
            for _ in range(15):
                watch = Stopwatch(simulation.device)
                do()
                times.append(1000 * watch.seconds())
            rows.append({"what": f"{what}, ms", "value": statistics.median(times)})
    return rows


def on_gpu(size: int, device: str = "cuda") -> list[dict[str, Any]]:
    """Steps a second without a viewer and with one that takes 30 frames a second."""
    stand = Stand("flow", size, device, playing=True)
    simulation = stand.session.live.simulation

    def speed(seconds: float = 6.0) -> float:
        steps, began = simulation.step_count, time.perf_counter()
        time.sleep(seconds)
        return (simulation.step_count - steps) / (time.perf_counter() - began)

    def by_run(count: int) -> float:
        stand.session._transport.playing = False
        time.sleep(0.5)
        found = simulation.fork().run(count, progress=False).steps_per_second
        stand.session._transport.playing = True
        stand.session._wake.set()
        return found

    while simulation.step_count < 200:
        time.sleep(0.5)
    speed(3)
    rates: dict[str, list[float]] = {"run": [], "none": [], "one": [], "frames": []}
    for _ in range(3):
        rates["none"].append(speed())
        rates["run"].append(by_run(max(1, int(6 * rates["none"][-1]))))
        client = viewer(stand, rate=30)
        # The view is compiled beside the run.
        time.sleep(15)
        frames = acknowledged(stand.session)
        rates["one"].append(speed())
        rates["frames"].append((acknowledged(stand.session) - frames) / 6)
        client.kill()
        client.wait()
        speed(1)
    source: Any = stand.session.live._eye._source
    fused = source.fused.compiled
    stand.close()
    plain, none, one, frames = (statistics.median(each) for each in rates.values())
    return [
        {"what": f"D2Q9 {size}^2, steps/s by `run`", "value": plain},
        {"what": "no viewer, steps/s", "value": none},
        {"what": f"one viewer at {frames:.0f} frames/s, steps/s", "value": one},
        {"what": "lost to the server without a viewer, %", "value": 100 * (1 - none / plain)},
        {"what": "lost to the viewer, %", "value": 100 * (1 - one / none)},
        {"what": "views that were compiled", "value": fused},
        *parts_of_a_frame(simulation),
    ]


def main() -> None:
    given = parser(__doc__).parse_args()
    if given.device == "cuda":
        report("view", on_gpu(4096), device="cuda")
        return
    load = f"{os.getloadavg()[0]:.1f}"
    rows = [server_alone(1024), latency(1024), *crowd(512)]
    rows += [in_browser(size) for size in (512, 1024, 2048)]
    rows += [
        {
            "what": f"load of the machine at the start: {load}, and now",
            "value": os.getloadavg()[0],
        }
    ]
    report("view", rows)


if __name__ == "__main__":
    main()
