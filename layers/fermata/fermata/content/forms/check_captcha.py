"""Ask the service of a captcha whether a visitor has solved it.

All three services speak the same protocol: https://developers.cloudflare.com/turnstile/get-started/server-side-validation/,
https://docs.hcaptcha.com/#verify-the-user-response-server-side and
https://developers.google.com/recaptcha/docs/verify.
"""

import json
import re
from collections.abc import Mapping
from contextlib import closing
from typing import Any
from urllib.parse import urlencode

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.aws.security_events import log_refused_address
from fermata.content.content_space import SpaceKey
from fermata.content.forms.captcha_keys import CaptchaKeys, CaptchaService, open_captcha_secret
from fermata.domain.errors import InvalidRequest, NotFound, ProviderError, ServiceUnavailable
from fermata.drivers.transport.http_connection import HttpConnection
from fermata.drivers.transport.url_guard import UrlGuard

RESPONSE_FIELDS = {
    CaptchaService.TURNSTILE: "cf-turnstile-response",
    CaptchaService.HCAPTCHA: "h-captcha-response",
    CaptchaService.RECAPTCHA: "g-recaptcha-response",
}
"""The field that the script of each service adds to an HTML form."""
VERIFY_URLS = {
    CaptchaService.TURNSTILE: "https://challenges.cloudflare.com/turnstile/v0/siteverify",
    CaptchaService.HCAPTCHA: "https://api.hcaptcha.com/siteverify",
    CaptchaService.RECAPTCHA: "https://www.google.com/recaptcha/api/siteverify",
}
MAX_RESPONSE_CHARS = 8192
"""Of what a visitor's captcha gives. Those of hCaptcha are the longest, with a few thousand characters."""
_SECONDS = 5.0
_FAULTS_OF_VISITORS = frozenset({
    "missing-input-response", "invalid-input-response", "timeout-or-duplicate", "invalid-or-already-seen-response",
    "expired-input-response", "already-seen-response",
})  # fmt: skip
"""Codes of the services. Any other one is a fault of the keys, or of the service."""
_ERROR_CODE = re.compile(r"[a-z]+(?:-[a-z]+){0,6}")
_UNSOLVED = "The captcha is not solved, or it was solved too long ago. Solve it again."
_UNCHECKED = "The captcha cannot be checked now. Try again in a minute, or write to the owner of the site."


def check_captcha(resources: Resources, space: SpaceKey, keys: CaptchaKeys, solution: Any, source: str) -> None:
    """Return if a visitor has solved the captcha. Each solution is good for one request.

    Args:
        resources: Of the process.
        space: The space of the form.
        keys: Its captcha.
        solution: What the script of the service has given the visitor's form.
        source: The network address of the visitor, which the service compares with the one that has solved it.

    Raises:
        InvalidRequest: It is not solved.
        ServiceUnavailable: The service does not answer, or does not know the keys.
    """
    if not isinstance(solution, str) or not solution or len(solution) > MAX_RESPONSE_CHARS:
        raise InvalidRequest(_UNSOLVED)
    try:
        secret = open_captcha_secret(resources, space, keys)
        answer = _ask_service(resources, keys, {"secret": secret, "response": solution, "remoteip": source})
    except (ProviderError, NotFound, ValueError, RecursionError) as error:
        reason = error.code if isinstance(error, ProviderError | NotFound) else None
        _log(space, keys, reason or "unreadable")
        raise ServiceUnavailable(_UNCHECKED, retry_after=60) from None
    if answer.get("success") is True:
        return
    codes = answer.get("error-codes")
    named = [code for code in codes[:5] if _is_error_code(code)] if isinstance(codes, list) else []
    if set(named) & _FAULTS_OF_VISITORS:
        raise InvalidRequest(_UNSOLVED)
    _log(space, keys, ", ".join(named) or "refused")
    raise ServiceUnavailable(_UNCHECKED, retry_after=60)


def _is_error_code(code: Any) -> bool:
    """Return whether a service has named a code. Words of it are not logged: they may have the secret."""
    return isinstance(code, str) and _ERROR_CODE.fullmatch(code) is not None


def _ask_service(resources: Resources, keys: CaptchaKeys, form: Mapping[str, str]) -> dict[str, Any]:
    """Return what the service says.

    Raises:
        ProviderError: It does not answer.
        ValueError: It answers something else.
    """
    guard = UrlGuard(loopback=resources.settings.is_loopback_allowed, on_refusal=log_refused_address)
    headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
    body = urlencode(form).encode()
    with (
        closing(HttpConnection(stall_seconds=_SECONDS, total_seconds=_SECONDS, guard=guard)) as connection,
        connection.request(keys.service.value, "POST", VERIFY_URLS[keys.service], headers, body) as response,
    ):
        answer = json.loads(response.read_body())
    if not isinstance(answer, dict):
        raise ValueError("no object")
    return answer


def _log(space: SpaceKey, keys: CaptchaKeys, reason: str) -> None:
    facts = {"tenant": space.tenant, "space": space.name, "service": keys.service.value, "reason": reason}
    observability.log_warning("form.captcha_not_checked", **facts)
