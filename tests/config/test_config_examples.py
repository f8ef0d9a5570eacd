"""The examples in the docstrings run."""

import doctest
import importlib
import pkgutil

import pytest

import hotgrid.config
from hotgrid.config import Config, use

MODULES = [
    each.name
    for each in pkgutil.walk_packages(hotgrid.config.__path__, f"{hotgrid.config.__name__}.")
    if not each.ispkg
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str):
    with use(Config()):
        assert doctest.testmod(importlib.import_module(name)).failed == 0
