"""Define the errors that are reported to callers, and who can correct each of them.

FermataError
  ApiError           the caller can correct it; `status` and `message` become the HTTP response
    InvalidRequest     400   Unauthorized  401   Forbidden        403   NotFound  404
      LogRewound           the client has seen an event that the turn's log does not have
    MethodNotAllowed   405   Conflict      409   PayloadTooLarge  413
    PaymentRequired    402  a budget is used up until it renews
    Gone               410  the resource existed and has expired
    Unprocessable      422  the request is valid, but the chosen model cannot fulfil it
    BadGateway         502  a provider refused the request, and would refuse it again
    ServiceUnavailable 503  the same request may succeed after `retry_after` seconds
  ProviderError        the provider refused, failed or stalled; ends a round, and possibly the turn

Any other exception is a bug: the response is a 500 without its text, and it is logged with its traceback.
"""

from fermata.domain.model_io import TokenUsage


class FermataError(Exception):
    """Base class of all errors that are no bugs."""


class ApiError(FermataError):
    """An error for the caller. `message` says what is wrong and what to do about it."""

    status = 400
    code: str | None = None
    """Set where a client's program, and not its user, can correct it."""

    def __init__(self, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after = retry_after
        self.details: dict[str, int] = {}
        """Further members of the response, for the client's program."""


class InvalidRequest(ApiError):
    status = 400


class LogRewound(InvalidRequest):
    """The client names an event that the turn's log does not have. It has seen it only if the log was restored."""

    code = "logRewound"

    def __init__(self, message: str, *, last_seq: int) -> None:
        super().__init__(message)
        self.details = {"lastSeq": last_seq}


class Unauthorized(ApiError):
    status = 401


class PaymentRequired(ApiError):
    status = 402


class Forbidden(ApiError):
    status = 403


class NotFound(ApiError):
    status = 404


class MethodNotAllowed(ApiError):
    status = 405


class Conflict(ApiError):
    status = 409


class Gone(ApiError):
    status = 410


class PayloadTooLarge(ApiError):
    status = 413


class Unprocessable(ApiError):
    status = 422


class BadGateway(ApiError):
    status = 502


class ServiceUnavailable(ApiError):
    status = 503


class ProviderError(FermataError):
    """A failed provider request. `message` may be shown to end users and holds no secret.

    Attributes:
        code: One of provider_auth, provider_quota, provider_overloaded, provider_error, provider_request,
            provider_overflow (more tokens or images than the model accepts), provider_images (an image cannot be
            read, or the model does not accept images), provider_stalled, provider_unreachable, provider_closed (the
            request was aborted by us), provider_empty (an answer with neither text nor calls).
        retryable: Whether the same request may succeed later.
        tokens: The usage that the provider had reported before the failure.
        detail: The provider's full message, for logs only.
        window_tokens: The context window that a refused request exceeds, if the provider has said how large it is.
    """

    tokens: TokenUsage | None = None
    detail: str = ""
    window_tokens: int | None = None

    def __init__(
        self, code: str, message: str, *, retryable: bool, retry_after: float | None = None, status: int | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable
        self.retry_after = retry_after
        self.status = status
