"""config: finds, merges and checks `hotgrid.toml`; loggers. Imports only `errors`.

A flag wins over a `HOTGRID_*` variable, which wins over the file, which wins over
the default. The result is one frozen object, `current()`, that a `with override(...)`
block can change within itself. An unknown key or a bad value is an error that
names the file, the line and the nearest valid word. Never imports torch or numpy.
"""

from ._case import (
    CASE_PATTERNS as CASE_PATTERNS,
    Case as Case,
    Dtype as Dtype,
    case_of as case_of,
    read_case as read_case,
)
from ._config import Config as Config, ConfigEntry as ConfigEntry, Origin as Origin
from ._current import current as current, override as override, use as use
from ._load import find_file as find_file, find_problems as find_problems, load as load
from ._logger import ComponentLogger as ComponentLogger, logger as logger
from ._places import CachePlace as CachePlace, cache_folder as cache_folder
from ._problem import Problem as Problem
from ._rules import File as File
from ._template import (
    default_toml as default_toml,
    write_default_toml as write_default_toml,
)
