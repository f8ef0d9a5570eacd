"""The byte-latent transformer: against transformers, and what it must not see."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from hotgrid.blt import (
    LATENT_SIZES,
    EntropyThreshold,
    LatentConfig,
    LatentTransformer,
    Space,
    Static,
    documents_of,
    load_entropy_model,
    load_latent_model,
    patched,
)
from hotgrid.blt._latent._files import our_name
from hotgrid.blt._latent._model import padded_lengths
from hotgrid.errors import ArgumentError, DamagedError

from .peer import BltConfig, BltForCausalLM

TEXT = b"The quick brown fox jumps over the lazy dog, and the dog sleeps on."


def config(latent: int, **more) -> BltConfig:
    local = {
        "hidden_size": 32,
        "num_attention_heads": 2,
        "intermediate_size": 48,
        "max_position_embeddings": 256,
        "cross_attn_k": 2,
        "hidden_size_global": latent,
    }
    return BltConfig(
        encoder_config=local | {"num_hidden_layers": 1},
        decoder_config=local | {"num_hidden_layers": 3},
        global_config={
            "hidden_size": latent,
            "num_attention_heads": 2,
            "num_hidden_layers": 2,
            "intermediate_size": 64,
            "max_position_embeddings": 256,
        },
        patcher_config={
            "hidden_size": 64,
            "num_attention_heads": 1,
            "num_hidden_layers": 2,
            "intermediate_size": 32,
            "max_position_embeddings": 256,
        },
        cross_attn_k=2,
        encoder_hash_byte_group_vocab=97,
        encoder_hash_byte_group_nb_functions=2,
        local_attention_window_len=8,
        **more,
    )


def peer(latent: int, folder: Path) -> BltForCausalLM:
    torch.manual_seed(3)
    made = BltForCausalLM(config(latent)).eval()
    for parameter in made.parameters():
        parameter.data += 0.02 * torch.randn_like(parameter)
    tensors = {name: each.contiguous() for name, each in made.state_dict().items()}
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(made.config.to_dict()))
    return made


@pytest.mark.parametrize("latent", [64, 96])
def test_it_computes_what_transformers_does(latent: int, tmp_path: Path):
    theirs = peer(latent, tmp_path)
    ours = load_latent_model(tmp_path)
    assert (ours.latent.project is None) == (latent == 64)
    ids, lengths = patched([TEXT, TEXT[::-1]], Static(3))
    for chosen in (lengths, _with_next(lengths)):
        with torch.no_grad():
            states = theirs.model(ids, patch_lengths=chosen, use_cache=False)
            wanted = theirs.lm_head(states.last_hidden_state)
            found = ours(ids, chosen)
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)


def _with_next(lengths: torch.Tensor) -> torch.Tensor:
    longer = lengths.clone()
    longer[:, -1] += 1
    return longer


def test_its_own_patches_are_those_of_transformers(tmp_path: Path):
    theirs = peer(64, tmp_path)
    entropies = load_entropy_model(tmp_path)
    ids, _ = patched([TEXT], Static(4))
    with torch.no_grad():
        assert theirs.model.patcher is not None
        threshold = theirs.model.patcher(ids)[0][0].sort().values[30:32].mean().item()
        theirs.config.patching_threshold = threshold
        wanted = theirs(ids, use_cache=False).logits
    ids, lengths = patched([TEXT], EntropyThreshold(entropies, threshold))
    ours = load_latent_model(tmp_path)
    with torch.no_grad():
        found = ours(ids, lengths)
        # Theirs lets the last byte read the last patch if the next one begins another.
        last = ours(ids, torch.cat([lengths, torch.ones(1, 1, dtype=torch.int64)], 1))[:, -1]
    torch.testing.assert_close(found[:, :-1], wanted[:, :-1], atol=1e-5, rtol=1e-5)
    begins = entropies.signals([TEXT])[0].uncertainty[-1] > threshold
    last = last if begins else found[:, -1]
    torch.testing.assert_close(last, wanted[:, -1], atol=1e-5, rtol=1e-5)


def test_the_published_size_has_the_names_and_the_count_of_transformers():
    hidden = {"intermediate_size": 2816}
    with torch.device("meta"):
        theirs = BltForCausalLM(BltConfig(encoder_config=hidden))
        ours = LatentTransformer(LATENT_SIZES["1b"])
    shapes = {
        our_name(name): tuple(each.shape)
        for name, each in theirs.state_dict().items()
        if our_name(name) is not None
    }
    mine = {name: tuple(each.shape) for name, each in ours.state_dict().items()}
    assert mine == shapes
    count = sum(each.numel() for each in ours.parameters())
    of_patcher = sum(each.numel() for each in theirs.model.patcher.parameters())
    assert count == sum(each.numel() for each in theirs.parameters()) - of_patcher
    assert of_patcher == 99_512_064


TINY = LatentConfig(
    local=16, local_heads=2, local_hidden=24, decoder_layers=2, latent=32, latent_heads=2,
    latent_hidden=32, latent_layers=2, ngram_rows=64, window=6, ngrams=(3, 4),
)  # fmt: skip


@pytest.fixture(scope="module")
def tiny() -> LatentTransformer:
    torch.manual_seed(0)
    return LatentTransformer(TINY).eval()


@pytest.mark.parametrize("at", [0, 1, 7, 30])
def test_no_byte_is_seen_early(tiny: LatentTransformer, at: int):
    other = bytearray(TEXT)
    other[at] ^= 1
    lengths = patched([TEXT], Space())[1]
    with torch.no_grad():
        a = tiny(patched([TEXT], Static(1))[0], lengths)
        b = tiny(patched([bytes(other)], Static(1))[0], lengths)
    # Position `at` has read `at` bytes and predicts the one that changed.
    torch.testing.assert_close(a[:, : at + 1], b[:, : at + 1], atol=1e-5, rtol=1e-5)
    assert (a[:, at + 1] - b[:, at + 1]).abs().max() > 1e-4
    assert (a[:, -1] - b[:, -1]).abs().max() > 1e-6  # far beyond the window, through patches


def test_a_row_is_the_same_alone_and_among_longer_ones(tiny: LatentTransformer):
    texts = [TEXT, TEXT[:20], b"", TEXT[5:50]]
    with torch.no_grad():
        together = tiny(*patched(texts, Space()))
        for row, text in enumerate(texts):
            alone = tiny(*patched([text], Space()))[0]
            torch.testing.assert_close(together[row, : len(alone)], alone, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("count", "most", "padded"), [(5, 4096, 128), (128, 4096, 128), (130, 200, 200)]
)
def test_patches_are_padded_to_few_lengths(count: int, most: int, padded: int):
    lengths = torch.ones(2, count, dtype=torch.int64)
    found = padded_lengths(lengths, most)
    assert found.shape == (2, padded)
    assert torch.equal(found[:, :count], lengths)
    assert not found[:, count:].any()


def test_padding_changes_neither_logits_nor_gradients(tiny: LatentTransformer):
    ids, lengths = patched([TEXT, TEXT[:20]], Space())
    documents = documents_of(ids)
    found = []
    for each in (lengths, padded_lengths(lengths, TINY.latent_length)):
        tiny.zero_grad()
        logits = tiny(ids, each, documents)
        logits.logsumexp(-1).sum().backward()
        found.append([logits.detach(), *(p.grad.clone() for p in tiny.parameters())])
    tiny.zero_grad()
    torch.testing.assert_close(found[0], found[1], atol=1e-5, rtol=1e-4)


def test_documents_of_a_row_do_not_see_each_other(tiny: LatentTransformer):
    a, b = (patched([text], Space()) for text in (TEXT[:30], TEXT[30:]))
    ids = torch.cat([a[0], b[0]], 1)
    lengths = torch.cat([a[1], b[1]], 1)
    with torch.no_grad():
        packed = tiny(ids, lengths, documents_of(ids))
        # n-grams reach into the document before: they belong to bytes, not to attention.
        reach = max(TINY.ngrams) - 1
        first = tiny(*a)
    torch.testing.assert_close(packed[:, :30], first[:, :30], atol=1e-5, rtol=1e-5)
    changed = ids.clone()
    changed[:, 3 : 31 - reach] = 40
    with torch.no_grad():
        other = tiny(changed, lengths, documents_of(ids))
    torch.testing.assert_close(packed[:, 31:], other[:, 31:], atol=1e-5, rtol=1e-5)


def test_gradients_reach_every_weight(tiny: LatentTransformer):
    ids, lengths = patched([TEXT], Space())
    tiny.zero_grad()
    tiny(ids, lengths).logsumexp(-1).sum().backward()
    without = [n for n, p in tiny.named_parameters() if p.grad is None or not p.grad.any()]
    tiny.zero_grad()
    assert without == []


def test_the_base_of_rotary_angles_comes_from_the_config(tmp_path: Path):
    peer(64, tmp_path)
    path = tmp_path / "config.json"
    table = json.loads(path.read_text())
    parts = ("encoder_config", "decoder_config", "global_config")
    for name in parts:
        table[name]["rope_parameters"] = {"rope_theta": 100.0, "rope_type": "default"}
    path.write_text(json.dumps(table))
    assert load_latent_model(tmp_path).config.base == 100.0
    theirs = BltForCausalLM(BltConfig(**table)).eval()
    theirs.load_state_dict(load_file(tmp_path / "model.safetensors"))
    ids, lengths = patched([TEXT], Static(4))
    with torch.no_grad():
        states = theirs.model(ids, patch_lengths=lengths, use_cache=False)
        wanted = theirs.lm_head(states.last_hidden_state)
        found = load_latent_model(tmp_path)(ids, lengths)
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)
    del table["global_config"]["rope_parameters"]
    path.write_text(json.dumps(table))
    with pytest.raises(ArgumentError, match="`rope_theta` is 100 and 500000"):
        load_latent_model(tmp_path)


def test_gradients_are_those_of_transformers(tmp_path: Path):
    theirs = peer(64, tmp_path)
    ours = load_latent_model(tmp_path)
    ids, lengths = patched([TEXT], Space())
    states = theirs.model(ids, patch_lengths=lengths, use_cache=False).last_hidden_state
    theirs.lm_head(states).square().mean().backward()
    ours(ids, lengths).square().mean().backward()
    mine = dict(ours.named_parameters())
    for name, parameter in theirs.named_parameters():
        found = our_name(name)
        if found is not None:
            torch.testing.assert_close(mine[found].grad, parameter.grad, atol=1e-5, rtol=1e-4)


def test_wrong_inputs_say_what_is_wrong(tiny: LatentTransformer, tmp_path: Path):
    ids, _ = patched([TEXT], Space())
    with pytest.raises(ArgumentError, match=r"lengths \[4\]; expected 1"):
        tiny(ids, torch.full((1, 17), 4))
    with pytest.raises(ArgumentError, match="at least one"):
        patched([], Space())
    with pytest.raises(ArgumentError, match="`latent` 30"):
        LatentConfig(latent=30)
    with pytest.raises(ArgumentError, match=r"config\.json"):
        load_latent_model(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(DamagedError, match="not the config of a BLT"):
        load_latent_model(tmp_path)
    peer(64, tmp_path)
    with pytest.raises(ArgumentError, match="does not match the model"):
        load_latent_model(tmp_path / "model.safetensors", config=TINY)
