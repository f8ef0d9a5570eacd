"""Model folders: what is written is read back, and what is damaged is refused."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from hotgrid.chat import (
    GPT,
    ChatMessage,
    LanguageModel,
    TextData,
    chat_encoding,
    export_llama,
    find_vocabulary,
    load_model,
    render,
    save_llama,
    save_model,
    train_vocabulary,
)
from hotgrid.chat._model._vocabulary import beginning
from hotgrid.errors import ArgumentError, DamagedError, MissingPartError
from hotgrid.kernels import compress
from hotgrid.tokens import Encoding, get_encoding, save_huggingface

Make = Callable[..., GPT]
TOKENS = torch.arange(12).view(2, 6)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_model_comes_back(
    small_gpt: Make, byte_encoding: Encoding, tmp_path: Path, tied: bool, dtype: torch.dtype
) -> None:
    model = small_gpt(vocabulary=320, tied=tied, mixing=True, value_embeddings=True).to(dtype)
    saved = LanguageModel(model, byte_encoding, {"name": "tiny", "tuned": True})
    save_model(tmp_path / "model", saved)
    found = load_model(tmp_path / "model")
    assert torch.equal(found.model(TOKENS), model(TOKENS))
    assert found.name == "tiny"
    assert found.card["tuned"]
    assert not found.model.training
    assert found.encoding.n_vocab == 320
    assert sorted(each.name for each in tmp_path.iterdir()) == ["model"]
    wide = load_model(tmp_path / "model", dtype=torch.float64)
    assert wide.model.embed.weight.dtype == torch.float64
    # Another one takes its place.
    save_model(tmp_path / "model", LanguageModel(model, byte_encoding, {"name": "other"}))
    assert load_model(tmp_path / "model").name == "other"


def test_a_compressed_model_comes_back(
    small_gpt: Make, byte_encoding: Encoding, tmp_path: Path
) -> None:
    small = compress(small_gpt(vocabulary=320), form="int8")
    assert isinstance(small, GPT)
    save_model(tmp_path / "model", LanguageModel(small, byte_encoding))
    found = load_model(tmp_path / "model")
    assert torch.equal(found.model(TOKENS), small(TOKENS))
    assert found.name == "model"


def test_a_llama_with_a_vocabulary(
    small_gpt: Make, byte_encoding: Encoding, tmp_path: Path
) -> None:
    model = small_gpt(llama=True, vocabulary=320)
    save_llama(model, tmp_path)
    with pytest.raises(DamagedError, match=r"no `tokenizer.json`"):
        load_model(tmp_path)
    save_huggingface(byte_encoding, tmp_path / "tokenizer.json")
    language = load_model(tmp_path)
    assert torch.equal(language.model(TOKENS), model(TOKENS))
    with pytest.raises(ArgumentError, match="not a model folder"):
        save_model(tmp_path, language)
    assert (tmp_path / "config.json").is_file()


def test_transformers_reads_what_is_exported(
    small_gpt: Make, byte_encoding: Encoding, tmp_path: Path
) -> None:
    folder = tmp_path / "llama"
    language = LanguageModel(small_gpt(llama=True, vocabulary=320), byte_encoding)
    for _ in range(2):  # the second replaces the first
        export_llama(folder, language)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    text = "A naïve <|end|> test.\n"
    first = beginning(byte_encoding)
    assert tokenizer(text)["input_ids"] == [
        first,
        *byte_encoding.encode(text, allowed_special="all"),
    ]
    messages = [ChatMessage("system", "Be brief."), ChatMessage("user", "Hi  there")]
    said = [{"role": each.role, "content": each.content} for each in messages]
    found = tokenizer.apply_chat_template(said, add_generation_prompt=True, tokenize=False)
    tokens = render(byte_encoding, messages, reply=True)[0]
    assert tokenizer(found, add_special_tokens=False)["input_ids"] == tokens
    theirs = AutoModelForCausalLM.from_pretrained(folder).eval()
    with torch.no_grad():
        given = torch.tensor([tokens])
        torch.testing.assert_close(
            theirs(given).logits, language.model(given), rtol=0, atol=1e-5
        )
    end = byte_encoding.encode_single_token("<|end|>")
    assert theirs.generation_config.eos_token_id == sorted([first, end])
    assert torch.equal(load_model(folder).model(given), language.model(given))


def test_what_cannot_be_exported(
    small_gpt: Make, byte_encoding: Encoding, tmp_path: Path
) -> None:
    small = compress(small_gpt(llama=True, vocabulary=320), form="int8")
    assert isinstance(small, GPT)
    with pytest.raises(ArgumentError, match="is compressed"):
        export_llama(tmp_path / "new", LanguageModel(small, byte_encoding))
    with pytest.raises(ArgumentError, match=r"no place for .*cap=.*: make the model with"):
        export_llama(tmp_path / "new", LanguageModel(small_gpt(vocabulary=320), byte_encoding))
    (tmp_path / "poem.txt").write_text("roses")
    llama = LanguageModel(small_gpt(llama=True, vocabulary=320), byte_encoding)
    with pytest.raises(ArgumentError, match=r"holds poem.txt, which"):
        export_llama(tmp_path, llama)
    assert not (tmp_path / "new").exists()


def test_another_vocabulary_is_refused(
    small_gpt: Make, byte_encoding: Encoding, tmp_path: Path
) -> None:
    model = small_gpt(llama=True, vocabulary=64)
    save_llama(model, tmp_path)
    save_huggingface(byte_encoding, tmp_path / "tokenizer.json")
    with pytest.raises(ArgumentError, match=r"has 320 tokens, the model 64"):
        load_model(tmp_path)


def test_files_that_are_damaged(
    small_gpt: Make, byte_encoding: Encoding, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    save_model(folder, LanguageModel(small_gpt(vocabulary=320), byte_encoding))
    for name in ("model.safetensors", "tokenizer.json"):
        good = (folder / name).read_bytes()
        bad = bytearray(good)
        bad[-40] ^= 1
        (folder / name).write_bytes(bad)
        with pytest.raises(DamagedError, match=f"{name}` does not match its checksum"):
            load_model(folder)
        (folder / name).unlink()
        with pytest.raises(DamagedError, match=r"is missing|neither"):
            load_model(folder)
        (folder / name).write_bytes(good)
    about = json.loads((folder / "model.json").read_text())
    for change, message in (
        ({"config": about["config"] | {"layers": 4}}, "no weight `h.3"),
        ({"config": about["config"] | {"size": 32}}, "`model.json` says"),
        ({"config": about["config"] | {"layer": 4}}, "a GPT has no `layer`"),
        ({"config": None}, "does not describe a model"),
    ):
        (folder / "model.json").write_text(json.dumps(about | change))
        with pytest.raises((DamagedError, ArgumentError), match=message):
            load_model(folder)
    (folder / "model.json").write_text(json.dumps(about | {"format": 9}))
    with pytest.raises(ArgumentError, match="format 9"):
        load_model(folder)
    (folder / "model.json").write_text("{")
    with pytest.raises(DamagedError, match="does not describe a model"):
        load_model(folder)


def test_folders_that_are_no_model(
    small_gpt: Make, byte_encoding: Encoding, tmp_path: Path
) -> None:
    with pytest.raises(ArgumentError, match="is not a folder with"):
        load_model(tmp_path / "nothing")
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ArgumentError, match="has neither"):
        load_model(tmp_path)
    with pytest.raises(ArgumentError, match="not a model folder"):
        save_model(tmp_path, LanguageModel(small_gpt(vocabulary=320), byte_encoding))
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_kill_while_a_model_is_replaced_leaves_the_old_one(
    small_gpt: Make, byte_encoding: Encoding, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    save_model(folder, LanguageModel(small_gpt(vocabulary=320), byte_encoding, {"name": "old"}))
    # Where it is after the first rename.
    folder.rename(tmp_path / f".model-{'0' * 32}-old")
    assert load_model(folder).card["name"] == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_reserved_tokens_get_names() -> None:
    found = chat_encoding(get_encoding())
    assert found.n_vocab == get_encoding().n_vocab == 32_768
    assert found.encode_single_token("<|bos|>") == 32_757
    assert found.encode_single_token("<|end|>") == 32_761
    assert found.encode("a cat") == get_encoding().encode("a cat")
    assert chat_encoding(found) is found
    # The one that everybody shares stays as it was.
    assert "<|bos|>" not in get_encoding().special_tokens_set


def test_vocabularies_by_name_and_file(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the lattice is warm and a wave crosses it slowly, again and again. " * 9)
    made = train_vocabulary(TextData([text]), 320)
    assert made.n_vocab == 320
    assert made.decode(made.encode("a warm lattice")) == "a warm lattice"
    assert len(made.encode(" lattice")) < len(" lattice")
    save_huggingface(made, tmp_path / "tokenizer.json")
    for where in (tmp_path, tmp_path / "tokenizer.json"):
        found = find_vocabulary(where)
        assert found.encode("a wave") == made.encode("a wave")
        assert found.encode_single_token("<|user|>") == made.encode_single_token("<|user|>")
    assert find_vocabulary("hotgrid_32k").n_vocab == 32_768
    with pytest.raises(ArgumentError, match=r"did you mean `hotgrid_32k`.*chat tokenizer"):
        find_vocabulary("hotgrid_32")
    with pytest.raises(ArgumentError, match="choose 261 or more"):
        train_vocabulary(TextData([text]), 100)


def test_a_vocabulary_is_made_of_so_many_bytes(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps({"text": 10 * each}) + "\n" for each in "\xe9\xe8"))
    data = TextData([file], hold_out=0.0)
    made = train_vocabulary(data, 300, most_bytes=15)
    # The first text has 20 bytes, the second is not read.
    assert len(made.encode("\xe9" * 10)) < len(made.encode("\xe8" * 10))


def test_the_default_says_how_to_make_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from hotgrid.chat._model import _folder

    monkeypatch.setattr(_folder, "_DEFAULT", Path("nowhere"))
    with pytest.raises(MissingPartError, match="hotgrid chat demo"):
        load_model()
