"""Talking in a terminal: a conversation, its commands, and what interrupts it."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import nn

from hotgrid.errors import ArgumentError, HotgridError, near
from hotgrid.files import whole_file
from hotgrid.kernels import CodebookLinear

from ._generate._sampling import Sampling
from ._generate._single import generate
from ._generate._text import Piece
from ._model._folder import LanguageModel
from ._prompts import conversation_tokens, is_tuned
from ._template import ChatMessage

# What a terminal acts on instead of showing it.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_HELP = """\
/reset        forget the conversation
/save FILE    write the conversation as a line of JSON, as `hotgrid chat tune` reads it
/system TEXT  say something to the model before the conversation; without TEXT, nothing
/help         this list
/quit         leave; so do Ctrl-D and two Ctrl-C
Ctrl-C stops a reply."""


def introduction(language: LanguageModel) -> str:
    """Return a line that describes a model and its limits."""
    if about := language.card.get("about"):
        return f"{language.name}: {about}"
    count = parameters(language.model) / 1e6
    size = f"a model of {count:.3g} million parameters"
    if is_tuned(language):
        return f"{language.name}: {size}, tuned to answer. What it says may be wrong."
    return (
        f"{language.name}: {size} that continues your text. It does not answer questions, "
        "and what it says may be wrong."
    )


def parameters(model: nn.Module) -> int:
    """Return how many parameters a model has; those that became codes count as before."""
    coded = (each for each in model.modules() if isinstance(each, CodebookLinear))
    plain = sum(weight.numel() for weight in model.parameters())
    return plain + sum(each.in_features * each.out_features for each in coded)


def printable(text: str) -> str:
    """Return a text in which control characters are replaced, for a terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def continuation(
    language: LanguageModel, messages: Sequence[ChatMessage], sampling: Sampling
) -> Iterator[Piece]:
    """Reply to a conversation, or continue its text."""
    return generate(language, conversation_tokens(language, messages), sampling)


@dataclass
class Talk:
    """A conversation with a model in a terminal.

    Args:
        language: The model.
        sampling: How it replies.
        read: Reads a line after a prompt, as `input`.
        write: Writes a text at once.
        system: What is said to the model before the conversation.

    Attributes:
        messages: The conversation so far.
    """

    language: LanguageModel
    sampling: Sampling
    read: Callable[[str], str]
    write: Callable[[str], None]
    system: str = ""
    messages: list[ChatMessage] = field(default_factory=list)
    _saved: set[Path] = field(default_factory=set)

    def run(self) -> None:
        """Talk until the end of the input, `/quit`, or two interrupts in a row."""
        self.write(f"{printable(introduction(self.language))}\n/help lists the commands.\n")
        interrupted = False
        while True:
            try:
                line = self.read("> ")
                interrupted = False
                if line.strip() in ("/quit", "/exit"):
                    return
                if line.startswith("/"):
                    self._command(line)
                elif line.strip():
                    interrupted = not self._reply(line)
            except EOFError:
                self.write("\n")
                return
            except KeyboardInterrupt:
                if interrupted:
                    self.write("\n")
                    return
                interrupted = True
                self.write("\nCtrl-C once more leaves.\n")
            except HotgridError as problem:
                self.write(f"{printable(str(problem))}\n")

    def _reply(self, line: str) -> bool:
        """Answer a line; False if that was interrupted. What was said is kept."""
        before = [ChatMessage("system", self.system)] if self.system else []
        said: list[str] = []
        whole = True
        try:
            asked = [*before, *self.messages, ChatMessage("user", line)]
            for piece in continuation(self.language, asked, self.sampling):
                said.append(piece.text)
                self.write(printable(piece.text))
        except KeyboardInterrupt:
            whole = False
        except ArgumentError as problem:
            raise ArgumentError(f"{problem} (/reset forgets the conversation)") from None
        self.write("\n")
        if text := "".join(said):
            self.messages += [ChatMessage("user", line), ChatMessage("assistant", text)]
        return whole

    def _command(self, line: str) -> None:
        name, _, rest = line.strip().partition(" ")
        rest = rest.strip()
        commands: dict[str, Callable[[str], None]] = {
            "/help": lambda _: self.write(f"{_HELP}\n"),
            "/reset": self._reset,
            "/save": self._save,
            "/system": self._change,
        }
        if name not in commands:
            known = (*commands, "/quit")
            raise ArgumentError(
                f"there is no {name!r}{near(name, known)}; /help lists the commands"
            )
        commands[name](rest)

    def _reset(self, _: str) -> None:
        self.messages.clear()
        kept = " What /system said stays." if self.system else ""
        self.write(f"The conversation is forgotten.{kept}\n")

    def _change(self, text: str) -> None:
        self.system = text
        told = "The system prompt is set." if text else "There is no system prompt now."
        self.write(f"{told}\n")

    def _save(self, name: str) -> None:
        if not name:
            raise ArgumentError("name a file, such as `/save talk.jsonl`")
        if not self.messages:
            raise ArgumentError("there is no conversation to save yet")
        path = Path(name).expanduser()
        if path.exists() and path not in self._saved:
            raise ArgumentError(f"`{path}` already exists; choose another name")
        first = [ChatMessage("system", self.system)] if self.system else []
        messages = [asdict(message) for message in (*first, *self.messages)]
        text = json.dumps({"messages": messages}, ensure_ascii=False)
        try:
            with whole_file(path) as file:
                file.write_bytes(f"{text}\n".encode())
        except OSError as problem:
            raise ArgumentError(f"cannot write `{path}`: {problem.strerror}") from None
        self._saved.add(path)
        self.write(f"Saved {len(self.messages)} messages in {path}.\n")


def completion(
    language: LanguageModel, prompt: str, sampling: Sampling, system: str = ""
) -> Iterable[str]:
    """Yield the reply to one message, or the continuation of a text, as it is generated."""
    first = [ChatMessage("system", system)] if system else []
    for piece in continuation(language, [*first, ChatMessage("user", prompt)], sampling):
        yield piece.text


def placed(device: str | None) -> torch.device:
    """Return a device by its name; by default the GPU if there is one.

    Raises:
        ArgumentError: There is no such device here.
    """
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as problem:
        first = str(problem).splitlines()[0]
        raise ArgumentError(f"`device` {device!r} cannot be used here: {first}") from None
