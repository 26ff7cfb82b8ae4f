"""What a provider's failure means: who can mend it, whether to try again, and a sentence without secrets."""

import email.utils
import json
import math
import re
import time
from collections.abc import Mapping
from typing import Any

from fermata.words.errors import ProviderError

REASON = 200
"""Characters of a provider's own words that we pass on."""

_SECRETS = re.compile(r"Bearer\s+[^\s\"',]+|sk-[A-Za-z0-9_-]{6,}")
_CODES = {
    "authentication_error": "provider_auth",
    "permission_error": "provider_auth",
    "billing_error": "provider_quota",
    "rate_limit_error": "provider_quota",
    "overloaded_error": "provider_overloaded",
    "invalid_request_error": "provider_request",
    "not_found_error": "provider_request",
    "request_too_large": "provider_request",
}
_PASSING_TYPES = {"rate_limit_error", "overloaded_error", "api_error", "timeout_error"}
_PASSING_STATUSES = {408, 409, 429}


def refused(label: str, status: int, headers: Mapping[str, str], body: bytes, secret: str) -> ProviderError:
    """The provider answered with an error status instead of a stream."""
    error = _error_of(body)
    reason = redact(str(error.get("message") or ""), secret)
    return ProviderError(
        _CODES.get(str(error.get("type")), _code(status)),
        _sentence(label, status, reason),
        retryable=_passes(status, headers, error),
        retry_after=retry_after(headers),
        status=status,
    )


def broke_off(label: str, error: Mapping[str, Any], secret: str) -> ProviderError:
    """The provider sent an error in the middle of a stream that had begun well."""
    kind = str(error.get("type"))
    reason = redact(str(error.get("message") or kind), secret)
    retryable = kind in _PASSING_TYPES
    return ProviderError(_CODES.get(kind, "provider_error"), f"{label} stream error: {reason}", retryable=retryable)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from `retry-after-ms`, or `Retry-After` in seconds or as a date."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        seconds = _number(headers.get(name), unit)
        if seconds is not None:
            return seconds
    date = email.utils.parsedate_tz(headers.get("retry-after"))
    return None if date is None else max(0.0, email.utils.mktime_tz(date) - time.time())


def redact(text: str, secret: str) -> str:
    """Cut to a readable length, with the key and everything that looks like one taken out."""
    if secret:
        text = text.replace(secret, "[redacted]")
    return _SECRETS.sub("[redacted]", text)[:REASON].strip()


def _number(text: str | None, unit: float) -> float | None:
    try:
        seconds = float(text or "") / unit
    except ValueError:
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _error_of(body: bytes) -> Mapping[str, Any]:
    """`{"error": {...}}`, `{"error": "text"}`, or plain text; a gateway's HTML page says nothing to a user."""
    text = body.decode("utf-8", "replace").strip()
    try:
        parsed = json.loads(text)
    except ValueError:
        return {} if text.startswith("<") else {"message": text}
    error = parsed.get("error") if isinstance(parsed, dict) else None
    if isinstance(error, dict):
        return error
    return {"message": error if isinstance(error, str) else text}


def _code(status: int) -> str:
    if status in (401, 403):
        return "provider_auth"
    if status in (402, 429):
        return "provider_quota"
    if status == 529:
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
    return status in _PASSING_STATUSES or status >= 500
