"""A plain `pip install .` brings all that the package imports."""

import re
import sys
import tomllib

from .packages import ROOT, SOURCE
from .test_types import imported

# Imported on demand, and the extra that installs it.
EXTRAS = {
    "av": "video",
    "anywidget": "notebook",
    "gymnasium": "rl",
    "huggingface_hub": "hub",
    "pyarrow": "parquet",
    "pypdfium2": "pdf",
    "simplejpeg": "images",
    "starlette": "view",
    "trimesh": "mesh",
    "uvicorn": "view",
}
# What comes with a dependency: triton with torch, Pillow with matplotlib, traitlets with
# anywidget.
BROUGHT = {"triton", "PIL", "traitlets"}


def test_what_the_package_imports_is_installed_with_it():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    plain = set(re.findall(r"^[\w-]+", "\n".join(project["dependencies"]), re.MULTILINE))
    plain |= {*sys.stdlib_module_names, "hotgrid", "__future__"}
    texts = [path.read_text("utf-8") for path in SOURCE.rglob("*.py")]
    found = set().union(*(imported(text, frozenset(plain)) for text in texts))
    assert found - plain - BROUGHT == set(EXTRAS)
    assert all(extra in project["optional-dependencies"] for extra in EXTRAS.values())
