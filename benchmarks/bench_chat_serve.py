"""A server under many clients: tokens a second against the raw rate, and the first token.

    python benchmarks/bench_chat_serve.py [--device D] [--shape S] [--clients 32] [--stream]

The raw rate is that of the engine's own forward pass and sampling for a batch of as many rows,
in the same bursts where the engine has them, without requests, text or HTTP. Then the clients,
in another process, ask over HTTP, each for several completions in a row, whole or as streams.
Their lengths vary, from half to one and a half of `--tokens`; each client asks for the same
lengths in another order. Every request must come back with as many tokens as it asked for.

There are two rates. That of the whole time has the beginning, when nobody has a reply yet, and
the end, when most clients have all of theirs. The steady one is from the time when every client
has had a reply to the time when the first one sends its last request.

Times of the first token are those of streams; without `--stream` all clients send one short
stream more, at the same moment. Nothing is warmed up: what the first requests wait for counts.
"""

import asyncio
import json
import math
import multiprocessing
import random
import statistics
import sys
import time
from array import array
from dataclasses import dataclass

import numpy as np
import torch
from chat_models import SHAPES, random_language
from options import parser
from report import report

from hotgrid.chat import Engine, Sampling
from hotgrid.chat._generate._row import Row
from hotgrid.chat._generate._sampling import Settings, choose
from hotgrid.chat._generate._stepper import Stepper
from hotgrid.chat.serve import ChatApp


def raw_rate(language, batch: int, tokens: int, *, static: bool, compiled: bool) -> float:
    """Tokens a second of a batch that never changes."""
    config = language.model.config
    blocks = -(-(tokens + 1) // 16)
    stepper = Stepper(
        language.model,
        batch * blocks + 1,
        16,
        rows=batch,
        length=tokens + 1,
        static=static,
        compiled=compiled,
    )
    own = [array("q", range(1 + row * blocks, 1 + (row + 1) * blocks)) for row in range(batch)]
    settings = Settings.of([Sampling()] * batch, config.vocabulary, stepper.device)
    best, most = 0.0, stepper.most_steps(batch)
    for _ in range(3):
        last = [1] * batch
        begin = time.perf_counter()
        for place in range(0, tokens, most):
            rows = [Row([last[row]], place, 1, own[row]) for row in range(batch)]
            steps = min(most, tokens - place)
            if most > 1:
                decoder = stepper.burst(rows, steps)
                begun = decoder.start(rows, [0.8] * batch, np.full((steps, batch), 0.5))
                last = [row[-1] for row in begun.chosen()]
                continue
            logits = stepper.feed(rows)
            uniforms = torch.full((batch,), 0.5, dtype=torch.float64, device=logits.device)
            last = choose(logits, settings, uniforms).tolist()
        best = max(best, batch * tokens / (time.perf_counter() - begin))
    return best


@dataclass
class Asked:
    """One request: when it was sent, when its first token and its end came, and its tokens."""

    begin: float
    first: float
    end: float
    wanted: int
    count: int


class Client:
    """One connection, which is kept for all requests, as OpenAI's client does."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def connect(self) -> None:
        """Open the connection."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    async def ask(self, tokens: int, seed: int, *, stream: bool) -> Asked:
        """Send one request, and wait for its end."""
        asked = {
            "model": "default",
            "prompt": [1, 2, 3, 4],
            "max_tokens": tokens,
            "seed": seed,
            "stream": stream,
        }
        if stream:
            asked["stream_options"] = {"include_usage": True}
        body = json.dumps(asked).encode()
        head = f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n"
        begin = time.perf_counter()
        self._writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        found, first = await self._reader.readuntil(b"\r\n\r\n"), 0.0
        if b"content-length: " in found:
            size = found.split(b"content-length: ")[1].split(b"\r\n")[0]
            found = await self._reader.readexactly(int(size))
        while stream and not found.endswith(b"\r\n0\r\n\r\n"):
            part = await self._reader.read(1 << 16)
            if not part:
                break
            found += part
            if not first and b'"text":' in found:
                first = time.perf_counter()
        count = found.rpartition(b'"completion_tokens":')[2].split(b",")[0]
        number = int(count) if count.isdigit() else 0
        return Asked(begin, first, time.perf_counter(), tokens, number)


async def crowd(port: int, lengths: list[list[int]], *, stream: bool):
    """All clients, each with its requests one after the other; then short streams at once."""
    clients = [Client(port) for _ in lengths]
    await asyncio.gather(*(client.connect() for client in clients))

    async def one(number: int) -> list[Asked]:
        found = []
        for place, tokens in enumerate(lengths[number]):
            seed = number * len(lengths[number]) + place
            found.append(await clients[number].ask(tokens, seed, stream=stream))
        return found

    answers = await asyncio.gather(*map(one, range(len(clients))))
    shorts = (client.ask(2, seed, stream=True) for seed, client in enumerate(clients))
    return answers, await asyncio.gather(*shorts)


def run_crowd(pipe, *arguments, **options) -> None:
    """The clients, in a process of their own."""
    pipe.send(asyncio.run(crowd(*arguments, **options)))


def served(port: int, lengths: list[list[int]], *, stream: bool):
    """What the clients found."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    words = {"args": (there, port, lengths), "kwargs": {"stream": stream}}
    process = context.Process(target=run_crowd, **words)
    process.start()
    there.close()
    found = here.recv()
    process.join()
    return found


def whole_rate(answers: list[list[Asked]]) -> float:
    """Tokens a second from the first request to the last reply."""
    every = [each for some in answers for each in some]
    seconds = max(each.end for each in every) - min(each.begin for each in every)
    return sum(each.count for each in every) / seconds


def steady_rate(answers: list[list[Asked]]) -> float:
    """Tokens a second while every client has a request, but its first and its last.

    The tokens of a request are taken to come evenly between its begin and its end.
    """
    begin = max(some[0].end for some in answers)
    end = min(some[-1].begin for some in answers)
    if end <= begin:
        return math.nan
    within = 0.0
    for each in (each for some in answers for each in some):
        shared = min(end, each.end) - max(begin, each.begin)
        within += each.count * max(0.0, shared) / (each.end - each.begin)
    return within / (end - begin)


def late(times: list[float]) -> dict[str, float]:
    """The median, and what 99 of 100 are within, in milliseconds."""
    ordered = sorted(1e3 * each for each in times)
    most = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    return {"p50 ms": round(statistics.median(ordered), 1), "p99 ms": round(most, 1)}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--shape", choices=SHAPES, help="default: d12 on CUDA, else small")
    options.add_argument("--clients", type=int, default=32)
    options.add_argument("--requests", type=int, default=12, help="of each client")
    options.add_argument("--tokens", type=int, default=128, help="of a reply, in the mean")
    options.add_argument("--stream", action="store_true")
    options.add_argument("--compiled", action="store_true")
    given = options.parse_args()
    shape = given.shape or ("d12" if given.device == "cuda" else "small")
    language = random_language(shape, given.device)
    static = given.device == "cuda" or given.compiled
    raw = raw_rate(
        language, given.clients, given.tokens, static=static, compiled=given.compiled
    )
    # The same lengths for every client, in an order of its own.
    spread = np.linspace(0.5, 1.5, given.requests) * given.tokens
    source = random.Random(0)
    lengths = [source.sample(spread.astype(int).tolist(), given.requests)
               for _ in range(given.clients)]  # fmt: skip
    begin = time.perf_counter()
    engine = Engine(language, slots=given.clients, static=static, compiled=given.compiled)
    with engine, ChatApp(engine).serve(port=0) as server:
        ready = time.perf_counter() - begin
        answers, shorts = served(server.port, lengths, stream=given.stream)
    every = [each for some in answers for each in some]
    lost = sum(each.count != each.wanted for each in every)
    if lost:
        sys.exit(f"{lost} of {len(every)} requests did not get their tokens")
    rates = {"whole": whole_rate(answers), "steady": steady_rate(answers)}
    row = {
        "clients": given.clients,
        "requests": len(every),
        "lost": lost,
        "ready after s": round(ready, 1),
        "raw tokens/s": round(raw, 1),
    }
    for name, rate in rates.items():
        row[f"{name} tokens/s"] = round(rate, 1)
        row[f"{name} ratio"] = round(rate / raw, 3)
    streams = every if given.stream else shorts
    row |= {f"first {k}": v for k, v in late([e.first - e.begin for e in streams]).items()}
    name = f"chat-serve-{shape}-{'stream' if given.stream else 'whole'}-{given.device}"
    device = torch.cuda.get_device_name() if given.device == "cuda" else "cpu"
    report(name, [row], device=device, compiled=given.compiled, tokens=given.tokens)


if __name__ == "__main__":
    main()
