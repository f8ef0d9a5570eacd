"""files: atomic writes, and reading only regular files.

Every file that hotgrid replaces is written with `whole_file`, every folder with `whole_folder`.
`read_regular` reads a file that may come from someone else. Light: the standard library and
`errors` are all it needs.
"""

from ._regular_file import (
    open_regular as open_regular,
    read_regular as read_regular,
    regular_stat as regular_stat,
)
from ._whole_file import sync_folder as sync_folder, whole_file as whole_file
from ._whole_folder import restore_folder as restore_folder, whole_folder as whole_folder
