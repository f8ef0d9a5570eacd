"""`hotgrid tokens inspect`: a text with its tokens in colours."""

import html as markup
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from hotgrid.cli._terminal import Terminal

from ._choice import Choice
from ._input import Errors, Files, only, special_rules
from ._names import visible
from ._output import output, refuse_existing

if TYPE_CHECKING:
    from hotgrid.tokens import Encoding

_DEFAULT = Choice()
# The colours that every terminal has.
_STYLES = tuple(
    f"black on {ground}" for ground in ("yellow", "green", "cyan", "magenta", "white", "red")
)
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.7 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem;
       padding: 0 1rem; color: #101010; background: #fff; }}
pre {{ font: 15px/1.9 ui-monospace, monospace; white-space: pre-wrap;
      overflow-wrap: anywhere; }}
pre span {{ border-radius: 3px; padding: 2px 0; unicode-bidi: isolate; }}
pre i {{ font-style: normal; opacity: 0.4; }}
pre span:hover {{ outline: 2px solid #101010; }}
.t0 {{ background: #ffd6a5; }} .t1 {{ background: #caffbf; }} .t2 {{ background: #9bf6ff; }}
.t3 {{ background: #ffadad; }} .t4 {{ background: #bdb2ff; }} .t5 {{ background: #fdffb6; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p>{facts}. Hover over a token to see its number.</p>
<pre>{spans}</pre>
</body>
</html>
"""


@dataclass(frozen=True)
class Span:
    """The fewest tokens that are whole characters together, most often one.

    Attributes:
        text: The characters.
        tokens: The tokens.
        start: Where it starts, in characters.
    """

    text: str
    tokens: tuple[int, ...]
    start: int


def inspect(
    *files: Files,
    choice: Choice = _DEFAULT,
    text: str | None = None,
    specials: bool = False,
    errors: Errors = "strict",
    html: Path | None = None,
    force: bool = False,
    json: bool = False,
) -> None:
    """Show the tokens of a text in colours, with their numbers.

    Without a terminal, a line for each token: its number, a tab, its text as JSON.

    Args:
        files: One file; standard input if there is none, or for `-`.
        choice: The choice of encoding.
        text: This text instead.
        specials: Treat `<|endoftext|>` and the like as special tokens; by default they are
            ordinary text.
        errors: What to do about bytes that are not UTF-8: strict refuses the file, replace
            reads them as U+FFFD; by default strict.
        html: Write a page into this file instead; it is self-contained.
        force: Replace the page if it exists.
        json: Print one JSON object instead.
    """
    refuse_existing(html, force=force)
    source = only(files, text)
    encoding = choice.load()
    whole = source.whole(errors)
    found = list(_spans(encoding, encoding.encode(whole, **special_rules(specials))))
    console = Terminal(highlight=False)
    if html is not None:
        with output(html) as page:
            page.write(_page(source.name, encoding, found, source.bytes).encode())
        console.print(f"Wrote {visible(html)}.", markup=False, soft_wrap=True)
    elif json:
        rows = [
            {"tokens": list(span.tokens), "text": span.text, "start": span.start}
            for span in found
        ]
        answer = {"encoding": encoding.name, "tokens": _count(found), "spans": rows}
        console.out(dumps(answer, indent=2, ensure_ascii=False), highlight=False)
    elif console.is_terminal and not console.no_color:
        _colour(console, found)
        console.print(_facts(encoding, found, source.bytes), style="dim", markup=False)
    else:
        for span in found:
            numbers = " ".join(map(str, span.tokens))
            # Not through the console, which replaces tabs by blanks.
            sys.stdout.write(f"{numbers}\t{dumps(span.text, ensure_ascii=False)}\n")


def _spans(encoding: "Encoding", tokens: Iterable[int]) -> Iterator[Span]:
    held = b""
    waiting: list[int] = []
    start = 0
    for token in tokens:
        held += encoding.decode_single_token_bytes(token)
        waiting.append(token)
        try:
            text = held.decode()
        except UnicodeDecodeError:
            continue
        yield Span(text, tuple(waiting), start)
        start += len(text)
        held, waiting = b"", []


def _count(spans: Sequence[Span]) -> int:
    return sum(len(span.tokens) for span in spans)


def _facts(encoding: "Encoding", spans: Sequence[Span], size: int) -> str:
    count = _count(spans)
    share = f", {size / count:.2f} bytes a token" if count else ""
    return f"{visible(encoding.name)}: {count:,} tokens for {size:,} bytes{share}"


def _colour(console: Terminal, spans: Sequence[Span]) -> None:
    """Each line of the text in colours, and below it its tokens in the same."""
    line, numbers = Text(), Text()
    for place, span in enumerate(spans):
        style = _STYLES[place % len(_STYLES)]
        numbers.append("+".join(map(str, span.tokens)), style).append(" ")
        rows = span.text.split("\n")
        for row in rows[:-1]:
            line.append(visible(f"{row}\n"), style)
            console.print(line, soft_wrap=True)
            line = Text()
        line.append(visible(rows[-1]), style)
        if len(rows) > 1:
            console.print(numbers, soft_wrap=True)
            numbers = Text()
    if line or numbers:
        console.print(line, soft_wrap=True)
        console.print(numbers, soft_wrap=True)


def _page(name: str, encoding: "Encoding", spans: Sequence[Span], size: int) -> str:
    shown: list[str] = []
    for place, span in enumerate(spans):
        numbers = " ".join(map(str, span.tokens))
        rows = (markup.escape(visible(row)) for row in span.text.split("\n"))
        text = "<i>\u23ce</i>\n".join(rows)
        shown.append(f'<span class="t{place % len(_STYLES)}" title="{numbers}">{text}</span>')
    facts = markup.escape(_facts(encoding, spans, size))
    return _PAGE.format(
        title=markup.escape(f"Tokens of {visible(name)}"), facts=facts, spans="".join(shown)
    )
