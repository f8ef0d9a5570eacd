"""The tree of commands. Commands are import strings: help never imports what it describes."""

from collections.abc import Iterable
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter

from hotgrid import __version__

from ._terminal import Terminal

_EPILOGUE = """\
Examples:
  hotgrid doctor                          what is here, and what is wrong
  hotgrid config show                     every setting and where it came from
  hotgrid -c logging.level=debug doctor   one setting for one command
  hotgrid completion bash --install       complete commands with TAB

Exit codes:
  0    fine
  1    something is wrong, and the text says what
  2    the command line was not understood
  130  interrupted
"""

_DOCTOR_EPILOGUE = """\
Exits with 1 when something is broken. A note is something that can be missing;
it says what that costs and how to get it.

Examples:
  hotgrid doctor
  hotgrid doctor --quick --json | python -m json.tool
"""

_COMPLETION_EPILOGUE = """\
Examples:
  hotgrid completion bash --install
  hotgrid completion zsh > ~/.zfunc/_hotgrid
"""

_CONFIG_EPILOGUE = """\
A flag (-c KEY=VALUE) wins over a HOTGRID_* variable, which wins over
hotgrid.toml (searched upward from the working folder), which wins over defaults.

Examples:
  hotgrid config show --json
  hotgrid config init
  hotgrid config check
"""


def build() -> App:
    """Return the whole command tree; call its `meta` with the arguments to run one."""
    app = App(
        name="hotgrid",
        help="Coherent space-time dynamics on dense grids, and the AI tools on the same floor.",
        help_epilogue=_EPILOGUE,
        help_format="plaintext",
        version=f"hotgrid {__version__}",
        console=Terminal(),
        default_parameter=Parameter(negative=(), show_default=False),
        result_action="return_value",
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
    )
    app.command(
        "hotgrid.cli._doctor:doctor",
        name="doctor",
        help="Say what this machine has, what is missing and what is broken.",
        help_epilogue=_DOCTOR_EPILOGUE,
    )
    app.command(_config_group())
    app.command(
        "hotgrid.cli._completion:completion",
        name="completion",
        help="Print or install shell completion.",
        help_epilogue=_COMPLETION_EPILOGUE,
    )
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
        "check": "Read every setting and say what is wrong.",
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
