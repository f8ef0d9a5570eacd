"""Every candidate of every op agrees with the reference of its op, wherever it applies."""

from functools import cache
from typing import Any

import pytest
import torch

from hotgrid.kernels import OPS
from hotgrid.kernels.tune import Candidate, Op
from hotgrid.kernels.tune._op import fitting
from hotgrid.kernels.tune._trials._inputs import _span, in_turn

from .conformance_cases import CASES

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
ENTRANTS = [(each.op, candidate) for each in OPS.values() for candidate in each.op.candidates]


def named(value: Any) -> str | None:
    return value.name if isinstance(value, Op | Candidate) else None


@cache
def answered(name: str, device: str) -> list[tuple[tuple[Any, ...], Any]]:
    """The cases of an op, each with what its reference returns."""
    move = lambda x: x.to(device) if isinstance(x, torch.Tensor) else x
    on_device = [tuple(map(move, case)) for case in CASES[name]]
    return [(each, OPS[name].op.reference(*each)) for each in on_device]


def cases(op: Op, candidate: Candidate, device: str) -> list[tuple[tuple[Any, ...], Any]]:
    """Those that a candidate applies to."""
    every = answered(op.name, device)
    return [each for each in every if fitting([candidate], op.describe(*each[0]))]


def shown(arguments: tuple[Any, ...]) -> str:
    return ", ".join(
        f"{x.dtype} {tuple(x.shape)} {x.stride()}" if isinstance(x, torch.Tensor) else repr(x)
        for x in arguments
    )


def bits(x: torch.Tensor) -> torch.Tensor:
    return x.clone(memory_format=torch.contiguous_format).flatten().view(torch.uint8)


def test_every_op_has_cases():
    assert CASES.keys() == OPS.keys()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("op", "candidate"), ENTRANTS, ids=named)
def test_it_agrees_with_the_reference(op: Op, candidate: Candidate, device: str):
    wrong = []
    for arguments, expected in cases(op, candidate, device):
        before = [bits(x) for x in arguments if isinstance(x, torch.Tensor)]
        for function in filter(None, (candidate.function, candidate.checked)):
            difference = op.compare(expected, function(*arguments), *arguments)
            if difference:
                wrong.append(f"{shown(arguments)}: {difference}")
        after = [bits(x) for x in arguments if isinstance(x, torch.Tensor)]
        assert all(map(torch.equal, before, after)), f"{shown(arguments)} was changed"
    assert not wrong, "\n".join(wrong[:10])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("op", "candidate"), [pair for pair in ENTRANTS if pair[1].ready], ids=named
)
def test_its_ready_function_agrees_with_the_reference(
    op: Op, candidate: Candidate, device: str
):
    assert candidate.ready is not None
    wrong = []
    for arguments, expected in cases(op, candidate, device):
        candidate.function(*arguments)
        ready = candidate.ready(*arguments)
        if ready is not None:
            found = ready(*arguments)
            difference = op.compare(expected, found, *arguments)
            wrong += [f"{shown(arguments)}: {difference}"] if difference else []
    assert not wrong, "\n".join(wrong[:10])


@pytest.mark.parametrize("tuned", OPS.values(), ids=OPS)
def test_sets_that_take_turns_in_a_trial_are_the_same_call(tuned: Any):
    op = tuned.op
    for case, expected in answered(op.name, "cpu"):
        tensors = {id(x): x for x in case if isinstance(x, torch.Tensor) and x.numel()}
        # As much as all of them lie over, so that there are three sets.
        held = sum(_span(x) * x.element_size() for x in tensors.values())
        sets = in_turn(case, held)
        assert len(sets) == (3 if held else 1), shown(case)
        for turn in sets[1:2]:
            assert op.describe(*turn) == op.describe(*case), shown(case)
            difference = op.compare(expected, op.reference(*turn), *case)
            assert not difference, f"{shown(case)}: {difference}"


@pytest.mark.parametrize("tuned", OPS.values(), ids=OPS)
def test_names_are_unique(tuned: Any):
    assert len(set(tuned.op.names)) == len(tuned.op.candidates)


@pytest.mark.parametrize("tuned", OPS.values(), ids=OPS)
def test_some_candidate_applies_to_every_call(tuned: Any):
    for case in CASES[tuned.op.name]:
        assert fitting(tuned.op.candidates, tuned.op.describe(*case)), shown(case)


@pytest.mark.parametrize(("op", "candidate"), ENTRANTS, ids=named)
def test_it_takes_part_in_the_cases_of_its_device(op: Op, candidate: Candidate):
    """A candidate that applies to no case would pass the test above unseen."""
    elsewhere = candidate.group.name == "triton" and "cuda" not in DEVICES
    taken = [len(cases(op, candidate, device)) for device in DEVICES]
    assert elsewhere or max(taken) >= 10
