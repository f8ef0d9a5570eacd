"""GPT against a slow twin, against itself with a cache, and against transformers."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from hotgrid.chat import GPT, GPTConfig, load_llama, save_llama
from hotgrid.errors import ArgumentError, DamagedError

from .gpt_twin import twin_logits

with pytest.MonkeyPatch.context() as _patch:
    # Llama needs no pictures, and a torchvision made for another torch fails to load.
    _patch.setitem(sys.modules, "torchvision", None)
    from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

Make = Callable[..., GPT]
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "gqa": {"kv_heads": 2},
    "window": {"window": "SL", "short": 3},
    "values": {"value_embeddings": True},
    "mixing": {"mixing": True},
    "no-cap": {"cap": None, "qk_norm": False, "embed_norm": False},
    "tied": {"tied": True, "head_size": 8},
    "all": {
        "kv_heads": 1,
        "window": "SSL",
        "short": 2,
        "value_embeddings": True,
        "mixing": True,
    },
    "llama": {"llama": True, "kv_heads": 2, "hidden": 96},
}


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_logits_are_those_of_the_twin(small_gpt: Make, options: dict[str, Any]) -> None:
    model = small_gpt(**options)
    tokens = torch.randint(0, 64, (2, 9), generator=torch.Generator().manual_seed(1))
    found = model(tokens)
    for row, each in zip(found, tokens.tolist(), strict=True):
        expected = twin_logits(model.state_dict(), model.config, each)
        torch.testing.assert_close(row.double(), expected, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("options", [CASES["plain"], CASES["all"]], ids=["plain", "all"])
def test_documents_do_not_see_each_other(small_gpt: Make, options: dict[str, Any]) -> None:
    model = small_gpt(**options)
    tokens = torch.randint(0, 64, (1, 8), generator=torch.Generator().manual_seed(2))
    documents = torch.tensor([[0, 0, 0, 1, 1, 2, 2, 2]])
    found = model(tokens, documents=documents)[0]
    expected = twin_logits(
        model.state_dict(), model.config, tokens[0].tolist(), documents[0].tolist()
    )
    torch.testing.assert_close(found.double(), expected, rtol=2e-4, atol=2e-4)
    changed = tokens.clone()
    changed[0, :3] = (tokens[0, :3] + 7) % 64
    again = model(changed, documents=documents)[0]
    torch.testing.assert_close(again[3:], found[3:])
    assert not torch.allclose(again[:3], found[:3])


@pytest.mark.parametrize("parts", [(1,) * 10, (4, 6), (3, 1, 1, 5)])
@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_parts_with_a_memory_are_the_whole(
    small_gpt: Make, options: dict[str, Any], parts: tuple[int, ...]
) -> None:
    model = small_gpt(**options)
    tokens = torch.randint(0, 64, (2, 10), generator=torch.Generator().manual_seed(3))
    memory = model.memory(2, 10)
    found = torch.cat([model(each, memory=memory) for each in tokens.split(parts, 1)], 1)
    assert memory.position == 10
    torch.testing.assert_close(found, model(tokens), rtol=1e-4, atol=1e-4)


def test_a_token_sees_nothing_after_it(small_gpt: Make) -> None:
    model = small_gpt(**CASES["all"])
    tokens = torch.randint(0, 64, (1, 10), generator=torch.Generator().manual_seed(4))
    changed = tokens.clone()
    changed[0, 6:] = (changed[0, 6:] + 1) % 64
    torch.testing.assert_close(model(changed)[:, :6], model(tokens)[:, :6])


def test_a_window_forgets(small_gpt: Make) -> None:
    # One layer sees 3 tokens, the last all: cut it to see the effect of the first alone.
    model = small_gpt(layers=2, window="S", short=3)
    model.blocks()[1].attn.out.weight.data.zero_()
    tokens = torch.randint(0, 64, (1, 10), generator=torch.Generator().manual_seed(5))
    changed = tokens.clone()
    changed[0, 0] = (changed[0, 0] + 1) % 64
    found, again = model(tokens), model(changed)
    assert not torch.allclose(found[:, 2], again[:, 2])
    torch.testing.assert_close(found[:, 3:], again[:, 3:])


@pytest.mark.parametrize("tied", [False, True])
def test_a_new_model_is_undecided(tied: bool) -> None:
    torch.manual_seed(0)
    model = GPT(GPTConfig(vocabulary=64, layers=2, size=64, heads=2, context=16, tied=tied))
    tokens = torch.randint(0, 64, (4, 16))
    loss = model.loss(tokens, tokens.roll(-1, 1)).item()
    assert loss == pytest.approx(4.1589, abs=0.1)


def test_targets_that_do_not_count(small_gpt: Make) -> None:
    model = small_gpt()
    tokens = torch.randint(0, 64, (1, 6), generator=torch.Generator().manual_seed(6))
    targets = tokens.roll(-1, 1)
    targets[0, :4] = -100
    rows = model(tokens)[0, 4:].log_softmax(-1)
    expected = -(rows[0, targets[0, 4]] + rows[1, targets[0, 5]]) / 2
    torch.testing.assert_close(model.loss(tokens, targets), expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 65}, "multiple of 4 heads"),
        ({"kv_heads": 3}, "choose a divisor"),
        ({"window": "SX"}, "'SX' must be letters"),
        ({"layers": 0}, "`layers` must be at least 1, got 0"),
    ],
)
def test_shapes_that_do_not_fit(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        GPTConfig(**({"heads": 4, "size": 64} | options))


def test_configurations_from_elsewhere() -> None:
    with pytest.raises(ArgumentError, match="did you mean `layers`"):
        GPTConfig.from_json('{"layer": 3}')
    with pytest.raises(ArgumentError, match="not JSON"):
        GPTConfig.from_json("{")
    with pytest.raises(ArgumentError, match="JSON object"):
        GPTConfig.from_json("[1]")


@pytest.mark.parametrize("options", [{}, {"kv_heads": 2}, {"tied": True, "head_size": 8}])
def test_transformers_reads_ours(
    small_gpt: Make, tmp_path: Path, options: dict[str, Any]
) -> None:
    model = small_gpt(llama=True, hidden=96, **options)
    save_llama(model, tmp_path / "llama")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "llama").eval()
    tokens = torch.randint(0, 64, (2, 20), generator=torch.Generator().manual_seed(7))
    with torch.no_grad():
        torch.testing.assert_close(theirs(tokens).logits, model(tokens), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kv_heads", [4, 1])
@pytest.mark.parametrize("tied", [False, True])
def test_we_read_transformers(tmp_path: Path, kv_heads: int, tied: bool) -> None:
    torch.manual_seed(8)
    theirs = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=64,
            hidden_size=64,
            intermediate_size=96,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=kv_heads,
            max_position_embeddings=32,
            tie_word_embeddings=tied,
        )
    ).eval()
    theirs.save_pretrained(tmp_path)
    tokens = torch.randint(0, 64, (2, 20))
    with torch.no_grad():
        found = load_llama(tmp_path)(tokens)
        torch.testing.assert_close(found, theirs(tokens).logits, rtol=0, atol=1e-5)


def test_what_a_llama_has_not(small_gpt: Make, tmp_path: Path) -> None:
    with pytest.raises(
        ArgumentError, match=r"no place for activation='relu2'.*GPTConfig.llama"
    ):
        save_llama(small_gpt(), tmp_path)
    with pytest.raises(ArgumentError, match="window='S'"):
        save_llama(small_gpt(llama=True, window="S"), tmp_path)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"hidden_act": "gelu"}, "`hidden_act` 'gelu' is not supported"),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "the type 'linear' are not"),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "the type 'llama3' are not"),
    ],
)
def test_llamas_that_compute_something_else(
    small_gpt: Make, tmp_path: Path, part: dict[str, object], message: str
) -> None:
    save_llama(small_gpt(llama=True), tmp_path)
    config = tmp_path / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | part))
    with pytest.raises(ArgumentError, match=message):
        load_llama(tmp_path)


def test_llamas_that_are_damaged(small_gpt: Make, tmp_path: Path) -> None:
    save_llama(small_gpt(llama=True), tmp_path)
    config = tmp_path / "config.json"
    good = config.read_text()
    config.write_text(good.replace('"num_hidden_layers": 3', '"num_hidden_layers": 4'))
    with pytest.raises(DamagedError, match=r"no weight `model.layers.3"):
        load_llama(tmp_path)
    config.write_text(good.replace('"num_hidden_layers": 3', '"num_hidden_layers": 2'))
    with pytest.raises(ArgumentError, match=r"a GPT does not have: model.layers.2"):
        load_llama(tmp_path)
    config.write_text(good.replace('"llama"', '"gemma"'))
    with pytest.raises(ArgumentError, match="'gemma' is not a Llama"):
        load_llama(tmp_path)
    config.write_text("{}")
    with pytest.raises(ArgumentError, match="None is not a Llama"):
        load_llama(tmp_path)
    config.write_text(good)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(DamagedError, match="not a safetensors file"):
        load_llama(tmp_path)
    weights.unlink()
    with pytest.raises(DamagedError, match=r"no \.safetensors file"):
        load_llama(tmp_path)
