"""Texts and files on their way to the trainer, which counts their words."""

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

from hotgrid.errors import ArgumentError
from hotgrid.tokens._specials import repaired

Source: TypeAlias = str | bytes | Path

_BLOCK_BYTES = 32 << 20


class LexerSources:
    """Counts by one of the native lexers: in blocks, on all threads.

    Args:
        trainer: A `TokenTrainer` of the native core.
        report: Called with how many bytes have been counted.
    """

    def __init__(self, trainer: Any, report: Callable[[int], None]) -> None:
        self.trainer = trainer
        self.report = report
        self.size = 0
        self.waiting: list[str | bytes] = []
        self.waiting_size = 0

    def add(self, sources: Iterable[Source]) -> None:
        """Count the words of all sources."""
        for source in sources:
            if isinstance(source, Path):
                self._add_file(source)
            else:
                self.waiting.append(_checked(source))
                self.waiting_size += len(source)
                if self.waiting_size >= _BLOCK_BYTES:
                    self._flush()
        self._flush()

    def _flush(self) -> None:
        texts, self.waiting = self.waiting, []
        size, self.waiting_size = self.waiting_size, 0
        try:
            self._add_texts(texts)
        except ValueError as problem:
            raise ArgumentError(f"a text of `texts_or_files` is not UTF-8: {problem}") from None
        self._counted(size)

    def _add_texts(self, texts: list[str | bytes]) -> None:
        try:
            self.trainer.add_texts(texts)
        except UnicodeEncodeError:
            self.trainer.add_texts(
                [repaired(text) if isinstance(text, str) else text for text in texts]
            )

    def _counted(self, size: int) -> None:
        self.size += size
        self.report(self.size)

    def _add_file(self, path: Path) -> None:
        held, gone = b"", 0
        try:
            with path.open("rb") as file:
                # Text that cannot be cut yet doubles, so nothing is read too often.
                while block := file.read(max(_BLOCK_BYTES, len(held))):
                    held += block
                    covered = self.trainer.add_beginning(held)
                    held = held[covered:]
                    gone += covered
                    self._counted(covered)
            self.trainer.add_texts([held])
            self._counted(len(held))
        except OSError as problem:
            raise _unreadable(path, problem) from None
        except ValueError:
            raise ArgumentError(
                f"`{path}` is not UTF-8: byte {gone + _valid(held)} begins no character"
            ) from None


class RegexSources:
    """Counts by any pattern, through the `regex` library: whole texts, on one thread.

    Args:
        trainer: A `TokenTrainer` of the native core.
        split: Cuts a text into words.
        specials: A finder of special tokens, or None.
        report: Called with how many bytes have been counted.
    """

    def __init__(
        self,
        trainer: Any,
        split: Callable[[str], list[str]],
        specials: Any,
        report: Callable[[int], None],
    ) -> None:
        self.trainer = trainer
        self.split = split
        self.specials = specials
        self.report = report

    def add(self, sources: Iterable[Source]) -> None:
        """Count the words of all sources."""
        size = flushed = 0
        words: Counter[str] = Counter()
        for source in sources:
            text = _text(source)
            size += len(text)
            if self.specials is None:
                words.update(self.split(text))
            else:
                for stretch, _ in self.specials.segments(text):
                    words.update(self.split(stretch))
            if size - flushed >= _BLOCK_BYTES:
                self.trainer.add_words(words)
                words, flushed = Counter(), size
                self.report(size)
        self.trainer.add_words(words)
        self.report(size)


def _valid(data: bytes) -> int:
    """How many bytes are UTF-8, up to the first that is not."""
    try:
        data.decode()
    except UnicodeDecodeError as problem:
        return problem.start
    return len(data)


def _checked(source: str | bytes) -> str | bytes:
    if not isinstance(source, (str, bytes)):
        raise TypeError(
            "`texts_or_files` must hold texts (str or bytes) and files (pathlib.Path), "
            f"got {type(source).__name__}"
        )
    return source


def _text(source: Source) -> str:
    try:
        if isinstance(source, Path):
            return source.read_bytes().decode()
        source = _checked(source)
        if isinstance(source, str):
            return source if source.isascii() else repaired(source)
        return source.decode()
    except OSError as problem:
        raise _unreadable(source, problem) from None
    except UnicodeDecodeError as problem:
        what = f"`{source}`" if isinstance(source, Path) else "a text of `texts_or_files`"
        raise ArgumentError(f"{what} is not UTF-8: {problem}") from None


def _unreadable(path: object, problem: OSError) -> ArgumentError:
    return ArgumentError(f"cannot read `{path}`: {problem.strerror or problem}")
