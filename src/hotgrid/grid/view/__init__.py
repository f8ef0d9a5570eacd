"""view: watch and steer a running grid in the browser.

A `Session` runs one simulation in its own thread. Viewers join it, are shown frames of the
region they look at, and send messages, which are done between two steps.
"""

from ._app import ViewApp as ViewApp
from ._eye import Eye as Eye
from ._live import LiveRun as LiveRun
from ._look import Gaze as Gaze
from ._session import Session as Session
