"""output: pictures, films, tables and files of a simulation."""

from ._aspect import Aspect as Aspect
from ._colours import (
    CODED as CODED,
    Colours as Colours,
    colours_for as colours_for,
    colours_of as colours_of,
)
from ._export import (
    check_export as check_export,
    export as export,
    export_names as export_names,
)
from ._live_picture import (
    LivePicture as LivePicture,
    can_play as can_play,
)
from ._observations import Observations as Observations
from ._picture import (
    Picture as Picture,
    draw as draw,
    solid_cells as solid_cells,
)
from ._recorder import Recorder as Recorder
from ._terminal_picture import TerminalPicture as TerminalPicture
from ._vtk_series import VtkSeries as VtkSeries
