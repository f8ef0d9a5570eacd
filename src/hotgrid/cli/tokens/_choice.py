"""Which encoding a command of `hotgrid tokens` uses."""

from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from hotgrid.errors import ArgumentError
from hotgrid.tokens import DEFAULT_ENCODING

from ._names import named_visibly, printable, visible

if TYPE_CHECKING:
    from hotgrid.tokens import Encoding

_ENCODING = f"An encoding by name, by default {DEFAULT_ENCODING}; see `hotgrid tokens vocabs`."
_VOCAB = "A vocabulary of your own instead: a .tiktoken file or a tokenizer.json."
_PATTERN = "How a .tiktoken file splits texts: gpt2, cl100k, llama3, qwen2, o200k, or a regex."


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Choice:
    """The options that choose an encoding, the same for every command."""

    encoding: Annotated[str | None, Parameter(help=_ENCODING)] = None
    vocab: Annotated[Path | None, Parameter(help=_VOCAB)] = None
    pattern: Annotated[str | None, Parameter(help=_PATTERN)] = None

    def load(self) -> "Encoding":
        """The encoding.

        Raises:
            ArgumentError: The options do not go together, or a file cannot be used.
            DamagedError: A file of ranks is not the one it is named for.
            MissingPartError: A file of ranks is missing and cannot be downloaded.
        """
        from hotgrid.tokens import get_encoding

        if self.pattern is not None and (self.vocab is None or self.vocab.suffix == ".json"):
            raise ArgumentError(
                "`--pattern` is how a .tiktoken file splits texts; use it with "
                "`--vocab FILE.tiktoken` only, as others contain it"
            )
        if self.vocab is None:
            return get_encoding(self.encoding or DEFAULT_ENCODING)
        if self.encoding is not None:
            raise ArgumentError("`--encoding` and `--vocab` are two encodings; give one")
        with named_visibly(self.vocab):
            return self._loaded(self.vocab)

    def _loaded(self, path: Path) -> "Encoding":
        from hotgrid.tokens import load_huggingface, load_tiktoken

        if path.suffix == ".json":
            return load_huggingface(path, name=_name(path))
        if path.suffix != ".tiktoken":
            raise ArgumentError(
                f"`{visible(path)}` must be a .tiktoken file or a tokenizer.json, by its suffix"
            )
        if self.pattern is None:
            raise ArgumentError(
                f"`{visible(path)}` does not contain a pattern; add `--pattern` with what "
                f"it was made for: {', '.join(patterns())}, or a regular expression"
            )
        return load_tiktoken(path, pat_str=pattern_of(self.pattern), name=_name(path))


def _name(path: Path) -> str:
    """The name of the encoding of a file: that of the folder for `tokenizer.json`."""
    own = path.resolve().parent.name if path.name == "tokenizer.json" else path.stem
    return printable(own)


def patterns() -> MappingProxyType[str, str]:
    """The patterns that have a name."""
    from hotgrid.tokens._patterns import PATTERNS

    return PATTERNS


def pattern_of(name_or_regex: str) -> str:
    """The regular expression of a name, or the one that was given.

    Raises:
        ArgumentError: It looks like a name, and no pattern has it.
    """
    from hotgrid.tokens._patterns import pattern_named

    regex = pattern_named(name_or_regex)
    if regex == name_or_regex and regex.replace("_", "").replace("-", "").isalnum():
        raise ArgumentError(
            f"there is no pattern `{regex}`; there are {', '.join(patterns())}, and any "
            "regular expression"
        )
    return regex


def has_lexer(encoding: "Encoding") -> bool:
    """Whether texts can be encoded in parts."""
    return encoding._has_lexer
