"""`hotgrid vision train`: from images to a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from hotgrid.cli._terminal import Terminal
from hotgrid.errors import ArgumentError

_Set = Annotated[tuple[str, ...], Parameter(metavar="KEY=VALUE")]


def train(
    *,
    data: Path,
    model: str,
    recipe: str | None = None,
    epochs: float | None = None,
    batch: int | None = None,
    size: int | None = None,
    pretrained: Path | None = None,
    valid: Path | None = None,
    out: Path = Path("out/vision"),
    resume: bool = False,
    device: str | None = None,
    precision: Literal["float32", "bfloat16"] = "float32",
    compile: bool = False,
    sharding: Literal["copies", "cut"] = "copies",
    accumulate: int = 1,
    workers: int | None = None,
    evaluate_every: float | None = None,
    save_every: int | None = None,
    seed: int = 0,
    set: _Set = (),
) -> None:
    """Train a model on images.

    Args:
        data: A folder of images, or the JSON file of a plan.
        model: A name from `hotgrid vision models`.
        recipe: A name or a file; by default the one that suits the model and the images.
        epochs: Passes over the images; by default those of the recipe.
        batch: Images in a step, of all ranks together; by default that of the recipe.
        size: Height and width of images; by default that of small images, or the model's.
        pretrained: A file of weights to begin with.
        valid: A folder of class folders, or a plan, to evaluate on instead.
        out: Folder of the run; by default out/vision.
        resume: Continue the run in the folder.
        device: cpu, cuda or cuda:N; by default a GPU.
        precision: The type of arithmetic; by default float32.
        compile: Compile model and augmentation; the first step takes longer.
        sharding: Copies of the model on every rank, or cut over them; by default copies.
        accumulate: Micro-batches of a step, for less memory; by default 1.
        workers: Threads that decode large images; by default one for every core.
        evaluate_every: Evaluate every N epochs; by default ten times in all.
        save_every: Save every N steps; by default once an epoch.
        seed: Seed for weights, data order and augmentation; by default 0.
        set: A value of the recipe, such as rate=1e-3, or of the model, such as
            model.dropout=0.1; repeatable.
    """
    from hotgrid.cluster import world
    from hotgrid.vision import VisionRun, find_recipe, open_images, train_images
    from hotgrid.vision._training._recipe import scaled_warmup
    from hotgrid.vision._training._recipes import usual_recipe

    images = open_images(data, valid)
    name = recipe or usual_recipe(model, images.small)
    changes, shape = _changes(set)
    changes |= {} if epochs is None else {"epochs": str(float(epochs))}
    changes |= {} if batch is None else {"batch": str(batch)}
    chosen = find_recipe(name).with_texts(changes)
    chosen = chosen if "warmup" in changes else scaled_warmup(chosen)
    run = VisionRun(
        folder=out,
        resume=resume,
        device=device,
        precision=precision,
        compiled=compile,
        sharding=sharding,
        accumulate=accumulate,
        workers=workers,
        evaluate_every=evaluate_every,
        save_every=save_every,
        seed=seed,
    )
    first = world(run.where()).rank == 0
    console = Terminal(highlight=False)
    if first:
        console.print(
            f"{images.name}: {len(images.classes)} classes; {model}, recipe {name}, "
            f"{chosen.epochs:g} epochs of batches of {chosen.batch}",
            soft_wrap=True,
            markup=False,
        )
    made = train_images(
        images, model, chosen, run, size=size, pretrained=pretrained, shape=shape
    )
    if not first:
        return
    if made.score is None:
        console.out("stopped; --resume continues", highlight=False)
        return
    right = f"{made.score.accuracy:.2%} of {made.score.count:,} held-out images right"
    console.out(f"{right}, loss {made.score.loss:.4f}", highlight=False)
    console.print(f"model: {out / 'model'}", soft_wrap=True, markup=False)
    console.print(f"report: {out / 'report.html'}", soft_wrap=True, markup=False)


def _changes(given: tuple[str, ...]) -> tuple[dict[str, str], dict[str, Any]]:
    """The given settings of the recipe, as text, and of the model."""
    from hotgrid.vision._training._recipe import read_text

    recipe: dict[str, str] = {}
    shape: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ArgumentError(f"`--set {text}` must be KEY=VALUE, such as rate=1e-3")
        if name.startswith("model."):
            shape[name.removeprefix("model.")] = read_text(value)
        else:
            recipe[name] = value
    return recipe, shape
