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

from fermata.words.model import Tokens


class FermataError(Exception):
    pass


class Refusal(FermataError):
    """A clear answer to a caller: what is wrong and what to do."""

    status = 400

    def __init__(self, error: str, *, retry_after: int | None = None) -> None:
        super().__init__(error)
        self.error = error
        self.retry_after = retry_after


class Invalid(Refusal):
    status = 400


class Unauthorized(Refusal):
    status = 401


class PaymentRequired(Refusal):
    status = 402


class Forbidden(Refusal):
    status = 403


class NotFound(Refusal):
    status = 404


class MethodNotAllowed(Refusal):
    status = 405


class Conflict(Refusal):
    status = 409


class Gone(Refusal):
    status = 410


class TooLarge(Refusal):
    status = 413


class Unprocessable(Refusal):
    status = 422


class BadGateway(Refusal):
    status = 502


class Unavailable(Refusal):
    status = 503


class ProviderError(FermataError):
    """A provider request that came to nothing. `message` is fit for the end user and holds no secret.

    `code`: provider_auth | provider_quota | provider_overloaded | provider_error | provider_request |
    provider_overflow (more than the model takes, by tokens or images) | provider_images (it cannot read an image, or
    its model cannot see) | provider_stalled | provider_unreachable | provider_closed (we hung up). `retryable`: the
    same request may succeed later. `tokens`: what the provider had reported when it broke off. `detail`: its own
    words at length, for us to look at and never for users.
    """

    tokens: Tokens | None = None
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
