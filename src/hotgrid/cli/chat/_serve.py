"""`hotgrid chat serve`: a model over HTTP."""

import os
import signal
import threading
from pathlib import Path
from types import FrameType

from hotgrid.cli._terminal import Terminal
from hotgrid.errors import ArgumentError, MissingPartError

KEY = "HOTGRID_CHAT_KEY"


def serve(
    model: Path | None = None,
    /,
    *,
    port: int = 8766,
    host: str = "127.0.0.1",
    key: str | None = None,
    slots: int = 8,
    queue: int = 256,
    limit: int | None = None,
    cache: int | None = None,
    device: str | None = None,
    compiled: bool = False,
    grace: float = 10.0,
) -> None:
    """Serve a model over HTTP, as OpenAI's clients expect it.

    Args:
        model: A model folder, a run, or a folder in the layout of Llama; without one, the
            model that comes with hotgrid, if this version has one.
        port: The port to listen on; the next free one if it is taken, 0 for any.
        host: The address to listen on; by default only this machine can connect.
        key: The key that clients must send; by default the variable HOTGRID_CHAT_KEY.
        slots: The most replies at once; by default 8.
        queue: The most requests that wait; by default 256.
        limit: The most tokens of a prompt and its reply; by default as the model allows.
        cache: Tokens that the cache holds; by default 1024 for each slot.
        device: Where the model runs; by default the GPU if there is one.
        compiled: Compile decoding: it starts later and is faster. For GPUs.
        grace: Seconds for replies under way when the server ends; by default 10.
    """
    key = key or os.environ.get(KEY) or None
    if key is None and host not in ("127.0.0.1", "::1"):
        raise ArgumentError(
            f"`--host {host}` is reachable from other machines: set a key with --key or {KEY}"
        )
    from hotgrid.chat import Engine, load_model
    from hotgrid.chat._talk import placed

    try:
        from hotgrid.chat.serve import ChatApp
    except ModuleNotFoundError as problem:
        if problem.name is None or not problem.name.startswith("starlette"):
            raise
        raise MissingPartError(
            "serving needs Starlette and uvicorn: run `pip install 'hotgrid[view]'`"
        ) from None

    language = load_model(model, device=placed(device))
    engine = Engine(
        language,
        slots=slots,
        queue=queue,
        limit=limit,
        cache=cache,
        static=compiled or None,
        compiled=compiled,
    )
    ended = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        ended.set()

    server = ChatApp(engine, key).serve(port, host)
    engine.start()
    before = {each: signal.signal(each, end) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.start()
        Terminal(highlight=False).out(f"hotgrid chat: {server.address}", highlight=False)
        while not ended.wait(0.2):
            pass
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        # New requests are refused from here on; a second Ctrl-C does not wait.
        engine.stop(grace)
        server.stop()
