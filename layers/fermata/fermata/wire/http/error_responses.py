"""Convert exceptions to error responses."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fermata.aws import observability
from fermata.aws.security_events import log_refusal
from fermata.aws.transient_errors import is_transient_error
from fermata.domain.errors import ApiError, TooManyRequests
from fermata.wire.http.messages import Response
from fermata.wire.http.rate_limit_headers import build_rate_limit_headers

DEFAULT_RETRY_AFTER_SECONDS = {429: 5, 503: 1}
"""Seconds in Retry-After where the error names none. Responses with these statuses always have the header. Others, such
as 409, have it only where the error names seconds, because then waiting helps."""


def response_from_error(error: Exception, request_id: str) -> Response:
    """Convert an exception to a response.

    An `ApiError` is sent as it is. Every other exception is a fault of the service: it is logged with its traceback,
    and the response holds only the request id. That includes a pydantic ValidationError, because `parse_body` has
    converted those of the request's body: a stored row does not fit its model (decision 0023).
    """
    if isinstance(error, ApiError):
        return _response_from_api_error(error)
    if is_transient_error(error):
        observability.log_warning("busy", reason=str(error))
        return _build_error_response(503, "The service is busy. Send the same request again in a moment.")
    observability.log_exception("request_failed")
    return _build_error_response(500, f"The service failed. Report this request id: {request_id}")


def _response_from_api_error(error: ApiError) -> Response:
    log_refusal(error)
    members: dict[str, Any] = {} if error.code is None else {"code": error.code, **error.details}
    response = _build_error_response(error.status, error.message, error.retry_after, members)
    if not isinstance(error, TooManyRequests) or not error.window_seconds:
        return response
    limits = build_rate_limit_headers(error.limit, 0, error.retry_after or error.window_seconds)
    return replace(response, headers={**response.headers, **limits})


def _build_error_response(
    status: int, text: str, retry_after: int | None = None, members: Mapping[str, str | int] | None = None
) -> Response:
    headers: dict[str, str] = {}
    seconds = retry_after if retry_after is not None else DEFAULT_RETRY_AFTER_SECONDS.get(status)
    if seconds is not None:
        headers["Retry-After"] = str(max(1, seconds))
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(status, {"error": text, **(members or {})}, headers)
