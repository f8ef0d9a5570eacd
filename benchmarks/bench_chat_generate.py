"""How fast a model writes: one reply against the limit of memory, and many at once.

    python benchmarks/bench_chat_generate.py [--device D] [--shape S] [--batch 64] [--compiled]

One reply is `generate`, greedy, from a short prompt. Its limit is the bandwidth of memory, as
measured here by reading a large tensor, divided by the bytes of the model's matrices, which
every token reads. Many replies are an `Engine` with as many slots; it is driven in this
thread. On a machine with other work, the CPU time of a token says more than the wall
time. The best of some rounds counts, the first of which captures graphs and compiles. With
`--form int8` (or pq, int4) the matrices are compressed first. The model has random weights;
shapes are in chat_models.py. The share is that of the limit, which for many replies is as many
times as high: all of them need the matrices once. Before anything is timed, both ways must give
the tokens of single steps, in double precision and in float32, which fused kernels are for.
"""

import time
from dataclasses import replace

import torch
from chat_models import SHAPES, ids_to_bytes, random_language
from options import parser
from report import once, report, same

from hotgrid.chat import Engine, Sampling, generate
from hotgrid.kernels import CodebookLinear, compress


def expect_agreement(device: str, dtype: torch.dtype, *, compiled: bool) -> None:
    """Stop unless bursts and the engine give the tokens of single steps."""
    language = random_language("tiny", device)
    language.model.to(dtype)
    ways = [
        Sampling(temperature=0, max_tokens=60),
        Sampling(seed=1, top_k=40, top_p=0.9, repetition=1.2, max_tokens=60),
        Sampling(seed=2, max_tokens=100),
    ]
    engine = Engine(language, slots=2, cache=256, static=True, compiled=compiled)
    asked = [engine.submit([n, 2, 3], way) for n, way in enumerate(ways)]
    for n, (way, request) in enumerate(zip(ways, asked, strict=True)):
        burst = generate(language, [n, 2, 3], way, burst=16, compiled=compiled)
        single = generate(language, [n, 2, 3], way, burst=1)
        found = {
            "bursts": lambda p=burst: tokens_of(p),
            "engine": lambda p=request: tokens_of(p),
        }
        same(found, tokens_of(single))


def tokens_of(pieces) -> list[int]:
    """All tokens of some pieces."""
    return [token for piece in pieces for token in piece.tokens]


def bandwidth(device: str) -> float:
    """Bytes a second of reading."""
    size = (1 << 30) if device == "cuda" else (1 << 27)
    data = torch.ones(size // 4, device=device)
    data.sum()
    return size / min(once(data.sum) for _ in range(7))


def one_reply(language, tokens: int, *, compiled: bool) -> tuple[float, float]:
    """Tokens a second of one reply, the prompt counted; and CPU time for each."""
    sampling = Sampling(temperature=0, max_tokens=tokens)
    begin, worked = time.perf_counter(), time.process_time()
    pieces = generate(language, [1, 2, 3, 4], sampling, compiled=compiled)
    count = sum(len(piece.tokens) for piece in pieces)
    spent = time.process_time() - worked
    return count / (time.perf_counter() - begin), spent / count


def many_replies(engine: Engine, batch: int, tokens: int) -> float:
    """Tokens a second of many replies together, the prompts counted."""
    begin = time.perf_counter()
    asked = [
        engine.submit([place % 256, 2, 3, 4], Sampling(seed=place, max_tokens=tokens))
        for place in range(batch)
    ]
    while engine.step():
        pass
    count = sum(len(request.reply) for request in asked)
    return count / (time.perf_counter() - begin)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--shape", choices=SHAPES, help="default: d12 on CUDA, else small")
    options.add_argument("--batch", type=int, nargs="*", default=[8, 32, 64])
    options.add_argument("--tokens", type=int, default=200)
    options.add_argument("--rounds", type=int, default=4)
    options.add_argument("--threads", type=int, help="of torch, on the CPU")
    options.add_argument("--form", choices=("int8", "int4", "pq"))
    options.add_argument("--compiled", action="store_true")
    given = options.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    for dtype in (torch.float64, torch.float32):
        expect_agreement(given.device, dtype, compiled=given.compiled)
    shape = given.shape or ("d12" if given.device == "cuda" else "small")
    language = random_language(shape, given.device)
    read = ids_to_bytes(language.model)
    if given.form:
        language = replace(language, model=compress(language.model, form=given.form))
        layers = (m for m in language.model.modules() if isinstance(m, CodebookLinear))
        read = ids_to_bytes(language.model) + sum(layer.bytes for layer in layers)
    speed = bandwidth(given.device)
    limit = speed / read
    rates = [
        one_reply(language, given.tokens, compiled=given.compiled) for _ in range(given.rounds)
    ]
    rows = [
        {
            "replies": 1,
            "tokens/s": round(max(rate for rate, _ in rates), 1),
            "processor ms": round(1e3 * min(spent for _, spent in rates), 2),
            "limit tokens/s": round(limit, 1),
            "share": round(max(rate for rate, _ in rates) / limit, 3),
        }
    ]
    for batch in given.batch:
        engine = Engine(
            language, slots=batch, static=given.compiled or None, compiled=given.compiled
        )
        rates = [many_replies(engine, batch, given.tokens) for _ in range(given.rounds)]
        best = {"replies": batch, "tokens/s": round(max(rates), 1)}
        share = max(rates) / (batch * limit)
        rows.append({**best, "limit tokens/s": round(batch * limit, 1), "share": share})
    name = "-".join(filter(None, ("chat-generate", shape, given.form, given.device)))
    report(
        name,
        rows,
        device=torch.cuda.get_device_name() if given.device == "cuda" else "cpu",
        threads=torch.get_num_threads(),
        compiled=given.compiled,
        megabytes=round(read / 1e6, 1),
        bandwidth=f"{speed / 1e9:.1f} GB/s",
    )


if __name__ == "__main__":
    main()
