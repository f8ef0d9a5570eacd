"""sources: where samples come from, one file each, registered by `@source`."""

from ._arrow import ArrowFiles as ArrowFiles
from ._class_folders import ClassFolders as ClassFolders
from ._columns import CachedColumns as CachedColumns
from ._hub_folder import HubFolder as HubFolder
from ._idx import IdxFiles as IdxFiles
from ._json_lines import JsonLines as JsonLines
from ._parts import Concatenated as Concatenated, Selected as Selected, Split as Split
from ._tar import TarShards as TarShards
