"""Messages from pages: what is taken, what is refused, and nothing else happens."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from hotgrid.grid.view._orders import KINDS
from hotgrid.web import Limits, MessageError, number_in, optional, parse_message, truth
from hotgrid.web._messages import Meter

SMALL = {"say": {"loud": truth, "often": optional(number_in(0, 9), 1.0)}, "stop": {}}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=20,
)


def test_a_message_has_its_fields_checked():
    found = parse_message('{"type": "say", "id": 3, "loud": true}', SMALL)
    assert (found.type, found.id, found.fields) == ("say", 3, {"loud": True, "often": 1.0})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"x", "must be text, not bytes"),
        ("", "a JSON object"),
        ("[1]", "a JSON object"),
        ("[" * 100000, "at most"),
        ("[" * 50000, "a JSON object"),
        ('{"type": "fly"}', "no message of type 'fly'"),
        ('{"type": ["say"]}', "no message of type"),
        ('{"type": "say"}', "`loud` of `say` must be true or false"),
        ('{"type": "say", "loud": 1}', "must be true or false"),
        ('{"type": "say", "loud": true, "often": NaN}', "a JSON object"),
        ('{"type": "say", "loud": true, "often": 1e999}', "a number from 0 to 9"),
        ('{"type": "say", "loud": true, "often": true}', "a number from 0 to 9"),
        ('{"type": "stop", "now": 1}', "has no field `now`"),
        ('{"type": "stop", "id": "x"}', "`id` must be a whole number"),
        ('{"type": "stop", "pad": "' + "x" * 70000 + '"}', "at most 65536 bytes"),
    ],
)
def test_errors_are_reported(text: Any, problem: str):
    with pytest.raises(MessageError, match=problem):
        parse_message(text, SMALL)


def test_a_whole_number_may_be_too_large_for_a_float():
    for check in (number_in(), number_in(low=0)):
        with pytest.raises(MessageError, match="`n` of `x` must be a number"):
            parse_message('{"type": "x", "n": 1' + 400 * "0" + "}", {"x": {"n": check}})


@given(st.text() | ANYTHING.map(json.dumps))
def test_any_text_is_a_message_or_a_message_error(text: str):
    with contextlib.suppress(MessageError):
        parse_message(text, KINDS)


@given(st.sampled_from(sorted(KINDS)), st.data())
def test_any_fields_of_a_known_message_are_taken_or_refused(kind: str, data: st.DataObject):
    fields = {name: data.draw(ANYTHING) for name in KINDS[kind] if data.draw(st.booleans())}
    text = json.dumps({**fields, "type": kind})
    try:
        found = parse_message(text, KINDS)
    except MessageError:
        return
    assert found.fields.keys() == KINDS[kind].keys()


def test_a_meter_lets_a_burst_through_and_then_so_many_a_second():
    now = [0.0]
    meter = Meter(Limits(rate=10, burst=3), lambda: now[0])
    assert [meter.take() for _ in range(4)] == [True, True, True, False]
    now[0] = 0.1
    assert [meter.take() for _ in range(2)] == [True, False]
    now[0] = 100.0
    assert sum(meter.take() for _ in range(10)) == 3
