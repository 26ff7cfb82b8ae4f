"""Define the error of a rejected request."""

from collections.abc import Mapping
from typing import Any


class RequestRejected(Exception):
    """A request that the real API rejects, with the error's type and HTTP status."""

    def __init__(self, message: str, *, kind: str = "invalid_request_error", status: int = 400) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.status = status

    def to_body(self) -> dict[str, Any]:
        """Make the response body as Anthropic's API does."""
        return {"type": "error", "error": {"type": self.kind, "message": self.message}}


def require(condition: bool, message: str) -> None:
    """Reject the request with this message unless the condition holds."""
    if not condition:
        raise RequestRejected(message)


def require_bearer_token(headers: Mapping[str, str]) -> None:
    """Reject a request whose authorization is no bearer token. None at all is fine."""
    if not headers.get("authorization", "Bearer ").startswith("Bearer "):
        raise RequestRejected("You didn't provide an API key.", status=401)
