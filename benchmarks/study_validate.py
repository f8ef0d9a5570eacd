"""The full table of `hotgrid validate`, row by row as it is found, into a JSON file.

PYTHONPATH=src python benchmarks/study_validate.py [CHECK ...]

For machines that have torch and nothing else; elsewhere `hotgrid validate --json FILE`.
"""

import sys

import torch
from report import report

from hotgrid.grid.validate import validate


def main() -> None:
    rows = []
    for row in validate(only=sys.argv[1:]):
        rows.append(row.record())
        print(rows[-1], flush=True)
    gpu = torch.cuda.is_available()
    report(
        f"validate-{'cuda' if gpu else 'cpu'}",
        rows,
        torch=torch.__version__,
        device=torch.cuda.get_device_name() if gpu else "cpu",
    )


if __name__ == "__main__":
    main()
