"""A server under many clients: tokens a second against the raw rate, and the first token.

    python benchmarks/bench_chat_serve.py [--device D] [--shape S] [--clients 32] [--stream]

The raw rate is that of the engine's own forward pass and sampling for a batch of as many rows,
in the same bursts where the engine has them, without requests, text or HTTP. Then the clients,
threads of another process, ask over HTTP, each for several completions in a row, whole or as
streams. Every request must come back with as many tokens as it asked for. Times of the first
token are those of streams; without `--stream` each client sends one short stream more, to
measure it under load.
"""

import asyncio
import json
import multiprocessing
import statistics
import sys
import time
from array import array

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


async def ask(port: int, tokens: int, seed: int, *, stream: bool) -> tuple[int, float]:
    """Send one request; return its tokens and the seconds to the first of them."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
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
    begin = time.perf_counter()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    await writer.drain()
    first, count = 0.0, 0
    while line := await reader.readline():
        if b'"text":' in line and not first:
            first = time.perf_counter() - begin
        if b'"completion_tokens"' in line:
            count = int(line.split(b'"completion_tokens":')[1].split(b",")[0])
    writer.close()
    return count, first


async def crowd(port: int, clients: int, rounds: int, tokens: int, stream: bool):
    """All clients, each with its requests one after the other."""

    async def one(number: int) -> list[tuple[int, float]]:
        found = []
        for place in range(rounds):
            found.append(await ask(port, tokens, number * rounds + place, stream=stream))
        return found

    begin = time.perf_counter()
    answers = [
        each for some in await asyncio.gather(*map(one, range(clients))) for each in some
    ]
    seconds = time.perf_counter() - begin
    if not stream:
        shorts = [ask(port, 2, number, stream=True) for number in range(clients)]
        firsts = [first for _, first in await asyncio.gather(*shorts)]
    else:
        firsts = [first for _, first in answers]
    return seconds, [count for count, _ in answers], firsts


def run_crowd(pipe, *arguments) -> None:
    """The clients, in a process of their own."""
    pipe.send(asyncio.run(crowd(*arguments)))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--shape", choices=SHAPES, help="default: d12 on CUDA, else small")
    options.add_argument("--clients", type=int, default=32)
    options.add_argument("--requests", type=int, default=3, help="of each client")
    options.add_argument("--tokens", type=int, default=128, help="of each reply")
    options.add_argument("--stream", action="store_true")
    options.add_argument("--compiled", action="store_true")
    given = options.parse_args()
    shape = given.shape or ("d12" if given.device == "cuda" else "small")
    language = random_language(shape, given.device)
    static = given.device == "cuda" or given.compiled
    raw = raw_rate(
        language, given.clients, given.tokens, static=static, compiled=given.compiled
    )
    engine = Engine(language, slots=given.clients, static=static, compiled=given.compiled)
    context = multiprocessing.get_context("spawn")
    with engine, ChatApp(engine).serve(port=0) as server:
        for rounds in (1, given.requests):  # the first captures graphs
            here, there = context.Pipe()
            words = (server.port, given.clients, rounds, given.tokens, given.stream)
            process = context.Process(target=run_crowd, args=(there, *words))
            process.start()
            seconds, counts, firsts = here.recv()
            process.join()
    lost = sum(count != given.tokens for count in counts)
    if lost:
        sys.exit(f"{lost} of {len(counts)} requests did not get their {given.tokens} tokens")
    rate = sum(counts) / seconds
    ordered = sorted(firsts)
    late = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    rows = [
        {
            "clients": given.clients,
            "requests": len(counts),
            "lost": lost,
            "raw tokens/s": round(raw, 1),
            "served tokens/s": round(rate, 1),
            "ratio": round(rate / raw, 3),
            "first p50 ms": round(1e3 * statistics.median(ordered), 1),
            "first p99 ms": round(1e3 * late, 1),
        }
    ]
    name = f"chat-serve-{shape}-{'stream' if given.stream else 'whole'}-{given.device}"
    device = torch.cuda.get_device_name() if given.device == "cuda" else "cpu"
    report(name, rows, device=device, compiled=given.compiled, tokens=given.tokens)


if __name__ == "__main__":
    main()
