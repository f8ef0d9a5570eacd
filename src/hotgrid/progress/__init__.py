"""progress: one line on standard error that shows how far long work is.

Silent where standard error is not a terminal. Needs only the standard library.
"""

from ._bar import Progress as Progress
