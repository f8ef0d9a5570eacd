"""serve: a model behind an API in OpenAI's form, with a chat page. Needs `hotgrid[view]`.

`ChatApp` answers `/v1/models`, `/v1/chat/completions` and `/v1/completions` over an `Engine`,
and serves the page.
"""

from ._app import ChatApp as ChatApp
