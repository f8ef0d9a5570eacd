"""Train the model that comes with hotgrid: text, vocabulary, model, codes, card.

    python benchmarks/train_default_chat.py CORPUS --device cuda [--work FOLDER]

CORPUS is a folder of `make_byte_corpus.py`; its prose is the text, without the notes of
Project Gutenberg and with the lines of books joined. The vocabulary is small, so that the
model, compressed to int8, has at most 12 MB. The parts are kept in the work folder: the text,
tokenizer.json, the run, and default/, which is copied to src/hotgrid/chat/_default by hand. A
run that was stopped is continued by the same command.
"""

import json
import re
import sys
from pathlib import Path

from byte_corpus import ByteCorpus
from options import parser

from hotgrid.chat import (
    LanguageModel,
    Recipe,
    RunSettings,
    TextData,
    compress_model,
    find_vocabulary,
    load_model,
    measure,
    pretrain,
    samples,
    save_model,
    text_rows,
    train_vocabulary,
)
from hotgrid.tokens import save_huggingface

MOST = 12_000_000
NOT = (
    "It was trained on old novels and technical documents and continues text. It does not know "
    "facts, does not answer questions, and what it writes is often wrong."
)
PROMPTS = (
    "It was a cold evening, and",
    "The old man looked at",
    "This function returns",
    "She",
)
PARTS = {"train": "text.jsonl", "valid": "valid.jsonl"}


def readable(text: str) -> str:
    """Text without runs of blank lines; of a book, the text alone, a line for a paragraph."""
    text = text.replace("\r\n", "\n").removeprefix("\ufeff")
    book = re.search(r"\*\*\* ?START OF.*?\*\*\*(.*?)(\*\*\* ?END OF|$)", text, re.DOTALL)
    if book:
        # A line that ends where a line is full goes on in the next one.
        text = re.sub(r"(?<=\S)[ \t]*\n(?=[^\s])", " ", book[1])
        text = re.sub(r"_([^_\n]+)_", r"\1", text)
    return re.sub(r"\n\s*\n\s*\n+", "\n\n", text).strip()


def write_text(place: Path, corpus: ByteCorpus) -> None:
    """Write the prose of a corpus, and what is held out of it."""
    for part, name in PARTS.items():
        texts = (readable(each.decode()) for each in corpus.documents(part, "prose"))
        rows = [json.dumps({"text": each}, ensure_ascii=False) for each in texts]
        (place / name).write_text("\n".join(rows) + "\n")


def main() -> None:
    """Do every part that is not done."""
    options = parser(__doc__)
    options.add_argument("corpus", type=Path)
    options.add_argument("--work", type=Path, default=Path(".hotgrid/default-chat"))
    options.add_argument("--vocabulary", type=int, default=4096)
    options.add_argument("--depth", type=int, default=6)
    options.add_argument("--size", type=int, default=320)
    options.add_argument("--context", type=int, default=512)
    options.add_argument("--tokens", type=int, default=400_000_000)
    options.add_argument("--batch-tokens", type=int, default=131_072)
    asked = options.parse_args()
    place, corpus = asked.work, ByteCorpus(asked.corpus)
    place.mkdir(parents=True, exist_ok=True)
    if not (place / PARTS["valid"]).exists():
        write_text(place, corpus)
    text, valid = (place / name for name in PARTS.values())
    data = TextData([text], valid=[valid], valid_tokens=500_000)
    if not (place / "tokenizer.json").exists():
        made = train_vocabulary(data, asked.vocabulary, name="hotgrid-small")
        save_huggingface(made, place / "tokenizer.json")
    encoding = find_vocabulary(place / "tokenizer.json")
    recipe = Recipe.of(
        asked.depth,
        vocabulary=encoding.n_vocab,
        size=asked.size,
        heads=asked.size // 64,
        context=asked.context,
        tokens=asked.tokens,
        batch_tokens=asked.batch_tokens,
    )
    for row in recipe.rows():
        print("{:16} {:>16}  {}".format(*row))
    rows = [each for each in corpus.card["sources"] if each["kind"] == "prose"]
    names = {each["source"]: each["licence"] for each in rows if not each["held"]}
    card = {"name": "hotgrid-small", "data": list(names), "licences": names, "not": NOT}
    gpu = asked.device == "cuda"
    run = RunSettings(
        place / "run",
        resume="auto",
        device=asked.device,
        precision="bfloat16" if gpu else "float32",
        compiled=gpu,
        average=0.999,
    )
    base = pretrain(data, encoding, recipe, run, card=card)
    finish(place, LanguageModel(base.model.cpu().float(), encoding, base.card))


def finish(place: Path, base: LanguageModel) -> None:
    """Compress, measure, write the card, and insist on the size."""
    rows = text_rows(base, [place / PARTS["valid"]], most_tokens=131_072)
    small = compress_model(base, "int8", rows=rows)
    shown = [samples(small, 1, prompt=prompt, max_tokens=60)[0] for prompt in PROMPTS]
    card = {**small.card, "name": "hotgrid-small", "samples": shown}
    folder = place / "default"
    save_model(folder, LanguageModel(small.model, small.encoding, card))
    found = measure(load_model(folder), rows, folder)
    size = sum(each.stat().st_size for each in folder.iterdir())
    figures = {
        **card["figures"],
        "bits per byte, int8": found.text.bits_per_byte,
        "tokens a second here": found.tokens_per_second,
    }
    save_model(folder, LanguageModel(small.model, small.encoding, {**card, "figures": figures}))
    print(json.dumps(figures, indent=2))
    print(*shown, sep="\n---\n")
    print(f"{size:,} bytes in {folder}")
    if size > MOST:
        sys.exit(f"that is more than {MOST:,}: choose a smaller --size or --vocabulary")


if __name__ == "__main__":
    main()
