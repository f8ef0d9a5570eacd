"""Claim: a training step of swin_cifar takes at most 12 ms on an H200, compiled, batch 512.

The parts of a step of `hotgrid vision train`, with random images of 32 x 32 that are kept on
the device: taking a batch, augmenting it, forward and backward (augmentation included), and the
rest (clipping, optimizer, average). `queued` is the time until the host has given all work to
the device, `done` the time until the device has done it: where both are equal, Python is the
limit. On CUDA it ends with an error if a step waits for the device.

    python benchmarks/bench_vision_step.py [--device cuda] [--model swin_cifar] [--batch 512]
"""

import contextlib
import time
from collections.abc import Callable
from typing import Any

import torch
from options import parser
from report import report

from hotgrid.train._loop._average import Average
from hotgrid.vision import ColumnBatches, ImageModel, NormalisePixels, create_model, find_recipe
from hotgrid.vision._training._optimizer import recipe_optimizer
from hotgrid.vision._training._train import image_loss

SIZE, CLASSES, ROWS = 32, 10, 50_000


def timed(call: Callable[[], Any], repeats: int, wait: Callable[[], None]) -> dict[str, float]:
    """Milliseconds of a call until all is queued, and until the device is done."""
    for _ in range(3):
        call()
    wait()
    began = time.perf_counter()
    for _ in range(repeats):
        call()
    queued = time.perf_counter()
    wait()
    done = time.perf_counter()
    return {
        "queued ms": (queued - began) / repeats * 1e3,
        "done ms": (done - began) / repeats * 1e3,
    }


class FirstPixels(torch.nn.Module):
    """In place of a network, to time augmentation alone."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return its first pixels as scores."""
        return images.flatten(1)[:, :CLASSES]


def calls(given: Any, batch: int) -> dict[str, Callable[[], Any]]:
    """The parts of a step and the whole of it, in a form that can be repeated."""
    device, compiled = given.device, not given.eager
    recipe = find_recipe(given.recipe).changed(batch=batch)
    torch.manual_seed(0)
    net = create_model(
        given.model, num_classes=CLASSES, image_size=SIZE, drop_path=recipe.drop_path
    ).to(device)
    made = ImageModel(net, tuple(map(str, range(CLASSES))), NormalisePixels(), SIZE)
    images = torch.randint(0, 256, (ROWS, 3, SIZE, SIZE), dtype=torch.uint8, device=device)
    column = ColumnBatches(images, torch.arange(ROWS, device=device) % CLASSES, batch)
    optimizer = recipe_optimizer(net, recipe, 1000)
    average = Average(net, recipe.average) if recipe.average else None
    loss = image_loss(made, recipe, compiled=compiled)
    graphs = "reduce-overhead" if given.device == "cuda" else None
    called: Any = torch.compile(net, mode=graphs) if compiled else net
    numbers = iter(range(10**9))
    bf16 = given.device == "cuda"

    def taken() -> Any:
        return column.batch(next(numbers))

    fixed = taken()

    def learn(batch: Any = fixed) -> None:
        context = torch.autocast(device, torch.bfloat16) if bf16 else contextlib.nullcontext()
        with context:
            found = loss(called, batch)["loss"]
        optimizer.zero_grad()
        found.backward()

    def rest() -> None:
        optimizer.apply(1)
        optimizer.clip()
        optimizer.step()
        if average is not None:
            average.update()

    def whole() -> None:
        learn(taken())
        rest()

    def augment() -> None:
        loss(FirstPixels(), fixed)

    return {
        "take a batch": taken,
        "augment": augment,
        "augment, forward, backward": learn,
        "clip, optimizer, average": rest,
        "whole step": whole,
    }


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--model", default="swin_cifar")
    options.add_argument("--recipe", default="small-swin")
    options.add_argument("--batch", type=int, help="default: 512 on cuda, 8 on cpu")
    options.add_argument("--steps", type=int, help="default: 20 on cuda, 2 on cpu")
    options.add_argument("--eager", action="store_true", help="do not compile anything")
    options.add_argument("--profile", action="store_true", help="print the longest kernels")
    given = options.parse_args()
    cuda = given.device == "cuda"
    batch, steps = given.batch or (512 if cuda else 8), given.steps or (20 if cuda else 2)
    wait = torch.cuda.synchronize if cuda else lambda: None
    made = calls(given, batch)
    began = time.perf_counter()
    made["whole step"]()
    wait()
    compiling = time.perf_counter() - began
    rows = [{"part": name, **timed(call, steps, wait)} for name, call in made.items()]
    if cuda:
        torch.cuda.set_sync_debug_mode("error")
        made["whole step"]()
        torch.cuda.set_sync_debug_mode("default")
    facts = {"model": given.model, "batch": batch, "compiled": not given.eager}
    facts["first step s"] = round(compiling, 1)
    report("vision-step", rows, device=given.device, torch=torch.__version__, **facts)
    if given.profile:
        kinds = [torch.profiler.ProfilerActivity.CPU]
        kinds += [torch.profiler.ProfilerActivity.CUDA] if cuda else []
        with torch.profiler.profile(activities=kinds) as seen:
            for _ in range(3):
                made["whole step"]()
            wait()
        order = "self_cuda_time_total" if cuda else "self_cpu_time_total"
        table = seen.key_averages().table(sort_by=order, row_limit=30)
        print("three steps:", table, sep="\n")


if __name__ == "__main__":
    main()
