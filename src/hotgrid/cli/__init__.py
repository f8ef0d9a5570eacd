"""cli: the `hotgrid` command. The top layer; the packages below do the work.

One folder per command group. Commands are registered by import string, so that
`hotgrid --help` imports neither torch nor the command it describes.
"""

from ._main import main as main
