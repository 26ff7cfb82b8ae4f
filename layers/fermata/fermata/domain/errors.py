"""Define the errors that are reported to callers, and who can correct each of them.

FermataError
  ApiError           the caller can correct it; `status` and `message` become the HTTP response
    InvalidRequest     400   Unauthorized  401   Forbidden        403   NotFound  404
      AddressRefused       no request may be sent to an address that was typed
      IdRefused            a body names what is not the caller's
      LogRewound           the client has seen an event that the turn's log does not have
      OriginRefused        403 for a page of another origin
      PathNotFound         404 for a path, and not for an id in it
    MethodNotAllowed   405   Conflict      409   PayloadTooLarge  413
    VersionMismatch    412  what the caller has seen has changed since
    PaymentRequired    402  a budget is used up until it renews
    Gone               410  the resource existed and has expired
    Unprocessable      422  the request is valid, but the chosen model cannot fulfil it
    BadGateway         502  a provider refused the request, and would refuse it again
    TooManyRequests    429  a limit is reached until `retry_after` seconds have passed
    ServiceUnavailable 503  the same request may succeed after `retry_after` seconds
  ProviderError        the provider refused, failed or stalled; ends a round, and possibly the turn

Any other exception is a bug: the response is a 500 without its text, and it is logged with its traceback.
"""

from typing import Any

from fermata.domain.model_io import TokenUsage


class FermataError(Exception):
    """Base class of all errors that are no bugs."""


class ApiError(FermataError):
    """An error for the caller. `message` says what is wrong and what to do about it."""

    status = 400
    code: str | None = None
    """Set where a client's program, and not its user, can correct it."""

    def __init__(self, message: str, *, retry_after: int | None = None, reason: str = "") -> None:
        """Create the error.

        Args:
            message: The text for the caller.
            retry_after: The seconds after which the same request may succeed.
            reason: A code for the security event of a refusal (decision 0240); the caller does not see it.
        """
        super().__init__(message)
        self.message = message
        self.retry_after = retry_after
        self.reason = reason
        self.details: dict[str, Any] = {}
        """Further members of the response, for the client's program."""


class InvalidRequest(ApiError):
    status = 400


class AddressRefused(InvalidRequest):
    """No request may be sent to an address. `reason` is always given; `host` is empty where the text is no URL."""

    def __init__(self, message: str, *, reason: str, host: str = "") -> None:
        super().__init__(message, reason=reason)
        self.host = host


class IdRefused(InvalidRequest):
    """A body names something that does not exist, or is not the caller's."""


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


class OriginRefused(Forbidden):
    pass


class NotFound(ApiError):
    """There is no such thing, or it is not the caller's. The response does not say which."""

    status = 404


class PathNotFound(NotFound):
    pass


class MethodNotAllowed(ApiError):
    status = 405


class Conflict(ApiError):
    status = 409


class VersionMismatch(ApiError):
    """What the caller has seen is at another version by now, which `version` names."""

    status = 412
    code = "versionMismatch"

    def __init__(self, message: str, *, version: int) -> None:
        super().__init__(message)
        self.details = {"version": version}


class Gone(ApiError):
    status = 410


class PayloadTooLarge(ApiError):
    status = 413


class Unprocessable(ApiError):
    status = 422


class TooManyRequests(ApiError):
    """A limit is reached. `limit` is what may be used in `window_seconds`; both are 0 where it is not one of time."""

    status = 429
    limit = 0
    window_seconds = 0


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
        says_no_images: Whether the provider has said that the model reads no images at all.
        is_unsent: Whether it is certain that no server has received the request.
    """

    tokens: TokenUsage | None = None
    detail: str = ""
    window_tokens: int | None = None
    says_no_images: bool = False
    is_unsent: bool = False

    def __init__(
        self, code: str, message: str, *, retryable: bool, retry_after: float | None = None, status: int | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable
        self.retry_after = retry_after
        self.status = status
