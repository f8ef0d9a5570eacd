"""The commands of `hotgrid tokens`, as import strings."""

from types import MappingProxyType

from cyclopts import App

from hotgrid.cli._command_group import command_group

_EPILOGUE = """\
encode, decode, count, inspect and bench take --encoding NAME or --vocab FILE.
Texts are UTF-8. No file, or `-`, is standard input.

Examples:
  hotgrid tokens count README.md 'docs/**/*.md'
  hotgrid tokens encode --text "Hello world"
  hotgrid tokens train corpus/ --vocab-size 32000 --out mine.json
  hotgrid tokens inspect --text "tokenization" --encoding o200k_base
"""

# Name: where it is, what it does, examples.
_COMMANDS = MappingProxyType(
    {
        "encode": (
            "_encode:encode",
            "Write the tokens of texts.",
            """\
Examples:
  hotgrid tokens encode --text "Hello world"
  hotgrid tokens encode book.txt --out book.npy
  hotgrid tokens encode chat.txt --specials --encoding o200k_harmony
  cat *.txt | hotgrid tokens encode --format u32 > all.u32
""",
        ),
        "decode": (
            "_encode:decode",
            "Write the text of tokens.",
            """\
Examples:
  echo 9906 1917 | hotgrid tokens decode --encoding cl100k_base
  hotgrid tokens decode book.npy --out book.txt
  hotgrid tokens encode book.txt | hotgrid tokens decode | cmp - book.txt
""",
        ),
        "count": (
            "_count:count",
            "Count bytes, characters and tokens of texts.",
            """\
A file that cannot be read is reported and left out; the exit code is then 1
if it was named, and 0 if a folder or a glob had it.

Examples:
  hotgrid tokens count README.md
  hotgrid tokens count src/ 'docs/**/*.md' --encoding o200k_base
  git diff | hotgrid tokens count --json
""",
        ),
        "train": (
            "_train:train",
            "Train a vocabulary on texts.",
            """\
A .json file (HuggingFace's tokenizer.json) holds everything. A .tiktoken file
holds the tokens only: give --pattern again when you use it.

Examples:
  hotgrid tokens train corpus/ --vocab-size 32000 --out mine.json
  hotgrid tokens train *.md --vocab-size 8000 --pattern gpt2 --out md.tiktoken
  hotgrid tokens train a.txt --vocab-size 900 --special '<|end|>' --out a.json
  hotgrid tokens count b.txt --vocab a.json
""",
        ),
        "inspect": (
            "_inspect:inspect",
            "Show the tokens of a text in colours, with their numbers.",
            """\
Tokens that are parts of one character are shown together, as in 161+224.

Examples:
  hotgrid tokens inspect --text "tokenization is fun"
  hotgrid tokens inspect README.md --html tokens.html
  hotgrid tokens inspect poem.txt --encoding o200k_base | cut -f1
""",
        ),
        "vocabs": (
            "_vocabs:vocabs",
            "List the known encodings, and which are available.",
            """\
Searched in HOTGRID_VOCAB_DIR, tiktoken's cache and hotgrid's. One that is
missing is downloaded when it is first used. Exits with 1 when a file is wrong.

Examples:
  hotgrid tokens vocabs
  HOTGRID_VOCAB_DIR=~/vocabularies hotgrid tokens vocabs --json
""",
        ),
        "bench": (
            "_bench:bench",
            "Measure how fast your text is encoded.",
            """\
benchmarks/bench_tokens.py compares with tiktoken and other libraries.

Examples:
  hotgrid tokens bench book.txt
  hotgrid tokens bench 'docs/**/*.md' --encoding o200k_base --json
""",
        ),
    }
)


def tokens_group() -> App:
    """The group of commands."""
    return command_group(
        "tokens", "Encode, decode, count, train, inspect and measure.", _EPILOGUE, _COMMANDS
    )
