"""cut: a grid split over ranks, with margins that they exchange."""

from ._layout import (
    ASSUMED_SHARE as ASSUMED_SHARE,
    job_of as job_of,
    planned_depth as planned_depth,
)
from ._make import cut_form as cut_form, laid_out as laid_out
