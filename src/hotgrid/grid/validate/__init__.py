"""validate: the truth, computed now: what is known beside what is found here.

Each check is a small function; `validate` makes them one after the other and gives
rows of reference, value, error and limit. A part of `grid`, above its models.
"""

from ._page import write_page as write_page
from ._row import Row as Row
from ._validate import check_names as check_names, validate as validate
