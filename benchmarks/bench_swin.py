"""Images a second of Swin-T beside timm's, in one run; the aim on a GPU is 1.15 times timm.

Training is forward, backward and a step of AdamW. On CUDA in bfloat16 with a batch of 256; on
the CPU in float32 with a batch of 8. All have the same weights, and their logits must agree
first. `--peer timm` needs timm and torchvision.

    python benchmarks/bench_swin.py --device cuda --peer timm --compile
"""

import sys
from collections.abc import Callable
from typing import Any

import torch
from named_weights import named_image
from options import parser
from report import absent, once, report
from torch import Tensor, nn

from hotgrid.vision import create_model

BATCHES = {"cuda": 256, "cpu": 8}


def contestants(name: str, device: str, peer: str | None) -> dict[str, nn.Module]:
    torch.manual_seed(0)
    ours = create_model(name)
    made: dict[str, nn.Module] = {
        "hotgrid": ours,
        "hotgrid, readable": create_model(name, fused=False),
    }
    if peer:
        try:
            from peers import timm_models

            made[f"timm {timm_models.version()}"] = timm_models.make(name, drop_path_rate=0.0)
        except ImportError as problem:
            absent("timm", problem)
    for model in made.values():
        model.load_state_dict(ours.state_dict())
        model.to(device)
    return made


def autocast(device: str) -> torch.autocast:
    return torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda")


def trained(model: nn.Module, images: Tensor, labels: Tensor, device: str) -> Callable[[], Any]:
    steps = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=device == "cuda")
    loss = nn.CrossEntropyLoss()

    def step() -> None:
        with autocast(device):
            found = loss(model(images), labels)
        found.backward()
        steps.step()
        steps.zero_grad(set_to_none=True)

    return step


def inferred(model: nn.Module, images: Tensor, device: str) -> Callable[[], Any]:
    @torch.inference_mode()
    def step() -> None:
        with autocast(device):
            model(images)

    return step


def rates(calls: dict[str, Callable[[], Any]], batch: int, repeats: int) -> dict[str, float]:
    """Images a second of each; turns alternate, so that all meet the same neighbours."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(2 if batch < 64 else 5):
            call()
    for _ in range(repeats):
        for name, call in calls.items():
            times[name].append(once(call))
    return {name: round(batch / min(found), 2) for name, found in times.items()}


def agreed(models: dict[str, nn.Module], images: Tensor) -> dict[str, float]:
    """How far the logits of each are from the first's, relative to the largest."""
    with torch.inference_mode():
        logits = {name: model.eval()(images[:4]) for name, model in models.items()}
    first = next(iter(logits.values()))
    found = {
        name: ((each - first).abs().max() / first.abs().max()).item()
        for name, each in logits.items()
    }
    if max(found.values()) > (1e-2 if images.is_cuda else 1e-5):
        sys.exit(f"logits do not agree, nothing was timed: {found}")
    return found


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--model", default="swin_tiny_patch4_window7_224")
    options.add_argument("--peer", choices=["timm"])
    options.add_argument("--compile", action="store_true", help="torch.compile all of them")
    options.add_argument("--batch", type=int, help="default: 256 on CUDA, 8 on the CPU")
    options.add_argument("--repeats", type=int, default=5)
    asked = options.parse_args()
    device, batch = asked.device, asked.batch or BATCHES[asked.device]
    models = contestants(asked.model, device, asked.peer)
    size = create_model(asked.model).config.image_size
    images = named_image(size, batch=batch).to(device)
    labels = torch.arange(batch, device=device) % 1000
    apart = agreed(models, images)
    if asked.compile:
        for model in models.values():
            model.compile()
    for model in models.values():
        model.eval()
    fast = rates(
        {name: inferred(model, images, device) for name, model in models.items()},
        batch,
        asked.repeats,
    )
    for model in models.values():
        model.train()
    slow = rates(
        {name: trained(model, images, labels, device) for name, model in models.items()},
        batch,
        asked.repeats,
    )
    rows = [
        {
            "model": name,
            "logits apart": f"{apart[name]:.1e}",
            "inference img/s": fast[name],
            "training img/s": slow[name],
        }
        for name in models
    ]
    facts = {"device": device, "batch": batch, "compiled": asked.compile}
    report(f"swin-{device}", rows, model=asked.model, torch=torch.__version__, **facts)


if __name__ == "__main__":
    main()
