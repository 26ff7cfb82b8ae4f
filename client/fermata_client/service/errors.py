"""Define the errors of a request to the service.

FermataClientError
  ServiceUnreachableError   no answer: connection refused, reset or timed out
  InvalidResponseError      an answer or a stream that is not the JSON it should be
  RequestRefusedError       an answer with an error status: `status`, `error`, `retry_after`, `code`
  TurnLostError             a turn that could not be followed to its end within the retry policy
"""

from fermata_client.service.json_types import JsonObject


class FermataClientError(Exception):
    pass


class ServiceUnreachableError(FermataClientError):
    pass


class InvalidResponseError(FermataClientError):
    pass


class RequestRefusedError(FermataClientError):
    """An answer with an error status.

    `retry_after` is in seconds, None where the service sent no such header. `code` names what a program can correct.
    `body` has all members of the answer.
    """

    def __init__(
        self,
        status: int,
        error: str,
        retry_after: float | None = None,
        code: str | None = None,
        body: JsonObject | None = None,
    ) -> None:
        super().__init__(f"{error} (HTTP {status})")
        self.code = code
        self.body = body or {}
        self.status = status
        self.error = error
        self.retry_after = retry_after


class TurnLostError(FermataClientError):
    pass


def is_retryable(error: FermataClientError) -> bool:
    """Return whether the same request may succeed a moment later."""
    match error:
        case ServiceUnreachableError() | InvalidResponseError():
            return True
        case RequestRefusedError(status=status):
            return status in (408, 425, 429) or status >= 500
        case _:
            return False
