"""Training steps of a GPT against nanochat's model and optimizer, on the same tokens.

    python benchmarks/bench_chat_train.py --nanochat FOLDER [--depth 12] [--batch 32]

FOLDER is a checkout of github.com/karpathy/nanochat. Both models have the same shape: value
embeddings, mixing, full context; both step with Muon and AdamW in bfloat16, compiled. Prints
tokens a second of both, their ratio, TFLOP/s by nanochat's count, and memory. With `--steps`
both are trained on `--tokens` (a file of uint16) with the same batches, and their losses are
compared.
"""

import importlib
import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from options import parser

from hotgrid.chat import GPT, Recipe, optimizers


def import_nanochat(folder: str):
    """Their model and its configuration."""
    sys.path.insert(0, folder)
    gpt = importlib.import_module("nanochat.gpt")
    return gpt.GPT, gpt.GPTConfig


class Ours:
    """Our model and optimizers behind three calls."""

    def __init__(self, options) -> None:
        torch.manual_seed(0)
        recipe = Recipe.of(options.depth, context=options.context, steps=max(1, options.steps))
        config = recipe.config(value_embeddings=True, mixing=True, window="L")
        self.model = GPT(config).to(options.device)
        self.optimizer = optimizers(self.model, recipe)
        self.flops = self.model.flops()
        self.loss = torch.compile(self._loss, dynamic=False) if options.compiled else self._loss
        self.device = options.device

    def _loss(self, tokens, targets):
        with torch.autocast(self.device, torch.bfloat16):
            return self.model.loss(tokens, targets)

    def step(self, number, tokens, targets):
        """One step; the loss stays on the device."""
        self.optimizer.apply(number)
        loss = self.loss(tokens, targets)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()


class Nanochat:
    """Theirs, with its own schedule of rates."""

    def __init__(self, options) -> None:
        theirs, shape = import_nanochat(options.nanochat)
        torch.manual_seed(0)
        recipe = Recipe.of(options.depth, context=options.context, steps=max(1, options.steps))
        config = shape(
            sequence_len=options.context,
            vocab_size=recipe["vocabulary"],
            n_layer=options.depth,
            n_head=recipe["heads"],
            n_kv_head=recipe["heads"],
            n_embd=recipe["size"],
            window_pattern="L",
        )
        with torch.device("meta"):
            self.model = theirs(config)
        self.model.to_empty(device=options.device)
        self.model.init_weights()
        self.optimizer = self.model.setup_optimizer(
            unembedding_lr=0.008, embedding_lr=0.3, matrix_lr=0.02, weight_decay=recipe["decay"]
        )
        self.recipe = recipe
        self.loss = torch.compile(self.model, dynamic=False) if options.compiled else self.model

    def step(self, number, tokens, targets):
        """One step with the rates that our recipe has."""
        r, steps = self.recipe, self.recipe["steps"]
        rate = min(1.0, (number + 1) / max(1, r["warmup"]))
        start = steps - r["warmdown"]
        if number > start and r["warmdown"]:
            rate = 1 - (1 - r["final"]) * (number - start) / r["warmdown"]
        momentum = 0.85 + 0.12 * min(1.0, number / min(400, steps))
        if number >= start and r["warmdown"]:
            momentum = 0.97 - 0.07 * min(1.0, (number - start) / r["warmdown"])
        decay = r["decay"] * 0.5 * (1 + np.cos(np.pi * number / steps))
        for group in self.optimizer.param_groups:
            group["lr"] = group["initial_lr"] * rate
            if group["kind"] == "muon":
                group["momentum"], group["weight_decay"] = momentum, decay
        loss = self.loss(tokens, targets)
        loss.backward()
        self.optimizer.step()
        self.model.zero_grad(set_to_none=True)
        return loss.detach()


def synchronize(device: str) -> None:
    """Wait for the GPU."""
    if device == "cuda":
        torch.cuda.synchronize()


def speed(one, options) -> dict:
    """Tokens a second, the best of some rounds."""
    generator = torch.Generator().manual_seed(1)
    rows = torch.randint(32_768, (options.batch, options.context + 1), generator=generator)
    rows = rows.to(options.device)
    tokens, targets = rows[:, :-1].contiguous(), rows[:, 1:].contiguous()
    begin = time.perf_counter()
    for number in range(3):
        one.step(number, tokens, targets)
    synchronize(options.device)
    first = time.perf_counter() - begin
    best = float("inf")
    for _ in range(options.rounds):
        begin = time.perf_counter()
        for number in range(10):
            one.step(number, tokens, targets)
        synchronize(options.device)
        best = min(best, (time.perf_counter() - begin) / 10)
    memory = torch.cuda.max_memory_allocated() / 2**30 if options.device == "cuda" else 0.0
    return {
        "tokens_per_second": options.batch * options.context / best,
        "step_ms": best * 1e3,
        "first_steps_s": first,
        "memory_gib": memory,
    }


def losses(one, options) -> list[float]:
    """Losses of a training run on real tokens."""
    stream = np.memmap(options.tokens, dtype=np.uint16, mode="r")
    size = options.batch * (options.context + 1)
    found = []
    for number in range(options.steps):
        at = number * size % (len(stream) - size)
        rows = torch.from_numpy(stream[at : at + size].astype(np.int64))
        rows = rows.view(options.batch, options.context + 1).to(options.device)
        found.append(one.step(number, rows[:, :-1].contiguous(), rows[:, 1:].contiguous()))
    return torch.stack(found).tolist()


def main() -> None:
    """Measure both and print."""
    arguments = parser(__doc__)
    arguments.add_argument("--nanochat", required=True, metavar="FOLDER")
    arguments.add_argument("--depth", type=int, default=12)
    arguments.add_argument("--batch", type=int, default=32)
    arguments.add_argument("--context", type=int, default=2048)
    arguments.add_argument("--rounds", type=int, default=4)
    arguments.add_argument("--steps", type=int, default=0, help="also train this many steps")
    arguments.add_argument("--tokens", metavar="FILE", help="uint16 tokens for --steps")
    arguments.add_argument("--eager", dest="compiled", action="store_false")
    arguments.add_argument("--out", type=Path)
    options = arguments.parse_args()
    rows, flops = {}, 0.0
    for name, kind in (("hotgrid", Ours), ("nanochat", Nanochat)):
        if options.device == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        one = kind(options)
        flops = getattr(one, "flops", flops)
        rows[name] = speed(one, options)
        if options.steps:
            del one
            one = kind(options)
            rows[name]["losses"] = losses(one, options)
        row = rows[name]
        print(
            f"{name:9s} {row['tokens_per_second']:,.0f} tok/s  {row['step_ms']:.1f} ms  "
            f"{row['tokens_per_second'] * flops / 1e12:.0f} TFLOP/s  "
            f"{row['memory_gib']:.1f} GiB  "
            f"first steps {row['first_steps_s']:.0f} s",
            flush=True,
        )
        if options.steps:
            print(
                "          loss",
                [round(x, 4) for x in row["losses"][:: max(1, options.steps // 10)]],
                round(float(np.mean(row["losses"][-20:])), 4),
                flush=True,
            )
        del one
        torch._dynamo.reset()
    ratio = rows["hotgrid"]["tokens_per_second"] / rows["nanochat"]["tokens_per_second"]
    print(f"ratio {ratio:.3f}")
    if options.out:
        options.out.write_text(json.dumps({"ratio": ratio, **rows}, indent=1))


if __name__ == "__main__":
    main()
