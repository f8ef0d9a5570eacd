"""cli: the `hotgrid` command. Top floor; thin, the rooms below do the work.

One file per command group, and commands are named by import string, so that
`hotgrid --help` imports neither torch nor the command it describes.
"""

from ._main import main as main
