"""The tree of commands. Commands are import strings: help never imports what it describes."""

from collections.abc import Iterable
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter

from hotgrid import __version__

from ._filled_help import FilledHelp
from ._terminal import Terminal
from .blt._group import blt_group
from .chat._group import chat_group
from .data._group import data_group
from .ingest._group import ingest_group
from .rl._group import rl_group
from .sphere._group import sphere_group
from .tokens._group import tokens_group
from .train._group import train_group
from .tune._options import examples_text, options_text
from .vision._group import vision_group

_EPILOGUE = """\
Examples:
  hotgrid models                          every model, with a one-line summary
  hotgrid run heat --steps 5000           run one and see how fast it goes
  hotgrid view karman                     watch and steer it in the browser
  hotgrid validate --quick                compare models with known results
  hotgrid tokens count README.md          how many tokens a text has
  hotgrid data bench plan.json            how fast a plan loads samples
  hotgrid train show out/run              the curves of a training run
  hotgrid chat talk                       talk with a small language model
  hotgrid vision predict photo.jpg        classify an image
  hotgrid rl train cartpole               train a reinforcement-learning agent
  hotgrid tree torch.nn:Transformer       modules and parameters of a model
  hotgrid blt patches README.md           split bytes into patches, by entropy
  hotgrid ingest docs/ --out corpus       convert files into byte patches
  hotgrid sphere view corpus              show a corpus as points on a sphere
  hotgrid doctor                          what this machine has or lacks
  hotgrid config show                     every setting and where it came from
  hotgrid -c logging.level=debug doctor   one setting for one command
  hotgrid completion bash --install       complete commands with TAB

Exit codes:
  0    success
  1    something is wrong, and the message says what
  2    the command line was not understood
  75   another rank was lost; continue from the last checkpoint with --resume
  130  interrupted
  141  the reader of the output went away
"""

_DOCTOR = """\
Report what this machine has, what is missing and what is broken.

Exits with 1 when something is broken. A note is about something optional;
it says what its absence costs and how to get it.

Examples:
  hotgrid doctor
  hotgrid doctor --quick --json | python -m json.tool
"""

_MODELS = """\
List every model that comes with hotgrid.

Examples:
  hotgrid models
  hotgrid models --json | python -m json.tool
"""

_RUN = """\
Run a model; write pictures, films, fields and observables.

A `file.py:ClassName` is your own model: the file is run. Bad input is reported
before anything is run or written.

Examples:
  hotgrid run heat --size 512x512 --steps 2000 --set rate=0.1
  hotgrid run gray-scott --out out --export png,csv --record film.mp4
  hotgrid run heat --steps 100000 --out out --checkpoint-every 10000
  hotgrid run heat --steps 200000 --out out --mesh 2x2 --resume
  hotgrid run my_model.py:MyModel --time 2.5 --out out --export vti,npz
  hotgrid run case.toml

A case file has the options as keys, and those of the model in a table:
  model = "heat"
  size = "512x512"
  steps = 2000
  out = "out"
  export = ["png", "csv"]
  [set]
  rate = 0.1
"""

_VIEW = """\
Watch and steer a running model in the browser.

The page is served to this machine only, behind a token in its address. Several
pages share one simulation. Ctrl-C ends it.

Examples:
  hotgrid view
  hotgrid view karman
  hotgrid view life --size 1024x1024 --set rule=B36/S23
  hotgrid view gray-scott --device cuda --size 2048x2048 --port 9000 --no-open
"""

_VALIDATE = """\
Compare models with exact and published results.

Every row has a reference with its source, the value found on this device, the
difference and its limit. Exits with 1 when a row fails. The whole
table takes minutes on a GPU and hours on a CPU; --quick is for the latter.

Examples:
  hotgrid validate --quick
  hotgrid validate --only glider cavity-re-100
  hotgrid validate --device cuda --html table.html
"""

_PLAN = """\
Predict memory and speed of a model on many devices.

Nothing of the planned size is allocated. Devices are named (H200, B200,
H100, A100, MI300X, ...), described by memory and copy bandwidth, or `local`:
this machine as --calibrate measured it. A plan chooses the mesh and the steps
between two exchanges; pass them to `hotgrid run --mesh --depth`.

Examples:
  hotgrid plan karman --size 131072x131072 --devices 64xH200 --link 450GB/s,3us
  hotgrid plan heat --devices "16x(80GB,3TB/s)" --link 400Gb/s,5us
  hotgrid plan karman --devices 512xH100 --link 50GB/s,5us --plot scaling.png
  hotgrid plan karman --calibrate --check
  hotgrid plan karman --size 4096x4096 --devices 4xlocal --json
"""

_TUNE = f"""\
Show, explain, fill or clear the winners of the tuner.

The fastest way to compute an op is found by timing, once for each kind of
call, and stored in the folder `autotune.cache`. So is the fastest form of a
simulation, under the name grid: it takes a model and sizes, and --set options
of the model.

Shapes of each op, and its options for --set, defaults first:
{options_text()}

Examples:
  hotgrid tune
  hotgrid tune --explain convolve
  hotgrid tune --fill topk 1024x4096 16x1024x1024 --k 3 --device cuda
  hotgrid tune --clear gemv
  hotgrid tune --explain grid heat 512x512x512 --device cuda
{examples_text()}
"""

_TREE = """\
Show and count the modules and parameters of a model.

A factory is called without memory (on the meta device) where it can be. A
file is run, as with `python file.py`. Expressions are XPath over types and
fields, as in hotgrid.nn.select; one that selects nothing is an error that
shows what is there.

Examples:
  hotgrid tree torch.nn:Transformer --depth 2
  hotgrid tree torch.nn:Linear --set in_features=768 --set out_features=3072
  hotgrid tree models/net.py:Net --select "//Linear/*[@name='weight'][@rank=2]"
  hotgrid tree models/net.py:Net --select "//Param[@trainable='true']" --json
"""

_COMPLETION = """\
Print or install shell completion.

Examples:
  hotgrid completion bash --install
  hotgrid completion zsh > ~/.zfunc/_hotgrid
"""

_CONFIG_EPILOGUE = """\
A flag (-c KEY=VALUE) wins over a HOTGRID_* variable, which wins over
hotgrid.toml (searched upward from the working folder), which wins over
defaults.

Examples:
  hotgrid config show --json
  hotgrid config init
  hotgrid config check
"""


# Name: where it is; its summary, and after a blank line what follows its options.
_COMMANDS = {
    "models": ("run._command:models", _MODELS),
    "run": ("run._command:run", _RUN),
    "view": ("view._command:view", _VIEW),
    "plan": ("plan._command:plan", _PLAN),
    "validate": ("_validate:validate", _VALIDATE),
    "tree": ("tree._command:tree", _TREE),
    "tune": ("tune._command:tune", _TUNE),
    "doctor": ("doctor._command:doctor", _DOCTOR),
    "completion": ("_completion:completion", _COMPLETION),
}


def build() -> App:
    """Return the whole command tree; call its `meta` with the arguments to run one."""
    app = App(
        name="hotgrid",
        help="Simulations on dense grids in PyTorch, from a laptop to a cluster.",
        help_epilogue=_EPILOGUE,
        help_format="plaintext",
        help_formatter=FilledHelp(),
        version=f"hotgrid {__version__}",
        console=Terminal(),
        # A file may be called `[1].jpg`, which is no JSON.
        default_parameter=Parameter(
            negative=(), show_default=False, json_list=False, json_dict=False
        ),
        result_action="return_value",
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
    )
    for name, (place, text) in _COMMANDS.items():
        summary, _, epilogue = text.partition("\n\n")
        app.command(f"hotgrid.cli.{place}", name=name, help=summary, help_epilogue=epilogue)
    app.command(tokens_group())
    app.command(data_group())
    app.command(train_group())
    app.command(chat_group())
    app.command(vision_group())
    app.command(rl_group())
    app.command(blt_group())
    app.command(ingest_group())
    app.command(sphere_group())
    app.command(_config_group())
    _add_global_options(app)
    return app


def _config_group() -> App:
    group = App(
        name="config",
        help="Show, start or check the settings of hotgrid.",
        help_epilogue=_CONFIG_EPILOGUE,
    )
    summaries = {
        "show": "Every setting, its value and where it came from.",
        "init": "Write a hotgrid.toml with every setting explained.",
        "check": "Check every setting and report what is wrong.",
    }
    for name, summary in summaries.items():
        group.command(f"hotgrid.cli._config:{name}", name=name, help=summary)
    return group


def _add_global_options(app: App) -> None:
    @app.meta.default
    def launch(
        *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
        settings: Annotated[
            tuple[str, ...],
            Parameter(name="-c", metavar="KEY=VALUE", help="Set one setting; repeatable."),
        ] = (),
    ) -> int | None:
        if not settings:
            return app(tokens)
        from hotgrid import config

        with config.use(config.load(flags=_flags(settings))):
            return app(tokens)

    app.meta.suppress_keyboard_interrupt = False


def _flags(settings: Iterable[str]) -> dict[str, str]:
    flags: dict[str, str] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not (key and equals):
            raise CycloptsError(
                msg=f"`-c {setting}` must be KEY=VALUE, such as `-c logging.level=debug`; "
                "`hotgrid config show` lists the keys."
            )
        flags[key.strip()] = value.strip()
    return flags
