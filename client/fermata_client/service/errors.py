"""What can go wrong between an editor and the service.

ClientError
  Unreachable   nobody answered: connection refused, reset or timed out
  Broken        a stream carried something that is not an event
  Refused       the service answered, and the answer is no: `status`, `error`, `retry_after`
  TurnLost      a turn could not be followed to its end, however often it was tried
"""


class FermataClientError(Exception):
    pass


class ServiceUnreachableError(FermataClientError):
    pass


class InvalidResponseError(FermataClientError):
    pass


class RequestRefusedError(FermataClientError):
    def __init__(self, status: int, error: str, retry_after: float | None = None) -> None:
        super().__init__(f"{error} (HTTP {status})")
        self.status = status
        self.error = error
        self.retry_after = retry_after


class TurnLostError(FermataClientError):
    pass


def is_retryable(error: FermataClientError) -> bool:
    """Whether the same request may succeed a moment later."""
    match error:
        case ServiceUnreachableError() | InvalidResponseError():
            return True
        case RequestRefusedError(status=status):
            return status in (408, 425, 429) or status >= 500
        case _:
            return False
