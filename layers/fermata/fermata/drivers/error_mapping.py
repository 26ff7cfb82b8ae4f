"""What a provider's failure means: who can mend it, whether to try again, and a sentence without secrets."""

import email.utils
import json
import math
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

from fermata.domain.errors import ProviderError

REDACTED_KEY = "[redacted]"
MAX_PROVIDER_REASON_CHARS = 200
"""Characters of a provider's own words that we pass on."""
MAX_DETAIL_CHARS = 4000
"""Characters of them that we look at ourselves."""
CONTENT_FILTER_REASON = "the provider's content filter stopped it"

_SECRETS = re.compile(r"Bearer\s+[^\s\"',]+|sk-[A-Za-z0-9_*.\u2026-]{6,}")
"""Also of a key whose middle was starred out: nobody is shown how one ends."""
_UNSHOWN = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]+")
"""Line ends, control characters, and what turns the direction of the text around it."""
_AUTH = ("provider_auth", False)
_SPENT = ("provider_quota", False)
_BUSY = ("provider_quota", True)
_OVERLOADED = ("provider_overloaded", True)
_DOWN = ("provider_error", True)
_WRONG = ("provider_request", False)
_TOO_MUCH = ("provider_overflow", False)
_MEANINGS = {
    "authentication_error": _AUTH,
    "permission_error": _AUTH,
    "invalid_api_key": _AUTH,
    "billing_error": _SPENT,
    "insufficient_quota": _SPENT,
    "billing_hard_limit_reached": _SPENT,
    "billing_not_active": _SPENT,
    "rate_limit_error": _BUSY,
    "rate_limit_exceeded": _BUSY,
    "overloaded_error": _OVERLOADED,
    "server_is_overloaded": _OVERLOADED,
    "service_unavailable_error": _OVERLOADED,
    "engine_overloaded_error": _OVERLOADED,
    "slow_down": _OVERLOADED,
    "api_error": _DOWN,
    "server_error": _DOWN,
    "internal_error": _DOWN,
    "timeout_error": _DOWN,
    "invalid_request_error": _WRONG,
    "invalid_prompt": _WRONG,
    "not_found_error": _WRONG,
    "model_not_found": _WRONG,
    "context_length_exceeded": _TOO_MUCH,
    "exceed_context_size_error": _TOO_MUCH,
    "request_too_large": _TOO_MUCH,
    "too_many_images": _TOO_MUCH,
}
"""By the `code` or the `type` of an error; the first that is known counts."""
_OVERFLOW = re.compile(
    r"context[ _-]?(?:length|window|size|limit)|(?:prompt|input|request)\W+(?:\w+\W+){0,3}too (?:long|large)|"
    r"maximum prompt length|too[ _]many[ _](?:input[ _])?(?:tokens|images)|reduce the length|"
    r"images?\b.{0,40}\b(?:exceed|limit|at most|maximum)|(?:exceed|limit|at most|maximum)\w*\b.{0,40}\bimages?\b",
    re.I | re.S,
)
_UNSEEN = re.compile(
    r"(?:process|decode|read|parse|support|accept|understand)\w*\s+(?:\w+\s+){0,2}(?:images?\b|image_url|vision\b)|"
    r"image_url is only supported|invalid image\b|data required for image|"
    r"\bimages? (?:input )?(?:is|are) not supported",
    re.I,
)
"""How servers say that an image cannot be read, or that their model cannot see."""
_ABOUT_IMAGES = (400, 404, 415, 422, 500)
_PASSING_STATUSES = {408, 409, 429}


def error_from_response(label: str, status: int, headers: Mapping[str, str], body: bytes, secret: str) -> ProviderError:
    """The provider answered with an error status instead of a stream."""
    error = _error_of(body)
    told = _words(error)
    code, _ = _meaning(error) or _WRONG
    if code == "provider_request":  # the word for everything; the status may say more
        code = "provider_overflow" if status == 413 or _overflows(status, told, body) else _code(status)
    if code in ("provider_request", "provider_error") and status in _ABOUT_IMAGES and _UNSEEN.search(told):
        code = "provider_images"
    problem = ProviderError(
        code,
        _sentence(label, status, redact_secrets(told, secret)),
        retryable=code != "provider_images" and _passes(status, headers, error),
        retry_after=parse_retry_after(headers),
        status=status,
    )
    problem.detail = redact_secrets(told, secret, MAX_DETAIL_CHARS)
    return problem


def error_from_stream(label: str, failure: Any, secret: str) -> ProviderError:
    """The provider sent an error in the middle of a stream that had begun well."""
    error = failure if isinstance(failure, Mapping) else {"message": failure}
    told = _words(error)
    reason = redact_secrets(told or str(error.get("type") or error.get("code") or "no reason given"), secret)
    code, retryable = _meaning(error) or _of_status(error.get("code")) or ("provider_error", False)
    if code in ("provider_request", "provider_error") and not retryable and _OVERFLOW.search(told):
        code = "provider_overflow"
    return ProviderError(code, f"{label} stream error: {reason}", retryable=retryable)


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from `retry-after-ms`, or `Retry-After` in seconds or as a date."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        seconds = _number(headers.get(name), unit)
        if seconds is not None:
            return seconds
    date = email.utils.parsedate_tz(headers.get("retry-after"))
    return None if date is None else max(0.0, email.utils.mktime_tz(date) - time.time())


def redact_secrets(text: str, secret: str, max_chars: int = MAX_PROVIDER_REASON_CHARS) -> str:
    """On one line, cut to a readable length, with the key and everything that looks like one taken out."""
    if secret:
        text = text.replace(secret, REDACTED_KEY)
    return _UNSHOWN.sub(" ", _SECRETS.sub(REDACTED_KEY, text))[:max_chars].strip()


def _number(text: str | None, unit: float) -> float | None:
    try:
        seconds = float(text or "") / unit
    except ValueError:
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _error_of(body: bytes) -> Mapping[str, Any]:
    """`{"error": {…}}`, `{"error": "text"}`, the same in a list, an error without its wrapping, or plain text.

    A gateway's HTML page says nothing to a user.
    """
    text = body.decode("utf-8", "replace").strip()
    try:
        parsed = json.loads(text)
    except ValueError:
        return {} if text.startswith("<") else {"message": text}
    if isinstance(parsed, list) and parsed:
        parsed = parsed[0]
    if not isinstance(parsed, dict):
        return {"message": text}
    error = parsed.get("error")
    if isinstance(error, dict):
        return error
    if isinstance(error, str) and error:
        return {"message": error}
    return parsed if isinstance(parsed.get("message"), str) else {"message": _short(parsed.get("detail")) or text}


def _words(error: Mapping[str, Any]) -> str:
    """What the provider says; of a gateway's error also what stood behind it."""
    message = _short(error.get("message"))
    metadata = error.get("metadata")
    raw = _short(metadata.get("raw")) if isinstance(metadata, dict) else ""
    return f"{message} ({raw})" if raw and raw not in message else message


def _short(value: Any) -> str:
    if isinstance(value, str) or value is None:
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def _meaning(error: Mapping[str, Any]) -> tuple[str, bool] | None:
    return next((_MEANINGS[name] for name in _names(error) if name in _MEANINGS), None)


def _names(error: Mapping[str, Any]) -> Iterator[str]:
    """Codes say more than types: `insufficient_quota` before `invalid_request_error`."""
    for member in ("code", "type"):
        if isinstance(name := error.get(member), str):
            yield name


def _overflows(status: int, told: str, body: bytes) -> bool:
    return status in (400, 422) and bool(
        _OVERFLOW.search(f"{told} {body[:MAX_DETAIL_CHARS].decode('utf-8', 'replace')}")
    )


def _of_status(code: Any) -> tuple[str, bool] | None:
    """Gateways send the HTTP status they would have sent as an error's code."""
    if isinstance(code, str) and code.isdigit():
        code = int(code)
    if not isinstance(code, int) or isinstance(code, bool) or not 400 <= code < 600:
        return None
    return _code(code), code in _PASSING_STATUSES or code >= 500


def _code(status: int) -> str:
    if status in (401, 403):
        return "provider_auth"
    if status in (402, 429):
        return "provider_quota"
    if status in (503, 529):
        return "provider_overloaded"
    return "provider_error" if status >= 500 else "provider_request"


def _sentence(label: str, status: int, reason: str) -> str:
    said = f": {reason.rstrip('. ')}" if reason else ""
    if status in (401, 403):
        return f"{label} authentication failed. Check your API key in /admin/ai/providers."
    if status in (402, 429):
        return f"{label} quota or rate limit reached{said}. Check your account balance."
    if status >= 500:
        return f"{label} service error ({status}){said}. Please try again."
    return f"{label} error ({status}){said}."


def _passes(status: int, headers: Mapping[str, str], error: Mapping[str, Any]) -> bool:
    """Whether the same request may succeed later. A spent budget looks like a rate limit but does not pass."""
    told = headers.get("x-should-retry")
    if told in ("true", "false"):
        return told == "true"
    details = error.get("details")
    if isinstance(details, dict) and str(details.get("error_code")).endswith("spend_limit_reached"):
        return False
    if _meaning(error) == _SPENT:
        return False
    return status in _PASSING_STATUSES or status >= 500
