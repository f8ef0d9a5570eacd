"""The entropy model: against transformers, in chunks, from files."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from hypothesis import given, settings, strategies as st
from safetensors.torch import save_file
from torch import Tensor, nn

from hotgrid.blt import (
    ENTROPY_SIZES,
    EntropyConfig,
    EntropyModel,
    byte_ids,
    documents_of,
    ids_to_bytes,
    load_entropy_model,
    save_entropy_model,
)
from hotgrid.blt._entropy._window import _is_plain, _mask
from hotgrid.blt._layers._block import Block, joined_after, joined_before
from hotgrid.errors import ArgumentError, DamagedError
from hotgrid.kernels import compress
from hotgrid.nn._attention._mask import _sees

from .peer import BltPatcher, BltPatcherConfig

TINY = EntropyConfig(size=32, layers=3, heads=2, hidden=48, window=8, length=64)
TEXT = b"The quick brown fox jumps over the lazy dog. " * 5 + bytes(range(256))


@pytest.fixture(scope="module")
def peer() -> BltPatcher:
    torch.manual_seed(1)
    config = BltPatcherConfig(
        hidden_size=128,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=192,
        sliding_window=9,
        max_position_embeddings=256,
    )
    made = BltPatcher(config).eval()
    for parameter in made.parameters():
        parameter.data += 0.02 * torch.randn_like(parameter)  # norms are not ones
    return made


@pytest.fixture(scope="module")
def tiny() -> EntropyModel:
    torch.manual_seed(0)
    return EntropyModel(TINY).eval()


def close(a: Tensor, b: Tensor, atol: float = 2e-5) -> None:
    torch.testing.assert_close(a, b, atol=atol, rtol=1e-5)


def saved(peer: BltPatcher, path: Path, beginning: str) -> Path:
    tensors = {f"{beginning}{name}": each for name, each in peer.state_dict().items()}
    save_file(tensors, path)
    return path


SIZES = EntropyConfig(size=128, layers=3, heads=2, hidden=192, window=9, length=256)


@pytest.mark.parametrize("beginning", ["", "patcher.", "model.patcher."])
def test_it_computes_what_transformers_does(peer: BltPatcher, tmp_path: Path, beginning: str):
    path = saved(peer, tmp_path / "model.safetensors", beginning)
    ours = load_entropy_model(path, config=SIZES)
    ids = torch.randint(3, 260, (2, 100), generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        _, _, logits = peer(ids)
        found = ours(ids)
    close(found.logits, logits)
    for row in range(2):
        data = ids_to_bytes(ids[row, 1:].clamp(min=4))
        again = torch.cat([torch.tensor([1]), byte_ids(data)])[None]
        with torch.no_grad():
            wanted = peer(again)[0][0]
        signals = ours.signals([data], chunk=16)[0]
        close(signals.uncertainty, wanted)
        close(signals.entropies, wanted[:-1])


def test_the_window_is_the_one_of_the_peer(peer: BltPatcher, tmp_path: Path):
    path = saved(peer, tmp_path / "model.safetensors", "")
    wrong = EntropyConfig(size=128, layers=3, heads=2, hidden=192, window=10, length=256)
    ids = byte_ids(TEXT)[None, :60]
    with torch.no_grad():
        wanted = peer(ids)[2]
        close(load_entropy_model(path, config=SIZES)(ids).logits, wanted)
        assert (load_entropy_model(path, config=wrong)(ids).logits - wanted).abs().max() > 1e-3


def test_sizes_come_from_shapes(peer: BltPatcher, tmp_path: Path):
    path = saved(peer, tmp_path / "model.safetensors", "model.patcher.")
    found = load_entropy_model(path.parent).config
    assert (found.size, found.layers, found.heads, found.hidden) == (128, 3, 2, 192)


@pytest.mark.parametrize("whole", [False, True])
def test_sizes_come_from_the_config_of_transformers(tmp_path: Path, whole: bool):
    """Heads of 32, which no shape tells of, and another base and window."""
    sizes = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"intermediate_size": 192, "max_position_embeddings": 256, "sliding_window": 9}
    config = BltPatcherConfig(
        **sizes, rope_parameters={"rope_theta": 500.0, "rope_type": "default"}
    )
    torch.manual_seed(4)
    made = BltPatcher(config).eval()
    saved(made, tmp_path / "model.safetensors", "model.patcher." if whole else "")
    table = config.to_dict()
    if whole:
        table = {"model_type": "blt", "patcher_config": table}
    (tmp_path / "config.json").write_text(json.dumps(table))
    ids = byte_ids(TEXT)[None, :60]
    with torch.no_grad():
        wanted = made(ids)[2]
    for path in (tmp_path, tmp_path / "model.safetensors"):
        ours = load_entropy_model(path)
        assert (ours.config.heads, ours.config.window, ours.config.base) == (4, 9, 500.0)
        with torch.no_grad():
            close(ours(ids).logits, wanted)
    (tmp_path / "config.json").write_text('{"model_type": "blt"}')
    with pytest.raises(DamagedError, match="not the config of a BLT"):
        load_entropy_model(tmp_path)


def test_the_published_size_has_the_published_count():
    with torch.device("meta"):
        model = EntropyModel(ENTROPY_SIZES["blt-entropy"])
        nano = EntropyModel(ENTROPY_SIZES["nano"])
    assert sum(each.numel() for each in model.parameters()) == 99_512_064
    assert sum(each.numel() for each in nano.parameters()) < 2_500_000


def test_files_have_the_published_names(tiny: EntropyModel, tmp_path: Path):
    from safetensors import safe_open

    path = tmp_path / "own.safetensors"
    tiny.thresholds = {"entropy": {"4": 1.5}}
    save_entropy_model(tiny, path, {"trained on": "nothing"})
    with safe_open(path, "pt") as file:
        names = set(file.keys())
    layer = {
        "attention.wq", "attention.wk", "attention.wv", "attention.wo", "attention_norm",
        "feed_forward.w1", "feed_forward.w2", "feed_forward.w3", "ffn_norm",
    }  # fmt: skip
    wanted = {f"layers.{i}.{name}.weight" for i in range(3) for name in layer}
    assert names == wanted | {"tok_embeddings.weight", "norm.weight", "output.weight"}
    again = load_entropy_model(path)
    assert (again.config, again.thresholds) == (TINY, tiny.thresholds)
    close(again.entropies(TEXT), tiny.entropies(TEXT), 0)


@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_chunks_and_parts_give_what_one_pass_gives(tiny: EntropyModel, data: st.DataObject):
    size = data.draw(st.integers(0, 200))
    text = TEXT[:size]
    wide = EntropyConfig(size=32, layers=3, heads=2, hidden=48, window=8, length=1024)
    whole = EntropyModel(wide)
    whole.load_state_dict(tiny.state_dict())
    with torch.no_grad():
        from hotgrid.blt._layers._block import entropy_of

        wanted = entropy_of(whole(byte_ids(text, bos=True)[None]).logits)[0]
    # Twenty times as long as a window and three times as long as the table.
    chunk = data.draw(st.integers(1, 57))
    close(tiny.signals([text], chunk=chunk)[0].uncertainty, wanted)
    stream, parts, at = tiny.stream(), [], 0
    while at < size:
        step = data.draw(st.integers(1, 90))
        parts.append(stream.push(text[at : at + step]))
        at += step
    close(torch.cat([torch.empty(0), *parts]), wanted[:-1])


@pytest.mark.parametrize("window", [1, 2, 8])
def test_chunks_at_the_edges_of_a_window_give_what_one_pass_gives(window: int):
    torch.manual_seed(window)
    config = replace(TINY, window=window)
    model, whole = EntropyModel(config), EntropyModel(replace(config, length=1024))
    whole.load_state_dict(model.state_dict())
    longest = config.length - window + 1
    for chunk in sorted({1, max(window - 1, 1), window, window + 1, longest}):
        for size in (chunk - 1, chunk, chunk + 1, 2 * chunk + 1):
            text = TEXT[:size]
            with torch.no_grad():
                wanted = whole(byte_ids(text, bos=True)[None])
            found = model.signals([text, TEXT[:5]], chunk=chunk, embeddings=True, logits=True)
            close(found[0].logits, wanted.logits[0])
            close(found[0].embeddings, wanted.embeddings[0, 1:])


@pytest.mark.parametrize("first", [0, 1, 7, 8, 9, 57, 58, 150])
def test_a_stream_goes_on_after_a_first_part_of_any_length(tiny: EntropyModel, first: int):
    wanted = tiny.signals([TEXT], chunk=16)[0].entropies
    stream = tiny.stream()
    parts = [stream.push(TEXT[:first])]
    parts += [stream.push(TEXT[at : at + 11]) for at in range(first, len(TEXT), 11)]
    close(torch.cat(parts), wanted)


def test_joined_products_are_those_of_the_layer(tiny: EntropyModel):
    x, positions = torch.randn(2, 7, TINY.size), torch.arange(7) + 3
    for each in tiny.layers:
        layer = cast("Block", each)
        for joined, alone in zip(
            joined_before(layer, x, positions), layer.before(x, positions), strict=True
        ):
            close(joined, alone)
        found = torch.randn(2, TINY.heads, 7, TINY.size // TINY.heads)
        close(joined_after(layer, x, found), layer.after(x, found))


@pytest.mark.parametrize("path", ["attention.q", "attention.v", "mlp.gate", "mlp.up"])
def test_only_plain_maps_are_joined(path: str):
    model = EntropyModel(TINY)
    assert _is_plain(model)
    part, name = path.split(".")
    owner = model.layers[1].get_submodule(part)
    plain = owner.get_submodule(name)
    size = tuple(plain.weight.shape)
    for other in (nn.Linear(size[1], size[0], bias=True), nn.Sequential(plain)):
        setattr(owner, name, other)
        assert not _is_plain(model)


def test_no_byte_changes_what_comes_before_it(tiny: EntropyModel):
    other = bytearray(TEXT[:80])
    other[50] ^= 255
    a, b = tiny.signals([TEXT[:80], bytes(other)], embeddings=True, logits=True)
    close(a.uncertainty[:51], b.uncertainty[:51], 1e-6)
    assert a.embeddings is not None
    assert b.embeddings is not None
    close(a.embeddings[:50], b.embeddings[:50], 1e-5)
    assert abs(a.uncertainty[51] - b.uncertainty[51]) > 1e-4
    reach = TINY.receptive_field
    close(a.uncertainty[51 + reach :], b.uncertainty[51 + reach :], 1e-6)
    assert abs(a.uncertainty[50 + reach] - b.uncertainty[50 + reach]) > 0


def test_a_batch_of_mixed_lengths_is_each_alone(tiny: EntropyModel):
    texts = [TEXT[:n] for n in (0, 7, 300, 1, 45, 46)]
    together = tiny.signals(texts, embeddings=True, logits=True, batch=100, chunk=20)
    for text, found in zip(texts, together, strict=True):
        alone = tiny.signals([text], embeddings=True, logits=True)[0]
        for name in ("uncertainty", "prominence", "embeddings", "logits", "coherence"):
            close(getattr(found, name), getattr(alone, name), 1e-3)
        assert found.embeddings.shape == (len(text), 32)
        close(found.prominence, found.embeddings.norm(dim=1))


@pytest.mark.long
@pytest.mark.compiles
def test_compiled_layers_compute_the_same(tiny: EntropyModel):
    texts = [TEXT[:n] for n in (300, 45, 46)]
    plain = tiny.signals(texts, embeddings=True, chunk=50)
    tiny.compiled = True
    try:
        fast = tiny.signals(texts, embeddings=True, chunk=50)
    finally:
        tiny.compiled = False
    for a, b in zip(plain, fast, strict=True):
        close(a.uncertainty, b.uncertainty)
        close(a.embeddings, b.embeddings)


def test_signals_follow_their_definitions(tiny: EntropyModel):
    found = tiny.signals([TEXT[:40]], embeddings=True, logits=True)[0]
    p = found.logits.double().softmax(-1)
    close(found.uncertainty, -(p * p.log()).sum(-1).float())
    out = tiny(byte_ids(TEXT[:40], bos=True)[None])
    close(found.embeddings, out.embeddings[0, 1:].detach())
    close(found.coherence, found.prominence**2 / (found.uncertainty[1:] + 1e-6))
    lengths = torch.tensor([1, 4, 30, 5])
    patches = found.over(lengths)
    assert patches.embeddings is not None
    pieces = zip(
        found.embeddings.split(lengths.tolist()),
        found.prominence.split(lengths.tolist()),
        found.entropies.split(lengths.tolist()),
        strict=True,
    )
    for row, (embeddings, prominence, entropies) in enumerate(pieces):
        close(patches.embeddings[row], embeddings.mean(0))
        close(patches.prominence[row], prominence.max())
        close(patches.entropies[row], entropies.mean())
    with pytest.raises(ArgumentError, match="add up to 39"):
        found.over(torch.tensor([39]))


def test_passes_share_what_is_computed_of_the_window(
    tiny: EntropyModel, monkeypatch: pytest.MonkeyPatch
):
    computed: list[int] = []

    def sees(*rules: Any) -> Tensor:
        computed.append(1)
        return _sees(*rules)

    monkeypatch.setattr("hotgrid.nn._attention._mask._sees", sees)
    _mask.cache_clear()
    first = tiny.signals([bytes(50)])[0]
    once = len(computed)
    assert once
    again = tiny.signals([bytes(50)])[0]
    assert len(computed) == once
    assert torch.equal(first.entropies, again.entropies)


def test_documents_of_a_row_do_not_see_each_other(tiny: EntropyModel):
    a, b = byte_ids(TEXT[:9], bos=True, eos=True), byte_ids(TEXT[9:20], bos=True)
    row = torch.cat([a, b])[None]
    packed = tiny(row, documents_of(row)).logits[0]
    close(packed[: len(a)], tiny(a[None]).logits[0], 1e-4)
    close(packed[len(a) :], tiny(b[None]).logits[0], 1e-4)


def test_half_precision_and_codes_stay_near(tiny: EntropyModel):
    wanted = tiny.entropies(TEXT)
    half = EntropyModel(TINY).to(torch.bfloat16)
    half.load_state_dict(tiny.state_dict())
    assert (half.entropies(TEXT) - wanted).abs().mean() < 0.05
    coded = compress(tiny, form="int8", max_error=0.1)
    assert (coded.entropies(TEXT) - wanted).abs().mean() < 0.02
    four = compress(tiny, form="int4", force=True)
    assert (four.entropies(TEXT) - wanted).abs().mean() < 0.2


@pytest.mark.parametrize("name", ["model.pt", "model.bin", "pytorch_model.pth", "model.mpk"])
def test_pickles_are_refused(tmp_path: Path, name: str):
    path = tmp_path / name
    torch.save({"tok_embeddings.weight": torch.zeros(2, 2)}, path)
    with pytest.raises(ArgumentError, match=f"{name}` is refused.*safetensors"):
        load_entropy_model(path)


def test_files_that_do_not_fit_are_refused(tmp_path: Path, tiny: EntropyModel):
    with pytest.raises(ArgumentError, match="there is no file"):
        load_entropy_model(tmp_path / "none.safetensors")
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(b"\x00" * 64)
    with pytest.raises(DamagedError, match="broken"):
        load_entropy_model(broken)
    other = tmp_path / "other.safetensors"
    save_file({"layers.0.weight": torch.zeros(3)}, other)
    with pytest.raises(ArgumentError, match="no entropy model"):
        load_entropy_model(other)
    own = tmp_path / "own.safetensors"
    save_entropy_model(tiny, own)
    wrong = EntropyConfig(size=32, layers=2, heads=2, hidden=48)
    with pytest.raises(ArgumentError, match="does not match the model"):
        load_entropy_model(own, config=wrong)
    with pytest.raises(ArgumentError, match="neither"):
        load_entropy_model(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../x"}}')
    with pytest.raises(DamagedError, match="outside of its folder"):
        load_entropy_model(tmp_path)


def test_wrong_sizes_say_what_is_wrong(tiny: EntropyModel):
    with pytest.raises(ArgumentError, match="not a multiple of 2"):
        EntropyConfig(size=30, heads=2, window=4)
    with pytest.raises(ArgumentError, match="at most 57"):
        tiny.signals([TEXT], chunk=60)
    with pytest.raises(ArgumentError, match="`batch`"):
        tiny.signals([TEXT], batch=0)


def test_the_model_that_comes_along_predicts_english_and_code() -> None:
    nano = load_entropy_model()
    assert set(nano.thresholds["threshold"]) == {"3", "4", "4.5", "6", "8"}
    text = b"He opened the door and looked out, but there was nobody in the street. " * 2
    code = b"def main() -> None:\n    for index in range(10):\n        print(index)\n"
    noise = bytes(
        torch.randint(256, (200,), generator=torch.Generator().manual_seed(0)).tolist()
    )
    means = [nano.entropies(each)[16:].mean().item() for each in (text, code, noise)]
    assert max(means[:2]) < 1.5 < 2.5 < means[2]
