"""The same plan on Ray Data: the same bits."""

import importlib
import shutil
import tempfile
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from hotgrid.data import ClassFolders, DecodeRandomCrop, Order, Plan, PlanBatches, ray_dataset
from hotgrid.data._executor._ray_data import made_batches


@pytest.fixture(scope="module")
def plan(tmp_path_factory) -> Plan:
    place = tmp_path_factory.mktemp("photos")
    draws = np.random.default_rng(0)
    for n in range(23):
        file = place / f"class-{n % 3}" / f"{n:03}.jpg"
        file.parent.mkdir(exist_ok=True)
        Image.fromarray(draws.integers(0, 256, (30, 40, 3), dtype=np.uint8)).save(file)
    file.write_bytes(b"damaged")
    made = Plan(ClassFolders(str(place)), order=Order(seed=3))
    made = made.then(DecodeRandomCrop(16, 12), "data", "pixels")
    return made.yielding("pixels", "path", "label")


def epoch_of(plan: Plan, epoch: int) -> dict:
    with PlanBatches(plan, 5, last="short", workers=2) as batches:
        numbers = range(epoch * len(batches), (epoch + 1) * len(batches))
        found = [batches.batch(n) for n in numbers]
    tensors = {n: torch.cat([b[n] for b in found]).numpy() for n in ("pixels", "label")}
    return tensors | {"path": [path for batch in found for path in batch["path"]]}


def test_a_task_makes_the_batches_of_the_loader(plan):
    found = made_batches(plan.to_json(), 5, [5, 6, 7, 8, 9])
    expected = epoch_of(plan, 1)
    assert all(np.array_equal(found[name], expected[name]) for name in expected)
    assert found["batch"].tolist() == [5] * 5 + [6] * 5 + [7] * 5 + [8] * 5 + [9] * 3


# Ray warns of its own settings.
@pytest.mark.filterwarnings("default")
@pytest.mark.long
def test_ray_data_gives_the_same_bits(plan, monkeypatch):
    # Nothing is written to the home folder; sockets want a short path.
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    place = tempfile.mkdtemp(prefix="ray")
    ray: Any = importlib.import_module("ray")
    importlib.import_module("ray.data")
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=100_000_000,
        _temp_dir=place,
    )
    try:
        ray.data.DataContext.get_current().execution_options.preserve_order = True
        rows = ray_dataset(plan, 5, epoch=1).take_all()
    finally:
        ray.shutdown()
        shutil.rmtree(place, ignore_errors=True)
    expected = epoch_of(plan, 1)
    assert np.array_equal(np.stack([row["pixels"] for row in rows]), expected["pixels"])
    assert [row["label"] for row in rows] == expected["label"].tolist()
    assert [row["path"] for row in rows] == expected["path"]
    assert [int(row["batch"]) for row in rows[-3:]] == [9, 9, 9]
