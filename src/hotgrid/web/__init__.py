"""web: one small server for live pages.

It knows neither grids nor chats. It serves files and sockets on loopback behind a token,
checks Host and Origin, limits messages, and sends each viewer the latest frame only.
"""

from ._guard import Guard as Guard
from ._messages import (
    Check as Check,
    Limits as Limits,
    MessageError as MessageError,
    PageMessage as PageMessage,
    list_of as list_of,
    number_in as number_in,
    one_of as one_of,
    optional as optional,
    parse_message as parse_message,
    text_of as text_of,
    truth as truth,
    whole_in as whole_in,
)
from ._page_files import PageFiles as PageFiles
from ._server import PageServer as PageServer
from ._viewer import Viewer as Viewer
