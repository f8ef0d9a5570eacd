"""A language model in a folder: its shape and card, its weights, its vocabulary."""

import copy
import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from hotgrid.errors import ArgumentError, DamagedError, MissingPartError, StoreError
from hotgrid.files import open_regular, read_regular, restore_folder, whole_folder
from hotgrid.kernels import CodebookLinear, load_compressed, save_compressed
from hotgrid.store import Checkpoints
from hotgrid.tokens import Encoding, load_huggingface, save_huggingface
from hotgrid.train import lora, merge_lora

from ._config import GPTConfig
from ._gpt import GPT
from ._llama import load_llama
from ._vocabulary import chat_encoding

ABOUT, WEIGHTS, TOKENIZER = "model.json", "model.safetensors", "tokenizer.json"
_FORMAT = 1
_DEFAULT = Path(__file__).parent.parent / "_default"


@dataclass(frozen=True)
class LanguageModel:
    """A model with its vocabulary and its card.

    Attributes:
        model: The model, in eval mode.
        encoding: Its vocabulary, with the special tokens of a chat.
        card: Its name, data, licences and figures; `tuned` says whether it has learned to
            answer.
        path: The folder it is from; None if it is from none.
    """

    model: GPT
    encoding: Encoding
    card: Mapping[str, Any] = field(default_factory=dict)
    path: Path | None = None

    @property
    def name(self) -> str:
        """The name of the model."""
        return str(self.card.get("name") or (self.path.name if self.path else "model"))

    @cached_property
    def ends(self) -> frozenset[int]:
        """The tokens that end a reply: special ones, and those beyond the vocabulary."""
        special = map(self.encoding.encode_single_token, self.encoding.special_tokens_set)
        beyond = range(self.encoding.n_vocab, self.model.config.vocabulary)
        return frozenset((*special, *beyond))


def about(config: GPTConfig, card: Mapping[str, Any], **more: Any) -> bytes:
    """Return the contents of `model.json`."""
    plain = {"format": _FORMAT, "config": dataclasses.asdict(config), "card": dict(card)}
    return json.dumps(plain | more, indent=2, ensure_ascii=False).encode()


def save_model(folder: str | Path, language: LanguageModel) -> None:
    """Write a model folder: `model.json`, `model.safetensors` and `tokenizer.json`.

    The folder is complete or absent. An existing model folder is replaced. Compressed
    models are written as they are.

    Raises:
        ArgumentError: The folder holds something else, or cannot be written.
        StoreError: The disk is full or failed.
    """
    path = Path(folder)
    ours = all((path / name).is_file() for name in (ABOUT, WEIGHTS))
    if path.exists() and not ours and any(path.iterdir()):
        raise ArgumentError(
            f"`{path}` holds something that is not a model folder; choose another folder"
        )
    try:
        with whole_folder(path) as aside:
            _write(aside, language)
    except SafetensorError as problem:
        raise StoreError(f"cannot write `{path}`: {problem}") from None


def _write(folder: Path, language: LanguageModel) -> None:
    model = language.model
    compressed = any(isinstance(each, CodebookLinear) for each in model.modules())
    if compressed:
        save_compressed(_narrowed(model), folder / WEIGHTS)
    else:
        save_file(_distinct(model), folder / WEIGHTS, {"format": "pt"})
    save_huggingface(language.encoding, folder / TOKENIZER)
    sums = {name: _digest(folder / name) for name in (WEIGHTS, TOKENIZER)}
    text = about(model.config, language.card, compressed=compressed, digests=sums)
    (folder / ABOUT).write_bytes(text)


def _narrowed(model: GPT) -> GPT:
    """The model with embeddings in 16 bits, where those hold every number exactly."""
    narrow = copy.deepcopy(model)
    for each in narrow.modules():
        if isinstance(each, nn.Embedding) and torch.equal(
            each.weight.half().to(each.weight.dtype), each.weight
        ):
            each.half()
    return narrow


def _distinct(model: GPT) -> dict[str, Tensor]:
    """The parameters; a tied head counts once."""
    state = {name: each.detach().to("cpu") for name, each in model.state_dict().items()}
    if model.config.tied:
        del state["head.linear.weight"]
    return {name: each.contiguous() for name, each in state.items()}


def load_model(
    where: str | Path | None = None,
    *,
    device: str | torch.device = "cpu",
    dtype: torch.dtype | None = None,
) -> LanguageModel:
    """Load a model.

    Args:
        where: A model folder, the folder of a run of `hotgrid chat train` or `tune` (the
            newest checkpoint that is good, with averaged weights where the run has them), or
            a folder in the layout of Llama with its `tokenizer.json`. None is the model that
            comes with hotgrid.
        device: Where to put it.
        dtype: Type of its parameters; by default as they were saved. Compressed layers keep
            their codes.

    Raises:
        ArgumentError: The folder is none of these, or its vocabulary is not the model's.
        DamagedError: A file is missing or is not what was written; the message names it.
        MissingPartError: This build of hotgrid includes no model.
    """
    if where is None and not (_DEFAULT / ABOUT).is_file():
        raise MissingPartError(
            "this build of hotgrid includes no model; `hotgrid chat demo --out DIR` trains a "
            "small one in minutes, then give its folder"
        )
    path = _DEFAULT if where is None else Path(where)
    restore_folder(path)
    if (path / ABOUT).is_file():
        found = _ours(path)
    elif (path / "config.json").is_file():
        model = load_llama(path)
        most = model.config.vocabulary
        found = LanguageModel(model, chat_encoding(_encoding(path), most=most), {}, path)
    else:
        there = "has neither" if path.is_dir() else "is not a folder with"
        raise ArgumentError(
            f"`{path}` {there} a `{ABOUT}`, as hotgrid writes it, nor a `config.json`, as a "
            "Llama has it"
        )
    if found.encoding.n_vocab > found.model.config.vocabulary:
        raise ArgumentError(
            f"the vocabulary in `{path / TOKENIZER}` has {found.encoding.n_vocab:,} tokens, "
            f"the model {found.model.config.vocabulary:,}: it belongs to another model"
        )
    found.model.to(device=device, dtype=dtype).eval()
    return found


def _ours(path: Path) -> LanguageModel:
    try:
        given: Any = json.loads(read_regular(path / ABOUT, 1 << 24))
        config = GPTConfig.from_json(json.dumps(given["config"]))
        card, version = dict(given.get("card") or {}), given["format"]
    except (ValueError, KeyError, TypeError) as problem:
        raise DamagedError(f"`{path / ABOUT}` does not describe a model: {problem}") from None
    if version != _FORMAT:
        raise ArgumentError(
            f"`{path}` has format {version!r}; this hotgrid reads format {_FORMAT}. "
            "Update hotgrid"
        )
    if (path / WEIGHTS).is_file():
        for name, expected in (given.get("digests") or {}).items():
            if _digest(path / Path(name).name) != expected:
                raise DamagedError(f"`{path / name}` does not match its checksum")
        model = _from_weights(path / WEIGHTS, config, bool(given.get("compressed")))
    elif (path / "checkpoints").is_dir():
        model, step = _from_run(path, config, given.get("adapters"))
        card["step"] = step
    else:
        raise DamagedError(f"`{path}` has neither `{WEIGHTS}` nor `checkpoints`")
    return LanguageModel(model, _encoding(path), card, path)


def _from_weights(file: Path, config: GPTConfig, compressed: bool) -> GPT:
    model = GPT(config)
    if compressed:
        return cast("GPT", load_compressed(model, file))
    try:
        state = load_file(file)
    except SafetensorError as problem:
        raise DamagedError(f"`{file}` is not a safetensors file: {problem}") from None
    if config.tied and "embed.weight" in state:
        state["head.linear.weight"] = state["embed.weight"]
    _fill(model, state, file)
    return model


def _from_run(path: Path, config: GPTConfig, adapters: Any) -> tuple[GPT, int]:
    checkpoint = Checkpoints(path / "checkpoints").load()
    state = {
        name.removeprefix("model/"): each
        for name, each in checkpoint.tensors.items()
        if name.startswith("model/")
    }
    averages = {
        name.removeprefix("average/"): each
        for name, each in checkpoint.tensors.items()
        if name.startswith("average/")
    }
    model = GPT(config)
    if adapters:
        lora(model, adapters["select"], adapters["rank"], adapters["alpha"])
    state |= averages
    if config.tied and "embed.weight" in state:
        state["head.linear.weight"] = state["embed.weight"]
    _fill(model, state, path)
    if adapters:
        merge_lora(model)
    return model, checkpoint.step


def _fill(model: GPT, state: dict[str, Tensor], place: Path) -> None:
    wanted = model.state_dict()
    for name, each in wanted.items():
        if name not in state:
            raise DamagedError(f"`{place}` has no weight `{name}`")
        if state[name].shape != each.shape:
            raise DamagedError(
                f"`{name}` in `{place}` is {list(state[name].shape)}; `{ABOUT}` says "
                f"{list(each.shape)}"
            )
    if unknown := sorted(set(state) - set(wanted)):
        raise DamagedError(f"`{place}` has weights that the model does not have: {unknown[:5]}")
    model.to(state["embed.weight"].dtype)
    model.load_state_dict(state)


def _encoding(path: Path) -> Encoding:
    if not (path / TOKENIZER).is_file():
        raise DamagedError(f"`{path}` has no `{TOKENIZER}`: a model needs its vocabulary")
    return load_huggingface(path / TOKENIZER)


def _digest(path: Path) -> str:
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            found = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16))
    except FileNotFoundError:
        raise DamagedError(f"`{path}` is missing") from None
    return found.hexdigest()
