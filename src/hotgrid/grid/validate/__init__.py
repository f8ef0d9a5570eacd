"""validate: compares models with exact and published results.

Each check is a small function; `validate` runs them one after the other and yields
rows of reference, value, error and limit. A part of `grid`, above its models.
"""

from ._page import write_page as write_page
from ._row import Row as Row
from ._validate import check_names as check_names, validate as validate
