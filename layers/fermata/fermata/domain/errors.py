"""What can be said to somebody, and who can mend it.

FermataError
  Refusal            the caller can mend it; `status` and `error` go out as they are
    Unauthorized     401        Forbidden        403       NotFound   404
    Invalid          400        Conflict         409       TooLarge   413
    Gone             410  it was there, for as long as it was good for
    PaymentRequired  402  a budget is used up, until it renews
    Unprocessable    422  understood, but this model cannot do it
    BadGateway       502  a provider said no, and will say so again
    Unavailable      503  try again after `retry_after` seconds
  ProviderError      the provider refused, failed or fell silent; ends a round, sometimes a turn
Anything else is our own bug: it becomes a 500 without its text and is logged whole.
"""

from fermata.domain.model_io import TokenUsage


class FermataError(Exception):
    pass


class ApiError(FermataError):
    """A clear answer to a caller: what is wrong and what to do."""

    status = 400

    def __init__(self, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after = retry_after


class InvalidRequest(ApiError):
    status = 400


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
    """A provider request that came to nothing. `message` is fit for the end user and holds no secret.

    `code`: provider_auth | provider_quota | provider_overloaded | provider_error | provider_request |
    provider_overflow (more than the model takes, by tokens or images) | provider_images (it cannot read an image, or
    its model cannot see) | provider_stalled | provider_unreachable | provider_closed (we hung up). `retryable`: the
    same request may succeed later. `tokens`: what the provider had reported when it broke off. `detail`: its own
    words at length, for us to look at and never for users.
    """

    tokens: TokenUsage | None = None
    detail: str = ""

    def __init__(
        self, code: str, message: str, *, retryable: bool, retry_after: float | None = None, status: int | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable
        self.retry_after = retry_after
        self.status = status
