"""Decoding by one kernel, without a GPU: its threads take turns on the CPU."""

from pathlib import Path

import pytest
import torch

from hotgrid.chat._generate._fused._persistent import persistable, persistent_step
from hotgrid.nn import PagedCache

from .decode_on_cpu import StepOnCpu
from .tiny import random_gpt

SMALL = {"vocabulary": 61, "layers": 2, "size": 32, "heads": 2, "context": 64}
LLAMA_LIKE = {"activation": "swiglu", "norm": "rms", "cap": None, "tied": True}
LLAMA_LIKE |= {"heads": 4, "kv_heads": 2, "window": "SL", "short": 5, "embed_norm": False}
PAGE = 4


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("decode_on_cpu")


class Decoded:
    """A sequence that the kernel continues, with all that the host gives it."""

    def __init__(self, folder, model, seen: int, length: int, **options):
        config = model.config
        source = torch.Generator().manual_seed(1)
        self.model, self.seen = model, seen
        self.tokens = torch.randint(0, config.vocabulary, (1, length), generator=source)
        kind = model.embed.weight.dtype
        memory = model.memory(1, length)
        if seen:
            model.features(self.tokens[:, :seen], memory=memory)
        blocks = -(-length // PAGE)
        # The blocks are anywhere; the first belongs to nobody.
        self.table = 1 + torch.randperm(blocks, generator=source).view(1, blocks)
        place = self.table[0, torch.arange(length) // PAGE] * PAGE + torch.arange(length) % PAGE
        caches = []
        for each in memory.caches:
            cache = PagedCache(blocks + 1, config.groups, PAGE, config.head, dtype=kind)
            cache.keys[place] = each.keys[0].transpose(0, 1)
            cache.values[place] = each.values[0].transpose(0, 1)
            cache.keys[place[seen:]] = cache.values[place[seen:]] = torch.nan
            caches.append((cache.keys, cache.values))
        self.fed, self.position = self.tokens[0, seen : seen + 1].clone(), torch.tensor([seen])
        given = (model, caches, PAGE, self.fed, self.table, self.position)
        self.step = StepOnCpu(folder, *given, **options)
        self.step.embed()

    def run(self, count: int, heat: float = 0.0, forced=None, *, choice: int = 1):
        """The chosen tokens, and the numbers they were drawn with."""
        source = torch.Generator().manual_seed(2)
        self.uniforms = torch.rand(count, 1, dtype=torch.float64, generator=source)
        place, chosen = torch.tensor([0]), torch.full((count, 1), -7)
        given = torch.full((count, 1), -1) if forced is None else forced.view(count, 1)
        temperature = torch.tensor([heat], dtype=torch.float64)
        self.step.run(count, temperature, self.uniforms, given, place, chosen, choice=choice)
        assert place.item() == count
        return chosen[:, 0]


KINDS = {
    "plain": {},
    "llama-like": LLAMA_LIKE,
    "no norm of queries": {"qk_norm": False, "activation": "gelu", "heads": 1},
    "small heads": {"head_size": 8, "heads": 3, "kv_heads": 1, "size": 24, "hidden": 40},
    "many columns": {"hidden": 1056, "activation": "reglu"},
    "glu": {"activation": "glu", "layers": 1},
    "silu": {"activation": "silu", "size": 80, "head_size": 16, "norm": "rms"},
}


@torch.inference_mode()
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_logits_are_those_of_the_whole_sequence(folder: Path, kind: dict) -> None:
    model = random_gpt(2, **{**SMALL, **kind})
    run = Decoded(folder, model, 18, 21)
    wanted = model(run.tokens)
    for place in (18, 19, 20):
        run.fed.copy_(run.tokens[:, place])
        run.position.fill_(place)
        run.step.embed()
        run.step.feed()
        torch.testing.assert_close(run.step.logits, wanted[:, place], rtol=1e-5, atol=3e-5)


@torch.inference_mode()
@pytest.mark.parametrize("seed", range(3))
def test_forced_tokens_fill_the_cache(folder: Path, seed: int) -> None:
    model = random_gpt(2, **SMALL)
    run = Decoded(folder, model, 0, 24, seed=seed)
    wanted = model(run.tokens)
    chosen = run.run(23, forced=run.tokens[0, 1:])
    assert torch.equal(chosen, wanted[0, :23].argmax(1))
    torch.testing.assert_close(run.step.logits, wanted[:, 22], rtol=1e-5, atol=3e-5)
    assert run.position.item() == 23
    # The last token is the next one.
    run.step.feed()
    torch.testing.assert_close(run.step.logits, wanted[:, 23], rtol=1e-5, atol=3e-5)


@torch.inference_mode()
def test_many_tokens_have_many_parts(folder: Path) -> None:
    # Five blocks for a head; a warp reads 32 keys of 8 numbers at once, twice.
    numbers = {"heads": 1, "head_size": 8, "size": 32, "layers": 1, "context": 1200}
    model = random_gpt(2, **{**SMALL, **numbers})
    run = Decoded(folder, model, 1100, 1103, blocks=5, warps=1)
    wanted = model(run.tokens)
    chosen = run.run(2, forced=run.tokens[0, 1101:])
    assert torch.equal(chosen, wanted[0, 1100:1102].argmax(1))
    torch.testing.assert_close(run.step.logits, wanted[:, 1101], rtol=1e-5, atol=3e-5)


@torch.inference_mode()
@pytest.mark.parametrize("heat", [0.0, 0.7, 3.0])
def test_tokens_are_drawn_as_elsewhere(folder: Path, heat: float) -> None:
    model = random_gpt(2, **SMALL)
    run = Decoded(folder, model, 3, 16)
    chosen = run.run(12, heat, choice=2)
    tokens = torch.cat((run.tokens[0, :4], chosen))
    logits = model(tokens[None])[0, 3:15]
    assert torch.equal(chosen, drawn(logits, heat, run.uniforms[:, 0]))


def drawn(logits, heat: float, uniforms):
    if not heat:
        return logits.argmax(1)
    sums = torch.softmax(logits.double() / heat, 1).cumsum(1)
    return (sums <= uniforms[:, None] * sums[:, -1:]).sum(1)


@torch.inference_mode()
@pytest.mark.parametrize("choice", [1, 2])
def test_what_is_not_finite_is_told(folder: Path, choice: int) -> None:
    model = random_gpt(2, **SMALL)
    model.head.linear.weight[3] = torch.nan
    run = Decoded(folder, model, 1, 4)
    assert run.run(2, 0.5, choice=choice).tolist() == [-1, -1]


@torch.inference_mode()
@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_narrow_weights(folder: Path, kind: torch.dtype) -> None:
    model = random_gpt(2, **SMALL).to(kind)
    run = Decoded(folder, model, 0, 12)
    # The same numbers in float32; only keys and values are rounded once more.
    wanted = random_gpt(2, **SMALL).to(kind).float()(run.tokens)
    run.run(11, forced=run.tokens[0, 1:])
    torch.testing.assert_close(run.step.logits, wanted[:, 10], rtol=0.03, atol=0.03)


@pytest.mark.parametrize(
    ("numbers", "is_known"),
    [
        ({}, True),
        (LLAMA_LIKE, True),
        ({"size": 36, "head_size": 16}, False),
        ({"head_size": 24}, False),
        ({"hidden": 100}, False),
    ],
    ids=str,
)
def test_which_models_it_is_for(numbers: dict, is_known: bool) -> None:
    model = random_gpt(**{**SMALL, **numbers})
    config = model.config
    cache = torch.zeros(16, config.groups, config.head)
    caches = [(cache, cache)] * config.layers
    assert persistable(model, caches) is is_known
    none = torch.zeros(1, dtype=torch.int64)
    # There is no GPU here.
    assert persistent_step(model, caches, 16, none, none[None], none) is None


def test_other_caches_are_left_to_other_kernels() -> None:
    model = random_gpt(**SMALL)
    wide = torch.zeros(16, 2, 16, dtype=torch.float64)
    turned = torch.zeros(2, 16, 16).transpose(1, 2)
    for cache in (wide, turned, torch.zeros(16, 2, 17)[:, :, 1:]):
        assert not persistable(model, [(cache, cache)] * 2)
