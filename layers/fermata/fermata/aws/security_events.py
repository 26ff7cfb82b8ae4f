"""Log refusals that concern security: one structured line each, which operators count and alarm on (decision 0240).

docs/security-events.md lists the events, their reasons and their keys.
"""

import hashlib
from collections.abc import Mapping
from contextvars import ContextVar
from enum import StrEnum
from typing import Any

from fermata.aws import observability
from fermata.domain.errors import (
    AddressRefused,
    ApiError,
    Forbidden,
    IdRefused,
    NotFound,
    OriginRefused,
    PathNotFound,
    PayloadTooLarge,
    PaymentRequired,
    TooManyRequests,
    Unauthorized,
)

_MAX_SOURCE_CHARS = 64
_MAX_HOST_CHARS = 253
_request_source: ContextVar[str] = ContextVar("request_source", default="")


class SecurityEvent(StrEnum):
    """The names of the events. Alarms and saved queries of operators use them, so a name never changes."""

    TOKEN_REFUSED = "security.token_refused"  # noqa: S105 (a name, not a password)
    ORIGIN_REFUSED = "security.origin_refused"
    CAPABILITY_REFUSED = "security.capability_refused"
    ID_REFUSED = "security.id_refused"
    ADDRESS_REFUSED = "security.address_refused"
    LIMIT_REACHED = "security.limit_reached"


_EVENTS_OF_ERRORS: Mapping[type, tuple[SecurityEvent, str] | None] = {
    Unauthorized: (SecurityEvent.TOKEN_REFUSED, "invalid"),
    OriginRefused: (SecurityEvent.ORIGIN_REFUSED, "unknown_origin"),
    Forbidden: (SecurityEvent.CAPABILITY_REFUSED, "missing_capability"),
    IdRefused: (SecurityEvent.ID_REFUSED, "not_the_callers"),
    NotFound: (SecurityEvent.ID_REFUSED, "not_the_callers"),
    PathNotFound: None,
    TooManyRequests: (SecurityEvent.LIMIT_REACHED, "rate"),
    PaymentRequired: (SecurityEvent.LIMIT_REACHED, "budget"),
    PayloadTooLarge: (SecurityEvent.LIMIT_REACHED, "size"),
}
"""The event of an error, and its reason where the error names none. A subclass counts as its nearest base class."""


def begin_request_of_source(source: str) -> None:
    """Set the network address that the security events of this thread name from now on; empty for none."""
    _request_source.set(source[:_MAX_SOURCE_CHARS] if source.isprintable() else "")


def log_security_event(event: SecurityEvent, reason: str, **facts: Any) -> None:
    """Log one refusal.

    Args:
        event: What was refused.
        reason: A short code that does not change, such as `expired`. Never a text of the caller.
        facts: Further keys: names, statuses and limits. Never a secret, a token, a prompt or a user's id.
    """
    keys = observability.get_thread_keys()
    known = {"source": _request_source.get()}
    if keys.get("user"):  # in place of the id, which every other line of the request has
        known["user"] = make_user_pseudonym(str(keys.get("tenant", "")), str(keys["user"]))
    line = {name: fact for name, fact in (known | facts).items() if fact not in ("", None)}
    observability.log_warning(str(event), security=True, reason=reason, **line)


def log_refusal(error: ApiError, **facts: Any) -> None:
    """Log the refusal that an error is; nothing for an error of another kind.

    Args:
        error: What the caller is answered, or would be.
        facts: Further keys, as of `log_security_event`.
    """
    found = next((_EVENTS_OF_ERRORS[base] for base in type(error).__mro__ if base in _EVENTS_OF_ERRORS), None)
    if found is not None:
        event, reason = found
        log_security_event(event, error.reason or reason, status=error.status, **facts)


def log_refused_address(refusal: AddressRefused) -> None:
    """Log the refusal of an address. Its host is named; its path and query are not, because they may hold a secret."""
    host = refusal.host[:_MAX_HOST_CHARS]
    log_security_event(SecurityEvent.ADDRESS_REFUSED, refusal.reason, host=host)


def make_user_pseudonym(tenant: str, user: str) -> str:
    """Return the name under which security events count a user: the same in each of them, and not the id."""
    digest = hashlib.sha256(f"{tenant}\n{user}".encode()).hexdigest()
    return f"u-{digest[:16]}"
