"""The commands of `hotgrid ingest`, as import strings."""

from types import MappingProxyType

from cyclopts import App

from hotgrid.cli._command_group import command_group

from ._ingest import ingest

_EPILOGUE = """\
PATHS are files, folders, patterns, - for standard input, or data sets of the
hub (hf://datasets/OWNER/NAME). Rows of .jsonl and .parquet files and members
of .tar, .zip and .gz files are documents of their own. The type of a file is
detected from its first bytes: text, code, image, audio, video, PDF, an
executable, or bytes.

What cannot be read is listed in DIR/quarantine.jsonl with the reason. Sizes
can have a unit: 512KiB, 64MiB, 1GB.

Examples:
  hotgrid ingest docs/ src/ --out corpus
  hotgrid ingest "data/*.jsonl.gz" --out corpus --near 0.8 --shards 16
  hotgrid ingest scans/ --out corpus --pdf multiview --workers 8 --resume
  hotgrid ingest --text "To be, or not to be" --out corpus --segmenter space
  hotgrid ingest archive.tar.gz --out corpus --dry-run
  torchrun --nproc-per-node 4 -m hotgrid ingest data/ --out corpus
  hotgrid ingest verify corpus
"""

# Name: where it is, what it does, examples.
_COMMANDS = MappingProxyType(
    {
        "verify": (
            "_verify:verify",
            "Check every file of a corpus against its checksums.",
            """\
Exits with 1 if something is missing or changed, and names it.

Examples:
  hotgrid ingest verify corpus
  hotgrid ingest verify corpus --json
""",
        ),
        "inspect": (
            "_inspect:inspect",
            "Show what is in a corpus, or one document of it.",
            """\
A document is given by its name, its number, or the first letters of its id.

Examples:
  hotgrid ingest inspect corpus
  hotgrid ingest inspect corpus docs/guide.md
  hotgrid ingest inspect corpus 0 --json
""",
        ),
        "histogram": (
            "_histogram:histogram",
            "Count the entropies of a corpus.",
            """\
Examples:
  hotgrid ingest histogram corpus
  hotgrid ingest histogram corpus --bins 50 --json > entropy_histogram.json
""",
        ),
        "export": (
            "_export:export",
            "Write a corpus as WebDataset, JSON lines, or JSON of its sidecar.",
            """\
Examples:
  hotgrid ingest export corpus --to webdataset --out shards/
  hotgrid ingest export corpus --to jsonl --out corpus.jsonl
  hotgrid ingest export corpus --to json --out corpus.hypergraph.json
""",
        ),
    }
)


def ingest_group() -> App:
    """The group of commands; without the name of one, it ingests."""
    group = command_group(
        "ingest",
        "Convert files of any kind into a corpus of byte patches.",
        _EPILOGUE,
        _COMMANDS,
    )
    group.default(ingest)
    return group
