"""The full table of `hotgrid validate`, kept row by row as it is found.

    PYTHONPATH=src python benchmarks/study_validate.py [--device cpu] [--quick] [CHECK ...]

For machines that have torch and nothing else; elsewhere `hotgrid validate --json`. With
named checks, the rows of others stay in the file.
"""

import json

import torch
from options import parser
from report import RESULTS, machine

from hotgrid.grid.validate import validate


def main() -> None:
    options = parser(__doc__)
    options.add_argument("checks", nargs="*", metavar="CHECK")
    options.add_argument("--quick", action="store_true", help="smaller grids")
    given = options.parse_args()
    gpu = given.device == "cuda"
    where = {
        **machine(),
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if gpu else "cpu",
    }
    path = RESULTS / f"validate-{given.device}{'-quick' * given.quick}.json"
    here, rows = where["processor"], {}
    if given.checks and path.exists():
        known = json.loads(path.read_text())
        where, rows = known["machine"], {row["name"]: row for row in known["rows"]}
    for row in validate(given.quick, given.device, given.checks):
        rows[row.name] = {**row.record(), "processor": here}
        verdict = "pass" if row.passed else "FAIL"
        print(f"{row.name}: {row.value:.6g} ({row.reference:.6g} +- {row.limit:.3g}) "
              f"{verdict}, {row.seconds:.1f} s, {row.setting}", flush=True)  # fmt: skip
        kept = {"name": "validate", "machine": where, "rows": [*rows.values()]}
        path.write_text(json.dumps(kept, indent=2) + "\n")


if __name__ == "__main__":
    main()
