"""The engine: every request gets what `generate` alone gives it, whatever else is going on."""

import threading
from dataclasses import replace
from typing import Any, ClassVar

import pytest
import torch
from hypothesis import given, settings, strategies as st

from hotgrid.chat import Engine, Piece, Sampling, UnavailableError, generate
from hotgrid.chat._generate._burst import Burst
from hotgrid.chat._generate._sampling import Settings, choose
from hotgrid.chat._model._gpt import Memory
from hotgrid.errors import ArgumentError, UnstableError
from hotgrid.nn import PagedCache, Pages

from .test_generate import KINDS
from .tiny import random_language

LANGUAGE = random_language()


def told(pieces: list[Piece]) -> tuple[str, list[int], str | None, list[Any]]:
    """Everything that the pieces say together."""
    return (
        "".join(piece.text for piece in pieces),
        [token for piece in pieces for token in piece.tokens],
        pieces[-1].finish,
        [
            (each.token, round(each.logprob, 9), [token for token, _ in each.top])
            for piece in pieces
            for each in piece.likelihoods
        ],
    )


samplings = st.builds(
    Sampling,
    temperature=st.sampled_from([0.0, 0.7, 3.0]),
    top_k=st.none() | st.just(20),
    top_p=st.none() | st.just(0.8),
    repetition=st.sampled_from([1.0, 1.4]),
    seed=st.integers(0, 9),
    max_tokens=st.integers(1, 25),
    stop=st.just(()) | st.just(("a", "\u00e9")),
    logprobs=st.none() | st.integers(0, 3),
)
arrivals = st.lists(
    st.tuples(
        st.integers(0, 12),
        st.lists(st.integers(0, 255), min_size=1, max_size=40),
        samplings,
        st.none() | st.integers(0, 20),
    ),
    min_size=1,
    max_size=7,
)


class PlainBatch:
    """What `FusedBatch` does, by the plain forward pass and `choose`."""

    def __init__(self, model, caches, page, batch, blocks, steps) -> None:
        self._model, self._page, self._blocks = model, page, blocks
        self._caches = [PagedCache(1, 1, page, 1) for _ in caches]
        for cache, (keys, values) in zip(self._caches, caches, strict=True):
            cache.keys, cache.values = keys, values

    def prepare(self) -> None:
        """Nothing is compiled."""

    @torch.inference_mode()
    def feed(self, rows, ahead: int = 0) -> torch.Tensor:
        """Feed a token of each row; what is beyond its end may be anything."""
        table = torch.zeros(len(rows), self._blocks, dtype=torch.int64)
        for line, row in zip(table, rows, strict=True):
            line[: len(row.blocks)] = torch.tensor(row.blocks[: self._blocks])
        last = self._model.config.context - 1
        position = torch.tensor([min(row.position + ahead, last) for row in rows])
        pages = Pages(table, position, torch.ones_like(position), 1, self._page)
        for cache in self._caches:
            cache.pages = pages
        tokens = torch.tensor([[row.tokens[ahead]] for row in rows])
        return self._model(tokens, memory=Memory(self._caches))[:, 0]

    def start(self, rows, temperatures, uniforms, before=None) -> "PlainBegun":
        rows = [
            replace(row, tokens=[before.last[row.follows]])
            if row.follows >= 0
            else replace(row, tokens=list(row.tokens))
            for row in rows
        ]
        ways = [Sampling(temperature=temperature) for temperature in temperatures]
        how = Settings.of(ways, self._model.config.vocabulary, torch.device("cpu"))
        found: list[list[int]] = [[] for _ in rows]
        for ahead, numbers in enumerate(uniforms):
            chosen = choose(self.feed(rows, ahead), how, torch.tensor(numbers)).tolist()
            for row, new, token in zip(rows, found, chosen, strict=True):
                new.append(token)
                if len(row.tokens) == ahead + 1:
                    row.tokens.append(max(0, token))
        return PlainBegun(found)


class PlainBegun:
    """What `Begun` is, for `PlainBatch`; nobody reads it twice."""

    def __init__(self, found: list[list[int]]) -> None:
        self._found, self.last = found, [max(0, row[-1]) for row in found]

    def near_end(self) -> None:
        """It has ended."""

    def chosen(self) -> list[list[int]]:
        found, self._found = self._found, []
        return found


@settings(max_examples=18)
@given(
    arrivals,
    st.integers(1, 4),
    st.sampled_from([64, 80, 200]),
    st.sampled_from([1, 3, 16]),
    st.sampled_from(["plain", "static", "bursts"]),
)
def test_requests_that_come_and_go_get_what_they_get_alone(
    coming, slots, cache, chunk, way
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if way == "bursts":
            patch.setattr("hotgrid.chat._generate._stepper.fusible", lambda model: True)
            patch.setattr("hotgrid.chat._generate._stepper.FusedBatch", PlainBatch)
            coming = [
                (at, prompt, plain(sampling), leaves) for at, prompt, sampling, leaves in coming
            ]
        come_and_go(coming, slots, cache, chunk, way != "plain")


def plain(sampling: Sampling) -> Sampling:
    """The same, but such that bursts are for it; some seeds stay as they are."""
    if sampling.seed and sampling.seed > 7:
        return sampling
    return replace(sampling, top_k=None, top_p=None, repetition=1.0, logprobs=None)


def come_and_go(coming, slots, cache, chunk, static) -> None:
    engine = Engine(LANGUAGE, slots=slots, cache=cache, chunk=chunk, static=static)
    requests, now = {}, 0
    while len(requests) < len(coming) or engine.load["running"] + engine.load["waiting"]:
        for place, (at, prompt, sampling, leaves) in enumerate(coming):
            if at == now:
                requests[place] = engine.submit(prompt, sampling)
            if leaves is not None and at + leaves == now:
                requests[place].cancel()
        engine.step()
        load = engine.load
        assert load["running"] <= slots
        assert load["used"] <= load["blocks"] <= -(-cache // 16)
        now += 1
        assert now < 2000
    assert engine.load["used"] == 0
    for place, (_, prompt, sampling, leaves) in enumerate(coming):
        found = told(list(requests[place]))
        alone = told(list(generate(LANGUAGE, prompt, sampling)))
        if leaves is not None and found[2] == "cancelled":
            assert alone[1][: len(found[1])] == found[1]
        else:
            assert found == alone


class Watched(PlainBatch):
    """A batch that writes down when a burst begins and when its tokens are read."""

    said: ClassVar[list[tuple[str, int]]] = []

    def start(self, rows, temperatures, uniforms, before=None) -> PlainBegun:
        self.said.append(("begin", len(rows)))
        begun = super().start(rows, temperatures, uniforms, before)
        read = begun.chosen

        def chosen() -> list[list[int]]:
            self.said.append(("read", len(rows)))
            return read()

        begun.chosen = chosen  # type: ignore[method-assign]
        return begun


@pytest.fixture
def bursts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Have engines decode in bursts; what they do, and for how many rows."""
    monkeypatch.setattr("hotgrid.chat._generate._stepper.fusible", lambda model: True)
    monkeypatch.setattr("hotgrid.chat._generate._stepper.FusedBatch", Watched)
    monkeypatch.setattr(Watched, "said", [])
    return Watched.said


def test_a_burst_begins_before_the_tokens_of_the_last_are_read(bursts) -> None:
    engine = Engine(LANGUAGE, slots=2, static=True)
    ways = [Sampling(temperature=1, seed=2, max_tokens=n) for n in (20, 12)]
    requests = [engine.submit([n + 1], way) for n, way in enumerate(ways)]
    while engine.step():
        pass
    # Eight steps while both slots are taken, then four. A reply that is going to end with a
    # burst is not in the next.
    begins, reads = ("begin", 2), ("read", 2)
    assert bursts == [begins, begins, reads, ("begin", 1), reads, ("read", 1)]
    assert engine.load["used"] == engine.load["running"] == 0
    for n, (request, way) in enumerate(zip(requests, ways, strict=True)):
        assert told(list(request)) == told(list(generate(LANGUAGE, [n + 1], way)))


def test_who_comes_before_the_last_steps_of_a_burst_joins_the_next(
    bursts, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(LANGUAGE, slots=2, static=True)
    way = Sampling(temperature=1, seed=2, max_tokens=20)
    engine.submit([9], way)
    engine.step()
    monkeypatch.setattr(PlainBegun, "near_end", lambda _: engine.submit([5], way))
    engine.step()
    assert bursts == [("begin", 1), ("begin", 2), ("read", 1)]


@pytest.mark.parametrize("ends", ["cancel", "stop"])
def test_a_reply_that_has_ended_gets_nothing_of_the_burst_under_way(ends, bursts) -> None:
    way = Sampling(temperature=1, seed=2, max_tokens=40)
    engine = Engine(LANGUAGE, slots=2, static=True)
    alone = told(list(generate(LANGUAGE, [9], way)))
    # A text within the first burst.
    stop = alone[0][2:4] if ends == "stop" else ""
    first = engine.submit([9], replace(way, stop=(stop,) if stop else ()))
    other = engine.submit([5], way)
    engine.step()
    engine.step()
    if ends == "cancel":
        first.cancel()
    engine.step()
    # The new one takes the blocks that the burst under way still writes to.
    third = engine.submit([7] * 3, way)
    found = told(list(first))
    assert alone[0].startswith(found[0])
    assert found[2] == ("cancelled" if ends == "cancel" else "stop")
    for request, prompt in ((other, [5]), (third, [7] * 3)):
        assert told(list(request)) == told(list(generate(LANGUAGE, prompt, way)))
    assert engine.load["used"] == 0


def test_logits_that_are_not_finite_fail_in_bursts_too(bursts) -> None:
    language = random_language()
    with torch.no_grad():
        language.model.head.linear.weight.fill_(float("nan"))
    engine = Engine(language, slots=2, static=True)
    requests = [engine.submit([n], Sampling(max_tokens=30)) for n in (1, 2)]
    for request in requests:
        with pytest.raises(UnstableError):
            list(request)
    assert engine.load["used"] == engine.load["running"] == 0


@pytest.mark.parametrize("whole", [False, True], ids=["pieces", "whole"])
def test_those_who_wait_for_several_requests_are_told_once_for_a_burst(whole, bursts) -> None:
    engine = Engine(LANGUAGE, slots=3, static=True)
    way = Sampling(temperature=1, seed=2, max_tokens=16)
    requests = [engine.submit([n], way) for n in (1, 2, 3)]
    calls: list[bool] = []

    def note() -> None:
        calls.append(True)

    for request in requests:
        request.notify(note, whole=whole)
    while engine.step():
        pass
    assert len(calls) == (1 if whole else 2)
    for n, request in enumerate(requests):
        pieces = list(request)
        assert len(pieces) == (1 if whole else 2)
        assert told(pieces) == told(list(generate(LANGUAGE, [n + 1], way)))


@pytest.fixture(params=["bursts", "compiled"])
def shapes(request, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Shapes that an engine has compiled or captured."""
    found: list[tuple[int, ...]] = []

    class Noted(PlainBatch):
        def __init__(self, model, caches, page, batch, blocks, steps) -> None:
            super().__init__(model, caches, page, batch, blocks, steps)
            found.append((batch, blocks))

    def compiled(function, **_):
        def call(tokens, table, *rest):
            if tuple(table.shape) not in found:
                found.append(tuple(table.shape))
            return function(tokens, table, *rest)

        return call

    where = "hotgrid.chat._generate._stepper"
    monkeypatch.setattr(f"{where}._SHORT", 16)
    if request.param == "bursts":
        monkeypatch.setattr(f"{where}.fusible", lambda model: True)
        monkeypatch.setattr(f"{where}.FusedBatch", Noted)
    else:
        monkeypatch.setattr(torch, "compile", compiled)
    return found


def test_an_engine_that_has_begun_meets_no_new_shape(shapes, request) -> None:
    is_compiled = "compiled" in request.node.name
    with Engine(LANGUAGE, slots=5, static=True, compiled=is_compiled) as engine:
        ready = list(shapes)
        for count in (1, 3, 5):
            ways = [Sampling(seed=n, max_tokens=engine.limit, top_k=n % 2 or None)
                    for n in range(count)]  # fmt: skip
            prompts = [[7] * (1 + n * 11) for n in range(count)]
            for each in [engine.submit(p, way) for p, way in zip(prompts, ways, strict=True)]:
                list(each)
    assert shapes == ready
    assert {count for count, _ in ready} == ({1, 8} if is_compiled else {1, 2, 4, 8})
    # PyTorch refuses to compile a function for more than 8 shapes.
    assert len({blocks for _, blocks in ready}) in (2, 3)


def test_a_problem_before_the_first_request_is_raised_by_start(monkeypatch) -> None:
    def fails(self) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr("hotgrid.chat._generate._stepper.Stepper.prepare", fails)
    engine = Engine(LANGUAGE)
    with pytest.raises(RuntimeError, match="out of memory"):
        engine.start()
    with pytest.raises(UnavailableError):
        engine.submit([1])
    engine.stop()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("static", [False, True], ids=["plain", "static"])
def test_every_kind_of_model(kind: str, static: bool) -> None:
    language = random_language(1, **KINDS[kind])
    engine = Engine(language, slots=3, cache=96, chunk=7, static=static)
    prompts = [[1], [2] * 9, list(range(20)), [250] * 30]
    ways = [Sampling(temperature=1, seed=seed, max_tokens=30) for seed in range(4)]
    requests = [engine.submit(p, way) for p, way in zip(prompts, ways, strict=True)]
    for request, prompt, way in zip(requests, prompts, ways, strict=True):
        assert told(list(request)) == told(list(generate(language, prompt, way)))


def test_a_full_cache_makes_the_youngest_wait_and_loses_nothing() -> None:
    engine = Engine(LANGUAGE, slots=4, cache=80)
    greedy = Sampling(temperature=0, max_tokens=45)
    requests = [engine.submit([n] * 14, greedy) for n in range(4)]
    most = 0
    while engine.step():
        most = max(most, engine.load["running"])
    assert most > 1
    for n, request in enumerate(requests):
        assert told(list(request)) == told(list(generate(LANGUAGE, [n] * 14, greedy)))


def test_threads_submit_and_read() -> None:
    found: dict[int, Any] = {}
    way = Sampling(temperature=1, seed=5, max_tokens=20)

    def ask(number: int) -> None:
        found[number] = told(list(engine.submit([number, 1, 2], way)))

    with Engine(LANGUAGE, slots=3) as engine:
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for number in range(10):
        assert found[number] == told(list(generate(LANGUAGE, [number, 1, 2], way)))


def test_stop_waits_for_replies_or_cancels_them() -> None:
    endless = random_language(seed=4, context=4096)
    way = Sampling(temperature=0, max_tokens=30)
    engine = Engine(LANGUAGE).start()
    request = engine.submit([1, 2], way)
    engine.stop(wait=60)
    assert told(list(request)) == told(list(generate(LANGUAGE, [1, 2], way)))
    with pytest.raises(UnavailableError, match="stopped"):
        engine.submit([1])
    engine = Engine(endless, slots=1).start()
    requests = [engine.submit([7], Sampling(temperature=0, max_tokens=4000)) for _ in range(3)]
    next(iter(requests[0]))
    engine.stop()
    assert {list(request)[-1].finish for request in requests} == {"cancelled"}
    assert engine.load["used"] == 0


def test_too_many_waiting_are_refused() -> None:
    engine = Engine(LANGUAGE, slots=1, queue=2)
    # One has a slot, though the engine has not let it in yet, and two wait.
    for _ in range(3):
        engine.submit([1])
    with pytest.raises(UnavailableError, match="3 requests wait"):
        engine.submit([1])


def test_an_error_of_the_model_reaches_those_under_way_and_nobody_else() -> None:
    language = random_language()
    engine = Engine(language, slots=2)
    first = engine.submit([1, 2, 3])
    saved = language.model.head.linear.weight.clone()
    with torch.no_grad():
        language.model.head.linear.weight.fill_(float("nan"))
    engine.step()
    with pytest.raises(UnstableError):
        list(first)
    with torch.no_grad():
        language.model.head.linear.weight.copy_(saved)
    way = Sampling(temperature=0, max_tokens=5)
    assert told(list(engine.submit([1], way))) == told(list(generate(language, [1], way)))
    broken = engine.submit([1, 2, 3])
    language.model.head.linear.weight = torch.nn.Parameter(saved[:, :5].clone())
    engine.step()
    with pytest.raises(Exception, match="5"):
        list(broken)
    assert engine.load["used"] == engine.load["running"] == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [({"slots": 0}, "slots"), ({"cache": 10}, "does not hold"), ({"chunk": -1}, "chunk")],
    ids=str,
)
def test_wrong_numbers(options: dict[str, int], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        Engine(LANGUAGE, **options)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.long
def test_decoding_can_be_compiled_without_a_break() -> None:
    stepper = Engine(LANGUAGE, static=True)._stepper
    traced = torch.compile(stepper.forward, backend="eager", fullgraph=True, dynamic=False)
    row = [torch.tensor(x) for x in ([[5]], [[1]], [0], [1], [-1])]
    with torch.inference_mode():
        torch.testing.assert_close(traced(*row), stepper.forward(*row))
        settings = Settings.of([Sampling()], 261, torch.device("cpu"))
        burst = Burst(LANGUAGE.model, 64, 4, settings, compiled=False)
        again = torch.compile(burst._forward, backend="eager", fullgraph=True)
        found = [again(torch.tensor([[token]])) for token in (5, 6)]
        whole = LANGUAGE.model(torch.tensor([[5, 6]]))
        torch.testing.assert_close(torch.stack(found, 1), whole)
