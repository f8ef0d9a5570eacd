"""The requests of a page: every message, field by field."""

from hotgrid.web import Check, list_of, number_in, one_of, optional, text_of, truth, whole_in

_CELL = number_in(-1e9, 1e9)
_POINT = list_of(_CELL, 2, 2)
_NAME = text_of(64)
_STEP = whole_in(0, 2**53)
MAPS = ("inferno", "viridis", "magma", "cividis", "RdBu_r", "coolwarm", "binary", "gray")
"""The colour maps that a viewer may choose."""
_COLOURS = optional(one_of(*MAPS))
_PLANE: dict[str, Check] = {
    "axis": optional(whole_in(0, 2), 0),
    "slice": optional(whole_in(0, 2**31), 0),
}

LOOK = "look"
ACK = "ack"
VALUE = "value"

KINDS: dict[str, dict[str, Check]] = {
    LOOK: {
        "view": _NAME,
        "region": list_of(_CELL, 4, 4),
        "pixels": list_of(whole_in(1, 16384), 2, 2),
        **_PLANE,
        "range": optional(list_of(number_in(-3e38, 3e38), 2, 2)),
        "arrows": optional(whole_in(0, 128), 0),
        "volume": optional(truth, False),
    },
    ACK: {"frame": whole_in(0, 2**32 - 1)},
    VALUE: {"view": optional(_NAME), "at": _POINT, **_PLANE},
    "play": {},
    "pause": {},
    "step": {"count": optional(whole_in(1, 1_000_000), 1)},
    "reset": {"seed": optional(whole_in(0, 2**53))},
    "goto": {"step": _STEP},
    "speed": {"rate": number_in(0, 1e9)},
    "set": {"name": _NAME, "value": number_in(-1e300, 1e300)},
    "stroke": {
        "stroke": whole_in(0, 2**53),
        "brush": _NAME,
        "value": number_in(-1e300, 1e300),
        "radius": number_in(0, 1e5),
        "points": list_of(_POINT, 1, 1024),
        **_PLANE,
    },
    "stamp": {"rle": text_of(60000), "at": list_of(_CELL, 2, 2)},
    "undo": {},
    "redo": {},
    "save": {
        "what": one_of("picture", "checkpoint"),
        "name": text_of(64),
        "colours": _COLOURS,
    },
    "load": {"name": text_of(64)},
    "record": {"on": truth, "name": optional(text_of(64)), "colours": _COLOURS},
}
"""For each type of message its fields and their checks."""
