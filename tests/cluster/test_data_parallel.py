"""Training on two ranks ends where training on one does."""

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from hotgrid.cluster import SingleRank, data_parallel, fully_sharded, run_ranks
from hotgrid.errors import ArgumentError

from .forked_ranks import run_worker
from .training_worker import model, train, values

WORKER = Path(__file__).with_name("training_worker.py")


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory) -> list[dict]:
    """What two real processes found, over gloo on the loopback device."""
    place = tmp_path_factory.mktemp("meeting") / "store"
    return [json.loads(out) for out in run_worker(WORKER, place, "-W", "error")]


@pytest.fixture(scope="module")
def one_process() -> torch.Tensor:
    single = model()
    train(single, 0, 1)
    return torch.tensor(values(single), dtype=torch.float64)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["ddp", "ddp by axis", "fsdp", "fsdp by mesh"])
def test_two_processes_end_where_one_does(two_processes, one_process, kind):
    for found in two_processes:
        ended = torch.tensor(found[kind], dtype=torch.float64)
        torch.testing.assert_close(ended, one_process, rtol=0, atol=1e-12)
    assert two_processes[0][kind] == two_processes[1][kind]


@pytest.mark.long
def test_parameters_are_cut(two_processes):
    whole = sum(p.numel() for p in model().parameters())
    for kind in ("fsdp local", "fsdp by mesh local"):
        assert sum(found[kind] for found in two_processes) == whole
        assert max(found[kind] for found in two_processes) < whole


@pytest.mark.long
def test_what_else_two_processes_found(two_processes):
    assert [found["all_reduce"] for found in two_processes] == [4.0, 8.0]
    assert {found["computes in"] for found in two_processes} == {"torch.bfloat16"}
    assert two_processes[0]["seed"] != two_processes[1]["seed"]
    assert 'such as `mesh["data"]`' in two_processes[0]["two axes"]


def test_gradients_are_averages_over_ranks():
    def rank(c):
        layer = nn.Linear(1, 1, bias=False)
        wrapped = data_parallel(layer, c)
        wrapped(torch.tensor([[1.0 + c.rank]])).sum().backward()
        return layer.weight.grad.item()

    assert run_ranks(3, rank) == [2.0] * 3


def test_a_single_rank_is_not_changed():
    layer = nn.Linear(2, 2)
    assert data_parallel(layer, SingleRank()) is layer
    assert fully_sharded(layer, SingleRank(), layers=nn.Linear) is layer
    assert isinstance(layer.weight, nn.Parameter)


def test_a_layer_that_is_not_there_is_reported():
    with pytest.raises(ArgumentError, match=r"no layer of .*Conv2d.*; it has Linear"):
        run_ranks(1, lambda c: fully_sharded(model(), c, layers=nn.Conv2d))
