"""`export_llama`: a language model for other tools, in the layout of Hugging Face's Llama."""

import json
from pathlib import Path

from hotgrid.errors import ArgumentError
from hotgrid.files import whole_folder
from hotgrid.kernels import CodebookLinear
from hotgrid.tokens import Encoding, save_huggingface

from ._folder import TOKENIZER, LanguageModel
from ._llama import save_llama
from ._vocabulary import END, SPECIALS, beginning

_FILES = {
    "config.json",
    "model.safetensors",
    TOKENIZER,
    "tokenizer_config.json",
    "generation_config.json",
}
# What `render` makes of a conversation, in Jinja.
_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def export_llama(folder: str | Path, language: LanguageModel) -> None:
    """Write a model with its vocabulary as transformers, vLLM or llama.cpp's converter read it.

    The folder has `config.json`, `model.safetensors`, `tokenizer.json` (which begins texts
    with the token that the model was trained with), `tokenizer_config.json` (with the template
    of conversations) and `generation_config.json`. It is complete or absent. An existing
    folder of this kind is replaced.

    Raises:
        ArgumentError: The model has parts that a Llama does not have or is compressed, or the
            folder holds something else.
        StoreError: The disk is full or failed.
    """
    path = Path(folder)
    if path.is_dir() and (more := sorted({each.name for each in path.iterdir()} - _FILES)):
        raise ArgumentError(
            f"`{path}` holds {', '.join(more[:3])}, which an exported model does not have; "
            "choose another folder"
        )
    if any(isinstance(each, CodebookLinear) for each in language.model.modules()):
        raise ArgumentError(
            f"{language.name!r} is compressed, and the layout of Llama has no place for that; "
            "export the model that it was made from"
        )
    encoding = language.encoding
    first = beginning(encoding)
    chats = set(SPECIALS) <= set(encoding.special_tokens_set)
    end = encoding.encode_single_token(END) if chats else first
    with whole_folder(path) as aside:
        save_llama(language.model, aside)
        _write_tokenizer(aside / TOKENIZER, encoding, first)
        settings = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": encoding.decode([first]),
            "eos_token": encoding.decode([end]),
            "model_max_length": language.model.config.context,
            "clean_up_tokenization_spaces": False,
        } | ({"chat_template": _TEMPLATE} if chats else {})
        (aside / "tokenizer_config.json").write_text(json.dumps(settings, indent=2))
        # A text ends where the next one would begin.
        ends = {"bos_token_id": first, "eos_token_id": sorted({first, end})}
        (aside / "generation_config.json").write_text(json.dumps(ends, indent=2))


def _write_tokenizer(file: Path, encoding: Encoding, first: int) -> None:
    save_huggingface(encoding, file)
    found = json.loads(file.read_bytes())
    name = encoding.decode([first])
    begin = {"SpecialToken": {"id": name, "type_id": 0}}
    text, other = ({"Sequence": {"id": each, "type_id": 0}} for each in "AB")
    found["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [begin, text],
        "pair": [begin, text, other],
        "special_tokens": {name: {"id": name, "ids": [first], "tokens": [name]}},
    }
    file.write_bytes(json.dumps(found, ensure_ascii=False).encode())
