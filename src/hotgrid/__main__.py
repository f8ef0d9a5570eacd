"""`python -m hotgrid` is the same program as `hotgrid`."""

from .cli import main

if __name__ == "__main__":
    main()
