"""What the tests of the project read: the layers of the design, and the packages that exist."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "hotgrid"
DOCS = ROOT / "docs"

# Top to bottom. Imports go only downward; packages of one layer do not see each other.
LAYERS_OF_DESIGN = (
    ("cli",),
    ("vision", "chat", "blt"),
    ("train",),
    ("nn", "grid"),
    ("store", "data", "tokens", "web"),
    ("cluster",),
    ("kernels",),
    ("tensors",),
    ("contracts", "config"),
    ("files", "progress", "_native"),
    ("errors",),
)

# A folder that only holds bytecode was left behind by another branch.
FOLDERS = sorted(path.name for path in SOURCE.iterdir() if any(path.rglob("*.py")))

# Packages and the packages inside them, such as `kernels` and `kernels.tune`.
PACKAGES = sorted(
    ".".join(path.parent.relative_to(SOURCE).parts)
    for folder in FOLDERS
    for path in (SOURCE / folder).rglob("__init__.py")
)


def titled(package: str) -> str:
    """The name of a package in docs and tests: `_native` is `native` there."""
    return package.lstrip("_")


def tracked(*folders: str) -> list[Path]:
    """Every file that git tracks or would track, below folders or in the whole tree."""
    # The tree may belong to another user, as it does in a container.
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"]
    found = subprocess.run(
        [*command, "--", *folders], cwd=ROOT, capture_output=True, check=True
    )
    paths = [ROOT / name.decode() for name in found.stdout.split(b"\0") if name]
    return [path for path in paths if path.is_file()]
