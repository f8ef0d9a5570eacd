"""Compute the pictures of the gallery that ship with hotgrid.

    python benchmarks/make_thumbnails.py [NAME ...] [--seconds 10]

By default those of all models. A model without a picture gets one while the gallery is open.
"""

from options import parser

from hotgrid.files import whole_file
from hotgrid.grid.view._gallery import SHIPPED, shown_models, thumbnail


def main() -> None:
    options = parser(__doc__)
    options.add_argument("names", nargs="*", metavar="NAME")
    options.add_argument("--seconds", type=float, default=10.0, help="of each (default 10)")
    given = options.parse_args()
    SHIPPED.mkdir(exist_ok=True)
    for name in given.names or shown_models():
        data = thumbnail(name, seconds=given.seconds)
        with whole_file(SHIPPED / f"{name}.png") as aside:
            aside.write_bytes(data)
        print(f"{name}: {len(data):,} bytes", flush=True)


if __name__ == "__main__":
    main()
