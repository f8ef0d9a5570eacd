"""Choosing tokens: against a twin of plain Python, and against transformers."""

import math
from collections import Counter

import pytest
import torch
from hypothesis import given, strategies as st
from transformers.generation.logits_process import (
    LogitsProcessorList,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from hotgrid.chat import Sampling
from hotgrid.chat._generate._sampling import Settings, choose, likelihoods, seed_of, uniform
from hotgrid.errors import ArgumentError

CPU = torch.device("cpu")


def shares(logits: list[float], sampling: Sampling, seen: set[int]) -> list[float]:
    """The probabilities of tokens, one at a time."""
    x = []
    for token, logit in enumerate(logits):
        penalty = sampling.repetition if token in seen else 1.0
        weaker = logit / penalty if logit > 0 else logit * penalty
        x.append(weaker / sampling.temperature)
    order = sorted(range(len(x)), key=lambda token: -x[token])
    least = x[order[(sampling.top_k or len(x)) - 1 if (sampling.top_k or 0) < len(x) else -1]]
    top = max(x)
    weights = [math.exp(each - top) if each >= least else 0.0 for each in x]
    total, sums = math.fsum(weights), 0.0
    kept = -math.inf
    for token in order:
        if sums < (sampling.top_p or 1.0) and weights[token]:
            kept = x[token]
        sums += weights[token] / total
    weights = [w if each >= kept else 0.0 for w, each in zip(weights, x, strict=True)]
    return [w / math.fsum(weights) for w in weights]


def drawn(shares: list[float], number: float) -> int:
    """The token whose part of [0, 1) holds a number."""
    for token, share in enumerate(shares):
        if number < share:
            return token
        number -= share
    raise AssertionError("a number below 1 is in some part")


samplings = st.builds(
    Sampling,
    temperature=st.sampled_from([0.5, 0.8, 1.7]),
    top_k=st.none() | st.integers(1, 9),
    top_p=st.none() | st.sampled_from([0.1, 0.45, 0.9]),
    repetition=st.sampled_from([1.0, 1.3, 0.7]),
)
rows = st.lists(st.integers(-4000, 4000), min_size=7, max_size=7, unique=True)


@given(st.lists(st.tuples(rows, samplings, st.sets(st.integers(0, 6))), min_size=1, max_size=3))
def test_choice_is_that_of_the_twin(given_rows) -> None:
    logits = torch.tensor([row for row, _, _ in given_rows], dtype=torch.float64) / 1000
    settings = Settings.of([s for _, s, _ in given_rows], 7, CPU)
    seen = torch.tensor([[token in had for token in range(7)] for _, _, had in given_rows])
    for number in (0.003, 0.31, 0.62, 0.87, 0.997):
        found = choose(logits, settings, torch.full((len(logits),), number), seen)
        for row, (_, sampling, had) in enumerate(given_rows):
            expected = shares(logits[row].tolist(), sampling, had)
            number_32 = torch.tensor(number).item()
            assert found[row].item() == drawn(expected, number_32)


@pytest.mark.parametrize("top_k", [1, 5, 50])
@pytest.mark.parametrize("top_p", [0.3, 0.9, 1.0])
def test_probabilities_are_those_of_transformers(top_k: int, top_p: float) -> None:
    torch.manual_seed(top_k)
    logits, had = 3 * torch.randn(50, dtype=torch.float64), [3, 14, 15, 9]
    peer = LogitsProcessorList(
        [
            RepetitionPenaltyLogitsProcessor(1.3),
            TemperatureLogitsWarper(0.7),
            TopKLogitsWarper(top_k),
            TopPLogitsWarper(top_p),
        ]
    )
    theirs = peer(torch.tensor([had]), logits[None].clone()).softmax(-1)[0]
    sampling = Sampling(temperature=0.7, top_k=top_k, top_p=top_p, repetition=1.3)
    ours = torch.tensor(shares(logits.tolist(), sampling, set(had)), dtype=torch.float64)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


def test_temperature_0_takes_the_likeliest_whatever_the_number() -> None:
    logits = torch.tensor([[1.0, 3.0, 2.0], [9.0, 3.0, 2.0]])
    settings = Settings.of([Sampling(temperature=0), Sampling(temperature=9)], 3, CPU)
    found = [choose(logits, settings, torch.tensor([u, u])).tolist() for u in (0.0, 0.6, 0.99)]
    assert [row[0] for row in found] == [1, 1, 1]
    assert [row[1] for row in found] == [0, 1, 2]


def test_logits_that_are_not_finite_choose_nothing() -> None:
    settings = Settings.of([Sampling(), Sampling(temperature=0), Sampling()], 2, CPU)
    logits = torch.tensor([[math.nan, 0.0], [math.inf, 0.0], [0.0, 1.0]])
    assert choose(logits, settings, torch.zeros(3)).tolist() == [-1, -1, 0]


def test_numbers_are_those_of_splitmix64_and_even() -> None:
    # The published first outputs for the seed 1234567.
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [uniform(1234567, i) for i in range(3)] == [(x >> 11) * 2.0**-53 for x in published]
    # Of many seeds, too: 16 parts, 8000 numbers, chi-square below its 1 - 1e-6 quantile.
    for numbers in ([uniform(7, i) for i in range(8000)], [uniform(s, 0) for s in range(8000)]):
        counts = Counter(int(16 * number) for number in numbers)
        assert sum((counts[part] - 500) ** 2 / 500 for part in range(16)) < 57.1
    assert len({seed_of(5, choice) for choice in range(100)}) == 100
    assert seed_of(5, 0) == 5


def test_likelihoods_are_log_probabilities_of_the_model() -> None:
    logits = torch.tensor([[0.0, 1.0, 2.0], [5.0, 1.0, 0.0]])
    samplings = [Sampling(logprobs=2, temperature=0), Sampling()]
    first, second = likelihoods(logits, torch.tensor([0, 1]), samplings)
    norm = math.log(1 + math.e + math.e**2)
    assert second is None
    assert first is not None
    assert first.token == 0
    assert first.logprob == pytest.approx(-norm)
    assert [token for token, _ in first.top] == [2, 1]
    assert [log for _, log in first.top] == pytest.approx([2 - norm, 1 - norm])


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -1},
        {"temperature": math.nan},
        {"top_k": 0},
        {"top_p": 0.0},
        {"repetition": 0.0},
        {"max_tokens": 0},
        {"stop": ("",)},
        {"logprobs": 21},
    ],
    ids=str,
)
def test_numbers_out_of_range_are_named(wrong) -> None:
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        Sampling(**wrong)


@pytest.mark.parametrize("temperature", [1e-6, 1e-308, 5e-324])
def test_tiny_temperatures_are_greedy(temperature: float) -> None:
    logits = torch.tensor([[1.0, 9.0, 8.5, -3.0]])
    settings = Settings.of([Sampling(temperature=temperature)], 4, torch.device("cpu"))
    assert choose(logits, settings, torch.tensor([0.9], dtype=torch.float64)).tolist() == [1]
