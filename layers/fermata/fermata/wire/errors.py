"""One table that turns whatever was raised into what the caller reads."""

from fermata.aws import signals
from fermata.aws.trouble import is_passing
from fermata.wire.http import Answer
from fermata.words.errors import Refusal

RETRY_AFTER = {409: 2, 429: 5, 503: 1}
"""Seconds to wait where nobody said otherwise; these three always tell."""


def phrase(error: Exception, request_id: str) -> Answer:
    """A refusal goes out as it is. Anything else is ours: logged whole, and the caller learns how to ask about it.

    A pydantic ValidationError that comes this far is no mistake of the caller's (wire/http.read_body has those):
    something stored is not as we wrote it.
    """
    if isinstance(error, Refusal):
        return _refused(error)
    if is_passing(error):
        signals.warn("busy", reason=str(error))
        return _answer(503, "The service is busy. Send the same request again in a moment.")
    signals.failed("request_failed")
    return _answer(500, f"Something went wrong on our side. Tell us this request id: {request_id}")


def _refused(error: Refusal) -> Answer:
    if error.status in (401, 403):
        signals.warn("refused", status=error.status, reason=error.error)
    return _answer(error.status, error.error, error.retry_after)


def _answer(status: int, text: str, retry_after: int | None = None) -> Answer:
    headers: dict[str, str] = {}
    seconds = retry_after if retry_after is not None else RETRY_AFTER.get(status)
    if seconds is not None:
        headers["Retry-After"] = str(max(1, seconds))
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Answer(status, {"error": text}, headers)
