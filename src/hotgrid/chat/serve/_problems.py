"""Errors of the API, in the form that OpenAI's clients read."""

from typing import Any

from starlette.responses import JSONResponse

from hotgrid.errors import HotgridError


class ApiError(HotgridError):
    """An answer that is an error.

    Args:
        status: The HTTP status.
        message: What is wrong and what to do.
        param: The field that is wrong.
        code: A word for programs.
        kind: OpenAI's type of error.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        kind: str = "invalid_request_error",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body: dict[str, Any] = {
            "error": {"message": message, "type": kind, "param": param, "code": code}
        }

    def response(self) -> JSONResponse:
        """Return it as an answer."""
        headers = {"Retry-After": "1"} if self.status in (429, 503) else None
        return JSONResponse(self.body, self.status, headers)


def wrong(param: str, message: str, code: str | None = None) -> ApiError:
    """Return the error of a field."""
    return ApiError(400, message, param=param, code=code)
