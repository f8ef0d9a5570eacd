"""The commands of `hotgrid chat`, as import strings."""

from types import MappingProxyType

from cyclopts import App

from hotgrid.cli._command_group import command_group

_EPILOGUE = """\
DATA are files, folders and globs: .txt and .md (a document each), .jsonl and
.parquet (by --column), all but parquet also as .gz, .bz2 or .xz. MODEL is a
model folder, the folder of a run, or a folder in the layout of Llama.

Examples:
  hotgrid chat talk
  hotgrid chat tokenizer books/ --size 8192 --out tokenizer.json
  hotgrid chat train books/ --depth 4 --tokenizer tokenizer.json --out out/base
  hotgrid chat tune out/base dialogues.jsonl --out out/tuned
  hotgrid chat talk out/tuned
"""

# Name: where it is, what it does, examples.
_COMMANDS = MappingProxyType(
    {
        "tokenizer": (
            "_tokenizer:tokenizer",
            "Train a vocabulary on text.",
            """\
Examples:
  hotgrid chat tokenizer books/ --size 8192 --out tokenizer.json
  hotgrid chat tokenizer shards/ --column text --size 32768 --out 32k.json
""",
        ),
        "train": (
            "_train:train",
            "Train a model on text.",
            """\
All other values are derived from --depth; the printed table shows how. Each
can be overridden. A run that was interrupted continues with --resume.

Examples:
  hotgrid chat train books/ --depth 4 --out out/base
  hotgrid chat train books/ --depth 4 --out out/base --resume
  hotgrid chat train books/ --depth 2 --steps 200 --batch-tokens 4096
  hotgrid chat train shards/ --depth 12 --precision bfloat16 --compile
  torchrun --nproc-per-node 8 -m hotgrid chat train shards/ --depth 20
""",
        ),
        "tune": (
            "_tune:tune",
            "Fine-tune a model on conversations.",
            """\
Each line of DATA has {"messages": [{"role": "user", "content": "..."}, ...]},
or "question" and "answer", or "text". Only replies count in the loss.

Examples:
  hotgrid chat tune out/base dialogues.jsonl --out out/tuned
  hotgrid chat tune out/base dialogues.jsonl --method lora --out out/tuned
  hotgrid chat tune out/base a.jsonl --method select --select "//MLP//Linear"
""",
        ),
        "eval": (
            "_eval:evaluate",
            "Evaluate a model.",
            """\
Examples:
  hotgrid chat eval out/base --text held-out/
  hotgrid chat eval out/tuned --choices mmlu.jsonl --answers gsm8k-test.jsonl
  hotgrid chat eval --samples 3 --json
""",
        ),
        "talk": (
            "_talk:talk",
            "Talk with a model in the terminal.",
            """\
Examples:
  hotgrid chat talk
  hotgrid chat talk out/tuned --temperature 0.7 --system "Be brief."
  hotgrid chat talk out/demo --prompt "The sea is" --max-tokens 40 --seed 1
""",
        ),
        "serve": (
            "_serve:serve",
            "Serve a model over HTTP, as OpenAI's clients expect it.",
            """\
Examples:
  hotgrid chat serve
  hotgrid chat serve out/tuned --port 8000
  HOTGRID_CHAT_KEY=secret hotgrid chat serve out/tuned --host 0.0.0.0
""",
        ),
        "compress": (
            "_compress:compress",
            "Make a model smaller, and measure what that costs.",
            """\
Examples:
  hotgrid chat compress out/tuned --target int8 --out out/small
  hotgrid chat compress out/tuned --target 4bit --text held-out/ --out out/small
""",
        ),
        "export": (
            "_export:export",
            "Write a model for other tools, such as transformers.",
            """\
The folder has the layout of Hugging Face's Llama, with the vocabulary and the
template of conversations. Only models that were trained with --llama fit.

Examples:
  hotgrid chat train books/ --depth 4 --llama --out out/base
  hotgrid chat export out/base --out out/llama
""",
        ),
        "loader-bench": (
            "_loader:loader_bench",
            "Measure how fast text becomes batches.",
            """\
Examples:
  hotgrid chat loader-bench books/
  hotgrid chat loader-bench 'shards/*.parquet' --context 2048 --threads 4 --json
""",
        ),
        "demo": (
            "_demo:demo",
            "Train a tiny model in about two minutes, and talk with it.",
            """\
The text is the documentation of Python's standard library, which every machine
with Python has.

Examples:
  hotgrid chat demo
  hotgrid chat demo --minutes 10 --out out/demo
""",
        ),
    }
)


def chat_group() -> App:
    """The group of commands."""
    return command_group(
        "chat",
        "Train, fine-tune, evaluate and chat with language models.",
        _EPILOGUE,
        _COMMANDS,
    )
