"""A package shows exactly the names it promised, and its `__init__` is only a list of them."""

import ast
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import hotgrid

from .packages import FOLDERS, PACKAGES, SOURCE

PROMISED = tomllib.loads(Path(__file__).with_name("exports.toml").read_text(encoding="utf-8"))


def opened(package: str) -> ast.Module:
    path = SOURCE.joinpath(*package.split("."), "__init__.py")
    return ast.parse(path.read_text(encoding="utf-8"), path)


def public_names(package: str) -> list[str]:
    imports = [line for line in opened(package).body if isinstance(line, ast.ImportFrom)]
    return sorted(name.asname or name.name for line in imports for name in line.names)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_init_of_a_package_is_a_docstring_and_names(package: str):
    tree = opened(package)
    assert ast.get_docstring(tree), "say in a docstring what the package is for"
    for line in tree.body[1:]:
        assert isinstance(line, ast.ImportFrom), (
            f"line {line.lineno}: only `from ._file import Name as Name`"
        )
        own, errors = line.level == 1 and line.module, line.module == "hotgrid.errors"
        inner = line.level == 1 and all(f"{package}.{n.name}" in PACKAGES for n in line.names)
        assert own or errors or inner, f"line {line.lineno}: names of other packages"
        for name in line.names:
            assert name.asname == name.name, (
                f"line {line.lineno}: write `{name.name} as {name.name}`, "
                "so that readers and type checkers take it for public"
            )


# What a package keeps in a private package, such as `kernels._topk`, is not public.
OPEN = [package for package in PACKAGES if "._" not in package]


@pytest.mark.parametrize("package", sorted({*OPEN, *PROMISED}))
def test_the_public_names_of_a_package_are_those_it_promised(package: str):
    found = public_names(package) if package in OPEN else []
    promised = PROMISED.get(package, [])
    assert found == promised, (
        f"hotgrid.{package} shows {sorted({*found} - {*promised})} that are not promised and "
        f"lacks {sorted({*promised} - {*found})}. Others rely on public names. If this is "
        f"intended, change `{package}` in tests/project/exports.toml (sorted), the package's "
        "docs page and CHANGELOG.md; removing a name needs a deprecation first."
    )


# What is used most has a short name beside the packages: `hg.Simulation`.
SHORT = dict.fromkeys(
    ["Field", "Model", "Parameter", "Simulation", "lbm", "life", "neural", "observable", "pde"],
    "grid",
) | {"view": "grid.model"}


def test_hotgrid_opens_every_package_that_is_not_private():
    # `cli` is above the package itself: it imports `hotgrid`.
    packages = [name for name in FOLDERS if not name.startswith("_") and name != "cli"]
    shown = [name for name in dir(hotgrid) if not name.startswith("_")]
    assert shown == sorted([*packages, *SHORT])
    assert all(getattr(hotgrid, name).__name__ == f"hotgrid.{name}" for name in packages)
    for name, package in SHORT.items():
        assert getattr(hotgrid, name) is getattr(import_module(f"hotgrid.{package}"), name)


def test_type_checkers_see_the_same_names():
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    guarded = next(line for line in tree.body if isinstance(line, ast.If))
    assert all(isinstance(line, ast.ImportFrom) for line in guarded.body)
    seen = [name.asname for line in guarded.body for name in line.names]  # pyright: ignore
    assert sorted(seen) == [name for name in dir(hotgrid) if not name.startswith("_")]
