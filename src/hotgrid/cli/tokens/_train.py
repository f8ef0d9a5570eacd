"""`hotgrid tokens train`: a vocabulary from texts."""

from collections.abc import Iterator, Sequence
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from hotgrid.cli._terminal import Terminal
from hotgrid.cli._whole_number import WholeNumber, read_whole_number
from hotgrid.errors import ArgumentError

from ._choice import pattern_of
from ._input import Errors, Files, Source, leave_out, sources
from ._names import named_visibly, printable, quoted, visible
from ._output import refuse_existing

if TYPE_CHECKING:
    from hotgrid.tokens import Encoding

_SUFFIXES = (".json", ".tiktoken")


def train(
    *files: Files,
    vocab_size: Annotated[int, Parameter(converter=read_whole_number)],
    out: Path,
    pattern: str = "cl100k",
    special: tuple[str, ...] = ("<|endoftext|>",),
    min_frequency: WholeNumber = None,
    max_token_length: WholeNumber = None,
    errors: Errors = "strict",
    force: bool = False,
    json: bool = False,
) -> None:
    """Train a vocabulary on texts.

    Args:
        files: Files, folders or globs; standard input if there are none, or for `-`.
        vocab_size: How many tokens, with the 256 bytes and the special ones.
        out: The file to write; its suffix .json or .tiktoken chooses the format.
        pattern: How texts are split into words: gpt2, cl100k, llama3, qwen2, o200k, or a regex;
            by default cl100k.
        special: A special token; repeatable, by default `<|endoftext|>`.
        min_frequency: How often a pair must occur to become a token; by default once.
        max_token_length: Bytes that a token may have at most; by default 65535.
        errors: What to do about bytes that are not UTF-8: strict refuses the file, replace
            reads them as U+FFFD; by default strict.
        force: Replace the file if it exists.
        json: Print one JSON object instead of a line.
    """
    from hotgrid import tokens

    if out.suffix not in _SUFFIXES:
        raise ArgumentError(
            f"`--out {visible(out)}` must end in .json (a tokenizer.json, which holds "
            "everything) or .tiktoken (the tokens only)"
        )
    refuse_existing(out, force=force)
    regex = pattern_of(pattern)
    found = sources(files)
    with named_visibly(out, *(source.path for source in found)):
        encoding = tokens.train(
            _texts(found, errors),
            vocab_size,
            pattern=regex,
            special_tokens=special,
            min_frequency=1 if min_frequency is None else min_frequency,
            max_token_length=max_token_length,
            name=out.stem,
        )
        save = tokens.save_tiktoken if out.suffix == ".tiktoken" else tokens.save_huggingface
        save(encoding, out)
    _report(encoding, out, pattern, vocab_size, json=json)


def _texts(found: Sequence[Source], errors: Errors) -> Iterator[str | Path]:
    """Files as paths where that can be, since those are read in parts."""
    for source in found:
        if source.path is not None and source.named and errors == "strict":
            if not source.path.exists():
                raise ArgumentError(f"there is no file `{visible(source.path)}`")
            yield source.path
            continue
        try:
            if source.path is None or errors == "replace":
                yield source.whole(errors)
            else:
                for _ in source.parts():
                    pass
                yield source.path
        except ArgumentError as problem:
            leave_out(source, problem)


def _report(encoding: "Encoding", out: Path, pattern: str, wanted: int, *, json: bool) -> None:
    console = Terminal(highlight=False)
    specials = encoding._special_tokens
    lost = specials if out.suffix == ".tiktoken" else {}
    written = encoding.n_vocab - len(lost)
    facts: dict[str, Any] = {
        "file": printable(out),
        "tokens": written,
        "special_tokens": dict(specials),
        "pattern": encoding._pat_str,
    }
    if json:
        console.out(dumps(facts, indent=2, ensure_ascii=False), highlight=False)
        return
    summary = f"Wrote {visible(out)} with {written:,} tokens"
    if encoding.n_vocab < wanted:
        summary += f"; the texts have no pairs for more of the {wanted:,}"
    lines = [f"{summary}."]
    if lost:
        names = ", ".join(f"{visible(name)} ({number})" for name, number in lost.items())
        lines.append(
            f"A .tiktoken file cannot contain special tokens: without {names}. "
            "A .json file keeps them."
        )
    use = f"--vocab {quoted(out)}"
    if out.suffix == ".tiktoken":
        use += f" --pattern {quoted(pattern)}"
    for line in (*lines, f"Use it with `{use}`."):
        console.print(line, markup=False, soft_wrap=True)
