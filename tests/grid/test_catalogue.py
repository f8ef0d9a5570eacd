"""Models by name and by file, and building them from text options."""

import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, strategies as st

from hotgrid.errors import ArgumentError
from hotgrid.grid import (
    Field,
    Model,
    Parameter,
    build_model,
    find_model,
    models,
    options_of,
    pde,
)

OWN_MODEL = """
from dataclasses import dataclass
from hotgrid.grid import Field, Model

@dataclass
class Rest:
    cells: int = 0

class Still(Model):
    fields = (Field("u"),)
    def step(self, state, inputs, params):
        return {"u": state["u"][0, 0]}

class Unfinished(Model):
    pass

_hidden = Still
"""


class Told(Model):
    """A model with an option of every kind."""

    fields = (Field("u"),)
    rate = Parameter(0.5, "how fast", low=0, high=1)

    def __init__(
        self,
        rule: str = "B3/S23",
        *,
        count: int = 2,
        wide: bool = False,
        edge: Literal["torus", "plane"] = "torus",
        reach: float | None = None,
        name: int | str = 0,
        function: Callable[[float], float] = math.sin,
        **parameters: float,
    ) -> None:
        super().__init__(**parameters)
        self.told = (rule, count, wide, edge, reach, name, function)

    def step(self, state, inputs, params):
        return {"u": state["u"][0, 0]}


def told(**values: object) -> tuple:
    return build_model(Told, values).told  # pyright: ignore[reportAttributeAccessIssue]


def test_every_public_model_of_the_families_has_a_name_of_its_own():
    found = models()
    assert found["heat"] is pde.Heat
    assert len(set(found.values())) == len(found)
    classes = [cls for cls in vars(pde).values() if inspect.isclass(cls)]
    assert {cls for cls in classes if issubclass(cls, Model)} <= {*found.values()}


def test_names_are_class_names_in_lower_case():
    titles = {cls.__name__: name for name, cls in models().items()}
    expected = {"Heat": "heat", "GrayScott": "gray-scott", "Life3D": "life-3d"}
    assert expected.items() <= titles.items()


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(ArgumentError, match=r"no model `heet`; did you mean `heat`\?"):
        find_model("heet")


def test_a_model_of_your_own_comes_from_its_file(tmp_path: Path):
    file = tmp_path / "mine.py"
    file.write_text(OWN_MODEL)
    model = find_model(f"{file}:Still")
    assert issubclass(model, Model)
    assert [field.name for field in model.fields] == ["u"]


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        (":Stil", "has no class `Stil`; the models in it are .*; did you mean `Still`"),
        ("", "the models in it are Still"),
        (":Rest", "`Rest` in .* is not a hotgrid.grid.Model"),
        (":Unfinished", "cannot be run: it has no `step`"),
    ],
)
def test_a_class_that_is_not_a_model_is_named(ending: str, said: str, tmp_path: Path):
    file = tmp_path / "mine.py"
    file.write_text(OWN_MODEL)
    with pytest.raises(ArgumentError, match=said):
        find_model(f"{file}{ending}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n\nnext(iter([0])) / 0\n", r"mine.py:3: the file fails with ZeroDivisionError"),
        ("\ndef (\n", r"mine.py:2: the file fails with SyntaxError"),
    ],
)
def test_a_file_that_fails_says_where(text: str, said: str, tmp_path: Path):
    file = tmp_path / "mine.py"
    file.write_text(text)
    with pytest.raises(ArgumentError, match=said):
        find_model(f"{file}:Still")


def test_a_file_that_is_not_there_or_not_python(tmp_path: Path):
    with pytest.raises(ArgumentError, match="there is no file"):
        find_model("nowhere.py:Heat")
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(ArgumentError, match="is not a Python file"):
        find_model(f"{tmp_path / 'notes.txt'}:Heat")


def test_options_are_arguments_and_parameters():
    options = options_of(Told)
    assert list(options) == [
        "rule",
        "count",
        "wide",
        "edge",
        "reach",
        "name",
        "function",
        "rate",
    ]
    assert options["rate"].parameter is Told._parameters["rate"]
    assert options["count"].default == 2
    assert not any(option.needed for option in options.values())
    assert [name for name, option in options.items() if not option.writable] == ["function"]


def test_texts_become_what_the_constructor_wants():
    made = told(rule="B36/S23", count="7", wide="yes", edge="plane", reach="1.5", name="x")
    assert made == ("B36/S23", 7, True, "plane", 1.5, "x", math.sin)
    assert told(reach="none", name="12", wide="false") == told(name=12)
    assert build_model(Told, {"rate": "0.25"}).parameters == {"rate": 0.25}


def test_values_of_their_own_kind_pass():
    assert told(count=7, wide=True, reach=2)[1:5] == (7, True, "torus", 2.0)
    assert told(function=math.cos)[-1] is math.cos


@given(st.floats(0, 1))
def test_any_number_survives_being_written(value: float):
    assert build_model(Told, {"rate": repr(value)}).parameters["rate"] == value


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"cuont": "1"}, "Told has no option `cuont`; did you mean `count`"),
        ({"count": "1.5"}, "`count` must be a whole number, got '1.5'"),
        ({"count": 1.5}, "`count` must be a whole number, got 1.5"),
        ({"count": True}, "`count` must be a whole number, got True"),
        ({"wide": "perhaps"}, "`wide` must be true or false, got 'perhaps'"),
        ({"edge": "mobius"}, "`edge` must be `torus` or `plane`, got 'mobius'"),
        ({"reach": "far"}, "`reach` must be none or a number, got 'far'"),
        ({"rule": 3}, "`rule` must be a text, got 3"),
        ({"function": "sin"}, "which only Python can give, got 'sin'"),
        ({"rate": "2"}, "`rate` must be from 0 to 1, got 2"),
        ({"rate": "nan"}, "`rate` must be from 0 to 1, got nan"),
    ],
)
def test_misfits_are_reported(values: dict[str, object], said: str):
    with pytest.raises(ArgumentError, match=said):
        build_model(Told, values)


def test_missing_options_are_requested():
    class Needy(Told):
        def __init__(self, reynolds: float) -> None:
            super().__init__()

    assert options_of(Needy)["reynolds"].needed
    with pytest.raises(ArgumentError, match="Needy needs `reynolds`: a number"):
        build_model(Needy, {})
