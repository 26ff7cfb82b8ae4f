"""Map a provider's failure to a `ProviderError`: what it was, whether to retry, and a sentence without secrets."""

import email.utils
import json
import math
import re
import time
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from fermata.domain.errors import ProviderError
from fermata.drivers.image_refusals import ImageRefusal, find_image_refusal
from fermata.drivers.overflow_refusals import exceeds_rate_by_itself, find_stated_window, says_too_large
from fermata.drivers.retry_policy import Failure, is_retryable_response, is_retryable_status
from fermata.drivers.secret_veil import REDACTED_KEY, SecretVeil
from fermata.drivers.spent_credit import is_credit_spent

MAX_PROVIDER_REASON_CHARS = 200
"""Characters of a provider's own words that users see."""
MAX_DETAIL_CHARS = 4000
"""Characters of them that `ProviderError.detail` holds."""

_SECRETS = re.compile(r"Bearer\s+[^\s\"',]+|sk-[A-Za-z0-9_*.\u2026-]{6,}|\bAIza[A-Za-z0-9_-]{20,}")
"""Also matches a key with asterisks in the middle, because its end is a part of the key."""
_UNSHOWN = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]+")
"""Line ends, control characters, and characters that change the direction of the text around them."""
_FAILURES = {
    "authentication_error": Failure.INVALID_KEY,
    "permission_error": Failure.INVALID_KEY,
    "invalid_api_key": Failure.INVALID_KEY,
    "API_KEY_INVALID": Failure.INVALID_KEY,  # Google's status for it is 400
    "rate_limit_error": Failure.RATE_LIMITED,
    "rate_limit_exceeded": Failure.RATE_LIMITED,
    "overloaded_error": Failure.OVERLOADED,
    "server_is_overloaded": Failure.OVERLOADED,
    "service_unavailable_error": Failure.OVERLOADED,
    "engine_overloaded_error": Failure.OVERLOADED,
    "slow_down": Failure.OVERLOADED,
    "api_error": Failure.SERVER_ERROR,
    "server_error": Failure.SERVER_ERROR,
    "internal_error": Failure.SERVER_ERROR,
    "timeout_error": Failure.SERVER_ERROR,
    "invalid_request_error": Failure.BAD_REQUEST,
    "invalid_prompt": Failure.BAD_REQUEST,
    "tool_use_failed": Failure.NO_ANSWER,  # Groq could not read the call that the model wrote
    "not_found_error": Failure.BAD_REQUEST,
    "model_not_found": Failure.BAD_REQUEST,
    "context_length_exceeded": Failure.REQUEST_TOO_LARGE,
    "exceed_context_size_error": Failure.REQUEST_TOO_LARGE,
    "request_too_large": Failure.REQUEST_TOO_LARGE,
    "too_many_images": Failure.REQUEST_TOO_LARGE,
}
"""By the `code` or `type` of an error; the first that is known counts. `spent_credit.py` has those of spent credit."""
_IMAGE_ERROR_STATUSES = (400, 404, 415, 422, 500)
_SPENT_ADVICE = "The account of this API key has no credit left. Check your account balance."
_GENERAL_CODES = (Failure.BAD_REQUEST.code, Failure.SERVER_ERROR.code)
"""The codes of failures about which the words may say more."""
_IMAGE_CODES = {
    ImageRefusal.UNREADABLE: Failure.UNREADABLE_IMAGE.code,
    ImageRefusal.TOO_MANY: Failure.REQUEST_TOO_LARGE.code,
    ImageRefusal.MODEL_IS_BLIND: Failure.UNREADABLE_IMAGE.code,
}
_FINAL_CODES = (Failure.UNREADABLE_IMAGE.code, Failure.REQUEST_TOO_LARGE.code)
"""The same request will be refused again, whatever its status says."""


def error_from_response(
    label: str, status: int, headers: Mapping[str, str], body: bytes, api_key: str
) -> ProviderError:
    """Describe an error status that came instead of a stream. The API key is taken out of all texts."""
    payload = _parse_error(body)
    words = redact_secrets(_get_words(payload), api_key, MAX_DETAIL_CHARS)
    failure = _find_failure(payload, words)
    code = (failure or Failure.BAD_REQUEST).code
    if code == Failure.BAD_REQUEST.code:  # servers use it for everything; the status may say more
        code = _failure_from_status(status).code
    if _is_too_large(status, code, words, body):
        code = Failure.REQUEST_TOO_LARGE.code
    image_refusal = _find_image_refusal(code, status, words)
    if image_refusal is not None:
        code = _IMAGE_CODES[image_refusal]
    stated = parse_retry_after(headers)
    may_pass = code not in _FINAL_CODES and is_retryable_response(status, headers, failure)
    error = ProviderError(
        code,
        _build_message(label, status, words[:MAX_PROVIDER_REASON_CHARS].strip(), failure),
        retryable=may_pass,
        retry_after=_find_retry_delay(payload) if stated is None else stated,
        status=status,
    )
    error.detail = redact_secrets(_add_place(words, payload), api_key, MAX_DETAIL_CHARS)
    error.window_tokens = find_stated_window(words) if code == Failure.REQUEST_TOO_LARGE.code else None
    error.says_no_images = image_refusal is ImageRefusal.MODEL_IS_BLIND
    return error


def error_from_stream(label: str, event: Any, api_key: str) -> ProviderError:
    """Describe an error that came in the middle of a stream. The API key is taken out of all texts."""
    payload = event if isinstance(event, Mapping) else {"message": event}
    words = redact_secrets(_get_words(payload), api_key, MAX_DETAIL_CHARS)
    reason = words or redact_secrets(str(payload.get("type") or payload.get("code") or "no reason given"), api_key)
    code, is_retryable = _classify_stream_error(payload, words)
    if code in _GENERAL_CODES and says_too_large(words):
        code, is_retryable = Failure.REQUEST_TOO_LARGE.code, False
    status = _get_status(payload)
    image_refusal = _find_image_refusal(code, status, words)
    if image_refusal is not None:
        code, is_retryable = _IMAGE_CODES[image_refusal], False
    reason = reason[:MAX_PROVIDER_REASON_CHARS].strip()
    is_spent = (code, is_retryable) == (Failure.QUOTA_SPENT.code, False)
    message = f"{label} stream error: {reason}" + (f". {_SPENT_ADVICE}" if is_spent else "")
    error = ProviderError(code, message, retryable=is_retryable, status=status)
    error.detail = redact_secrets(_add_place(words, payload), api_key, MAX_DETAIL_CHARS)
    error.window_tokens = find_stated_window(words) if code == Failure.REQUEST_TOO_LARGE.code else None
    error.says_no_images = image_refusal is ImageRefusal.MODEL_IS_BLIND
    return error


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait, from `retry-after-ms`, or from `Retry-After` in seconds or as a date."""
    for name, units_per_second in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        seconds = _parse_seconds(headers.get(name), units_per_second)
        if seconds is not None:
            return seconds
    date = email.utils.parsedate_tz(headers.get("retry-after"))
    return None if date is None else max(0.0, email.utils.mktime_tz(date) - time.time())


def redact_secrets(text: str, api_key: str, max_chars: int = MAX_PROVIDER_REASON_CHARS) -> str:
    """Return the text on one line, without the key in any spelling and everything that looks like a key.

    Args:
        text: What a provider sent, or what is quoted to a user.
        api_key: The key of the request; empty for none.
        max_chars: The greatest length of the result.
    """
    if api_key:
        text = _get_veil(api_key).veil_text(text.replace(api_key, REDACTED_KEY))
    return _UNSHOWN.sub(" ", _SECRETS.sub(REDACTED_KEY, text))[:max_chars].strip()


@lru_cache(maxsize=1)
def _get_veil(api_key: str) -> SecretVeil:
    """Return the veil of a key. The last one is kept, because the texts of one error are veiled one after another."""
    return SecretVeil(api_key)


def _parse_seconds(text: str | None, units_per_second: float) -> float | None:
    try:
        seconds = float(text or "") / units_per_second
    except ValueError:
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _parse_error(body: bytes) -> Mapping[str, Any]:
    """Read `{"error": {…}}`, `{"error": "text"}`, the same in a list, an error without a wrapper, or plain text.

    A gateway's HTML page says nothing to a user.
    """
    text = body.decode("utf-8", "replace").strip()
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
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
    return parsed if isinstance(parsed.get("message"), str) else {"message": _to_text(parsed.get("detail")) or text}


def _get_words(payload: Mapping[str, Any]) -> str:
    """Return what the provider says; for a gateway's error, also what the server behind it said."""
    message = _to_text(payload.get("message"))
    metadata = payload.get("metadata")
    raw = _to_text(metadata.get("raw")) if isinstance(metadata, dict) else ""
    return f"{message} ({raw})" if raw and raw not in message else message


def _add_place(words: str, payload: Mapping[str, Any]) -> str:
    """Append the member that an error is about. Some servers say no more than `Invalid input` besides."""
    place = payload.get("param")
    return f"{words} ({place})" if isinstance(place, str) and place and place not in words else words


def _to_text(value: Any) -> str:
    if isinstance(value, str) or value is None:
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def _find_failure(payload: Mapping[str, Any], words: str) -> Failure | None:
    if _is_spend_limit(payload) or is_credit_spent(_iter_error_names(payload), words):
        return Failure.QUOTA_SPENT
    return next((_FAILURES[name] for name in _iter_error_names(payload) if name in _FAILURES), None)


def _iter_error_names(payload: Mapping[str, Any]) -> Iterator[str]:
    """Yield codes before types, because they say more: `insufficient_quota` before `invalid_request_error`."""
    for member in ("code", "type"):
        if isinstance(name := payload.get(member), str):
            yield name
    yield from (detail["reason"] for detail in _list_details(payload) if isinstance(detail.get("reason"), str))


def _list_details(payload: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what Google's servers add to an error: its reason, and when to retry."""
    details = payload.get("details")
    return [detail for detail in details if isinstance(detail, dict)] if isinstance(details, list) else []


def _find_retry_delay(payload: Mapping[str, Any]) -> float | None:
    """Return the seconds to wait that the error itself names, such as `37s`."""
    delays = (detail.get("retryDelay") for detail in _list_details(payload))
    texts = (delay.removesuffix("s") for delay in delays if isinstance(delay, str))
    return next((seconds for text in texts if (seconds := _parse_seconds(text, 1.0)) is not None), None)


def _is_too_large(status: int, code: str, words: str, body: bytes) -> bool:
    """Return whether less of the conversation may be accepted; a rate limit passes, unless one request exceeds it."""
    if code == Failure.RATE_LIMITED.code:
        return exceeds_rate_by_itself(words)
    text = f"{words} {body[:MAX_DETAIL_CHARS].decode('utf-8', 'replace')}"
    return code in _GENERAL_CODES and (status == 413 or (status in (400, 422, 500) and says_too_large(text)))


def _find_image_refusal(code: str, status: int | None, words: str) -> ImageRefusal | None:
    is_possible = code in _GENERAL_CODES and (status is None or status in _IMAGE_ERROR_STATUSES)
    return find_image_refusal(words) if is_possible else None


def _is_spend_limit(payload: Mapping[str, Any]) -> bool:
    """Return whether a budget is spent, which looks like a rate limit but does not pass."""
    details = payload.get("details")
    return isinstance(details, dict) and str(details.get("error_code")).endswith("spend_limit_reached")


def _classify_stream_error(payload: Mapping[str, Any], words: str) -> tuple[str, bool]:
    """Return the code and whether a retry may succeed. Gateways send an HTTP status as the error's code."""
    failure = _find_failure(payload, words)
    if failure is not None:
        return failure.code, failure.is_retryable
    status = _get_status(payload)
    if status is None:
        return Failure.UNUSABLE_RESPONSE.code, Failure.UNUSABLE_RESPONSE.is_retryable
    return _failure_from_status(status).code, is_retryable_status(status)


def _get_status(payload: Mapping[str, Any]) -> int | None:
    for name in ("code", "status", "status_code"):
        status = payload.get(name)
        if isinstance(status, str) and status.isdecimal() and len(status) == 3:
            status = int(status)
        if type(status) is int and 400 <= status < 600:
            return status
    return None


def _failure_from_status(status: int) -> Failure:
    if status in (401, 403):
        return Failure.INVALID_KEY
    if status in (402, 429):
        return Failure.RATE_LIMITED
    if status in (503, 529):
        return Failure.OVERLOADED
    return Failure.SERVER_ERROR if status >= 500 else Failure.BAD_REQUEST


def _build_message(label: str, status: int, reason: str, failure: Failure | None) -> str:
    ending = f": {reason.rstrip('. ')}" if reason else ""
    if failure is Failure.QUOTA_SPENT and status not in (402, 429):
        return f"{label} error ({status}){ending}. {_SPENT_ADVICE}"
    if status in (401, 403) or failure is Failure.INVALID_KEY:
        return f"{label} authentication failed. Check your API key in /admin/ai/providers."
    if status in (402, 429):
        return f"{label} quota or rate limit reached{ending}. Check your account balance."
    if status >= 500:
        return f"{label} service error ({status}){ending}. Please try again."
    return f"{label} error ({status}){ending}."
