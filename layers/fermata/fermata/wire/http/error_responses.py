"""One table that turns whatever was raised into what the caller reads."""

from fermata.aws import observability
from fermata.aws.transient_errors import is_transient_error
from fermata.domain.errors import ApiError
from fermata.wire.http.messages import Response

DEFAULT_RETRY_AFTER_SECONDS = {409: 2, 429: 5, 503: 1}
"""Seconds to wait where nobody said otherwise; these three always tell."""


def response_from_error(error: Exception, request_id: str) -> Response:
    """A refusal goes out as it is. Anything else is ours: logged whole, and the caller learns how to ask about it.

    A pydantic ValidationError that comes this far is no mistake of the caller's (wire/http.read_body has those):
    something stored is not as we wrote it.
    """
    if isinstance(error, ApiError):
        return _refused(error)
    if is_transient_error(error):
        observability.log_warning("busy", reason=str(error))
        return _answer(503, "The service is busy. Send the same request again in a moment.")
    observability.log_exception("request_failed")
    return _answer(500, f"Something went wrong on our side. Tell us this request id: {request_id}")


def _refused(error: ApiError) -> Response:
    if error.status in (401, 403):
        observability.log_warning("refused", status=error.status, reason=error.message)
    return _answer(error.status, error.message, error.retry_after)


def _answer(status: int, text: str, retry_after: int | None = None) -> Response:
    headers: dict[str, str] = {}
    seconds = retry_after if retry_after is not None else DEFAULT_RETRY_AFTER_SECONDS.get(status)
    if seconds is not None:
        headers["Retry-After"] = str(max(1, seconds))
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(status, {"error": text}, headers)
