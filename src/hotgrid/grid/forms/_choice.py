"""Which form runs a simulation: by rule if one must win, else by timing.

Rules exclude forms that cannot run a setting (`obstacle`) or cannot be the fastest
there (`drawback`). If several are left, and the grid is large enough for the difference
to pay for compiling them all, each is timed for a few steps. The winner is
stored by the tuner of `hotgrid.kernels`, so a later process does not time again.
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING, Any

from hotgrid.errors import ArgumentError, MissingPartError, near
from hotgrid.grid.model import Field, Input, Model, State

from ._form import CELLS_OF_A_BUSY_GPU, Form, Setting
from ._roll import GraphForm, RollForm
from ._strips import StripForm
from .padded._padded import PaddedForm
from .vectors._vectors import forms_of_vectors

if TYPE_CHECKING:
    from hotgrid.cluster import Communicator
    from hotgrid.kernels.tune import Contest, Ranking

# In the order in which they are preferred where nothing is timed.
FORMS: tuple[type[Form], ...] = (GraphForm, StripForm, PaddedForm, RollForm)
# Smaller grids are not worth compiling more than one form.
CELLS_WORTH_TIMING = CELLS_OF_A_BUSY_GPU
# The steps that are timed together; a graph records this many.
_STEPS = 8


def chosen_form(
    setting: Setting,
    name: str | None = None,
    ranks: "Communicator | None" = None,
    share: int | None = None,
) -> Form:
    """The form of a setting: the one that is named, or the fastest.

    Nothing is timed here: if that is needed, the form is an `UndecidedForm`.

    Arguments:
        setting: What is run.
        name: The requested form.
        ranks: Those that run parts of the same grid, and take the same form.
        share: With them, the cells of a rank on average: they must agree on whether
            anything is timed before they communicate.

    Raises:
        ArgumentError: No such form exists, or it cannot run the setting.
    """
    if name is not None:
        return _named_form(setting, name)
    able = candidates_of(setting)
    if ranks is not None and ranks.size > 1:
        if (share or setting.cells) < CELLS_WORTH_TIMING:
            return able[0](setting)
        return UndecidedForm(setting, ranks)
    if _rule(setting, able):
        return able[0](setting)
    known = contest_of(setting, able, {}).known()
    winner = None if known is None else _fastest(able, [_seconds(known)])
    return UndecidedForm(setting) if winner is None else winner(setting)


def _rule(setting: Setting, able: Sequence[type[Form]]) -> str:
    """Why a form is taken without timing; empty where they are timed."""
    if len(able) == 1:
        return "no other form can be faster here"
    if setting.cells < CELLS_WORTH_TIMING:
        return f"grids of fewer than {CELLS_WORTH_TIMING:,} cells are not worth timing"
    return ""


def first_form(setting: Setting, name: str | None = None) -> Form:
    """The form that is named, or the one that is preferred where nothing is timed."""
    return candidates_of(setting)[0](setting) if name is None else _named_form(setting, name)


def kinds_of(setting: Setting) -> list[type[Form]]:
    """Every form that there is for a model, also those that cannot run the setting."""
    return [*_own_forms(setting.model), *FORMS]


def _own_forms(model: Model) -> Sequence[type[Form]]:
    return (*model.own_forms(), *forms_of_vectors(model))


def candidates_of(setting: Setting) -> list[type[Form]]:
    """The forms that can run a setting and may be the fastest, preferred ones first.

    A form that is defined by the model is faster than those that run every model.
    """

    def may_win(kinds: Sequence[type[Form]]) -> list[type[Form]]:
        return [k for k in kinds if not k.obstacle(setting) and not k.drawback(setting)]

    # In three dims strips were slower than whole arrays on an H200; they are tried last.
    order = sorted(FORMS, key=lambda kind: kind is StripForm and setting.rank > 2)
    return may_win(_own_forms(setting.model)) or may_win(order) or [RollForm]


class UndecidedForm(Form):
    """A state without a form yet; the form is chosen by timing before the first step.

    Arguments:
        setting: What is run.
        ranks: Those that decide together.
    """

    name = "undecided"

    def __init__(self, setting: Setting, ranks: "Communicator | None" = None) -> None:
        super().__init__(setting)
        self._ranks = ranks
        self._state: State = {}

    def load(self, state: State) -> None:
        """Keep a state for the form that is chosen later."""
        self._state = dict(state)

    def read(self) -> State:
        """The state that was loaded."""
        return self._state

    def advance(self, steps: int) -> None:
        """Advance by the form that is chosen; `settled` saves doing that again."""
        form = self.settled()
        form.run(steps)
        self.load(form.read())

    def fresh(self) -> "UndecidedForm":
        """Another undecided form."""
        return UndecidedForm(self.setting, self._ranks)

    def settled(self) -> Form:
        """The form that is the fastest here, with the state that was kept.

        With several ranks it is the one whose slowest rank is the fastest; they call this
        together.
        """
        able = candidates_of(self.setting)
        if self._ranks is not None:
            everyone = self._ranks.gather_json([kind.name for kind in able])
            able = [kind for kind in able if all(kind.name in each for each in everyone)]
        able = able or [RollForm]
        times = [self._times(able)]
        if self._ranks is not None:
            times = self._ranks.gather_json(times[0])
        form = (_fastest(able, times) or able[0])(self.setting)
        form.load(self._state)
        return form

    def _times(self, able: Sequence[type[Form]]) -> dict[str, float]:
        if len(able) == 1:
            return {}
        return _seconds(contest_of(self.setting, able, self._state).ranking())


def contest_of(
    setting: Setting, kinds: Sequence[type[Form]], state: State, limit: float = 0.0
) -> "Contest":
    """A contest of forms over a few steps of a setting, from a state."""
    from hotgrid.kernels.tune import Call, Contest

    size, batch = "x".join(map(str, setting.size)), "x".join(map(str, setting.batch))
    call = Call(
        op="grid",
        dtype=_word(setting.dtype),
        device=setting.device,
        layout=type(setting.model).__name__,
        settings={
            "size": size,
            "batch": batch or "none",
            "storage": _word(setting.storage),
            "compiled": setting.compiled,
            "model": _digest(setting.model),
        },
    )
    steps = max(
        [_STEPS, *[kind.batch_of_steps for kind in kinds if issubclass(kind, GraphForm)]]
    )
    return Contest(
        key=call.key("full"),
        device=setting.device,
        candidates={kind.name: _prepared(setting, kind, state, steps) for kind in kinds},
        units=steps,
        limit=limit,
    )


@dataclass(frozen=True)
class FormExplanation:
    """The forms of a simulation: which were timed, and why others were not.

    Attributes:
        call: The setting, as winners are kept under.
        ranking: Every form that can run it, timed now.
        obstacles: Why others cannot run it, by name.
        drawbacks: Why some that can run it are not timed unless requested, by name.
        chosen: The form that a simulation takes by itself.
        bytes: What a step must read and write.
        limit: The seconds that this takes at least; 0 where it was not measured.
        rule: Why a simulation takes `chosen` without timing; empty where it times.

    Example:
        >>> from hotgrid.grid import Simulation, explain_form, pde
        >>> sim = Simulation(pde.Heat(), size=(16, 16), device="cpu", compiled=False)
        >>> explain_form(sim).chosen
        'roll'
    """

    call: str
    ranking: "Ranking"
    obstacles: dict[str, str]
    drawbacks: dict[str, str]
    chosen: str
    bytes: float
    limit: float
    rule: str = ""


def explained(
    setting: Setting, state: State, bytes_per_step: float, limit: float
) -> FormExplanation:
    """Time every form that can run a setting, and say which one is chosen by default."""
    kinds = kinds_of(setting)
    able = [kind for kind in kinds if not kind.obstacle(setting)]
    contest = contest_of(setting, able, state, limit)
    chosen = _name_chosen(setting, state)
    return FormExplanation(
        call=contest.key,
        ranking=contest.held(thorough=True),
        obstacles={k.name: k.obstacle(setting) for k in kinds if k not in able},
        drawbacks={k.name: k.drawback(setting) for k in able if k.drawback(setting)},
        chosen=chosen,
        bytes=bytes_per_step,
        limit=limit,
        rule=_rule(setting, candidates_of(setting)),
    )


def _name_chosen(setting: Setting, state: State) -> str:
    form = chosen_form(setting)
    if isinstance(form, UndecidedForm):
        form.load(state)
    return form.settled().name


def _named_form(setting: Setting, name: str) -> Form:
    kinds = {kind.name: kind for kind in kinds_of(setting)}
    if name not in kinds:
        raise ArgumentError(
            f"`form` {name!r} is unknown; use {', '.join(kinds)}{near(name, kinds)}"
        )
    obstacle = kinds[name].obstacle(setting)
    if obstacle:
        raise ArgumentError(f"the form `{name}` cannot run here: {obstacle}")
    return kinds[name](setting)


def _prepared(
    setting: Setting, kind: type[Form], state: State, steps: int
) -> Callable[[], Callable[[], object]]:
    def prepare() -> Callable[[], object]:
        form = kind(setting)
        form.load({name: x.clone() for name, x in state.items()})
        # Twice: what is compiled or recorded by the first is not timed.
        for _ in range(2):
            form.run(steps)
        if setting.compiled and form.in_vain:
            raise MissingPartError("its steps cannot be compiled here")
        return lambda: form.run(steps)

    return prepare


def _seconds(ranking: "Ranking") -> dict[str, float]:
    """The seconds of a step in each form that can win, by name."""
    return {each.name: each.score or 0.0 for each in ranking.outcomes if each.able}


def _fastest(
    kinds: Sequence[type[Form]], times: Sequence[dict[str, float]]
) -> type[Form] | None:
    """The form whose slowest rank is the fastest; None where every form failed somewhere."""

    def slowest(kind: type[Form]) -> float:
        return max(each.get(kind.name, math.inf) for each in times)

    best = min(kinds, key=slowest)
    return best if slowest(best) < math.inf else None


def _word(kind: object) -> str:
    return str(kind).removeprefix("torch.")


def _digest(model: Model) -> str:
    """A digest of what a step computes: its class, choices, declarations and code.

    A change inside a function that a step calls is not seen; the winner is then perhaps no
    longer the fastest, and still right.
    """
    identity: list[Any] = [type(model).__module__, type(model).__qualname__, model.choices()]
    identity += [model.radius, *map(_declared, (*model.fields, *model.inputs))]
    for function in (type(model).step, type(model).phase):
        code = getattr(function, "__code__", None)
        identity += [] if code is None else [part for each in _codes(code) for part in each]
    return hashlib.sha256("\n".join(map(str, identity)).encode()).hexdigest()[:12]


def _declared(kind: Field | Input) -> str:
    return f"{kind.name} {kind.components} {kind.dtype} {getattr(kind, 'boundary', '')}"


def _codes(code: CodeType) -> Iterator[tuple[str, ...]]:
    """The instructions, names and constants of a function and of those inside it."""
    plain = [each for each in code.co_consts if not isinstance(each, CodeType)]
    # The order of a set is another in every process.
    constants = [sorted(map(repr, x)) if isinstance(x, frozenset) else repr(x) for x in plain]
    yield code.co_code.hex(), str(code.co_names), str(constants)
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)
