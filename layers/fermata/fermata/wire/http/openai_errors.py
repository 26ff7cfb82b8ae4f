"""Write errors as OpenAI's clients read them (decision 0385)."""

from dataclasses import replace
from typing import Any, Protocol

from fermata.wire.http.messages import Response

OPENAI_PATH_PREFIX = "/v1/"
_TYPES = {401: "authentication_error", 402: "insufficient_quota", 403: "permission_error", 429: "rate_limit_error"}
_CODES = {401: "invalid_api_key", 402: "insufficient_quota", 404: "not_found"}
_QUOTA_CODES = ("provider_quota", "budget_exhausted")


class FailedAnswer(Protocol):
    """Why a turn has no answer."""

    @property
    def message(self) -> str: ...

    @property
    def code(self) -> str: ...

    @property
    def is_final(self) -> bool: ...


def shape_openai_error(path: str, response: Response) -> Response:
    """Return the response of an operation for OpenAI's clients with its error in their form; any other unchanged.

    Args:
        path: The path of the request.
        response: As the service has built it.
    """
    body = response.body
    if not path.startswith(OPENAI_PATH_PREFIX) or response.status < 400 or not isinstance(body, dict):
        return response
    words, code = body.get("error"), body.get("code") or _CODES.get(response.status)
    if not isinstance(words, str):
        return response
    return replace(response, body={"error": build_openai_error(response.status, words, code)})


def build_openai_error(status: int, message: str, code: Any = None, param: str | None = None) -> dict[str, Any]:
    """Return the object of an error.

    Args:
        status: The HTTP status that it has, or would have.
        message: What it says.
        code: What programs tell it by; None for nothing.
        param: The member of the request that it is about.
    """
    kind = _TYPES.get(status) or ("server_error" if status >= 500 else "invalid_request_error")
    return {"message": message, "type": kind, "param": param, "code": code}


def get_failure_status(failure: FailedAnswer) -> int:
    """Return the status of a request whose turn has failed. Clients repeat those from 500 on, and 429."""
    if failure.code in _QUOTA_CODES:
        return 402 if failure.is_final else 429
    return 400 if failure.is_final else 503


def build_failure_error(failure: FailedAnswer) -> dict[str, Any]:
    """Return the error of a turn that has failed."""
    return build_openai_error(get_failure_status(failure), failure.message, failure.code)
