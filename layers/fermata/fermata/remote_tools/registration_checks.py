"""Check what a tenant registers a remote tool with: its endpoint, headers and scopes."""

import re
from collections.abc import Collection, Mapping

from fermata.aws.resources import Resources
from fermata.aws.security_events import log_refused_address
from fermata.domain.agent_ids import SCOPES
from fermata.domain.errors import InvalidRequest
from fermata.drivers.transport.url_guard import UrlGuard
from fermata.signed_requests.signed_post import RESERVED_HEADERS

MAX_HEADERS = 20
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_HEADER_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")


def check_static_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers with lower-case names.

    Raises:
        InvalidRequest: A name or a value cannot be sent, or belongs to the service.
    """
    if len(headers) > MAX_HEADERS:
        raise InvalidRequest(f"A tool has {MAX_HEADERS} headers at most.")
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or name.lower() in RESERVED_HEADERS:
            raise InvalidRequest(f"The header {name[:100]!r} cannot be set.")
        if not _HEADER_VALUE.fullmatch(value):
            raise InvalidRequest(f"The value of the header {name!r} must be printable ASCII without blanks around it.")
    return {name.lower(): value for name, value in headers.items()}


def check_endpoint(resources: Resources, endpoint: str) -> None:
    """Check the URL that calls are posted to.

    Raises:
        InvalidRequest: It is no URL, or of an address that the service does not call.
    """
    guard = UrlGuard(loopback=resources.settings.is_loopback_allowed, on_refusal=log_refused_address)
    guard.check_url_and_host(endpoint)


def check_scopes(scopes: Collection[str]) -> None:
    """Check the scopes whose turns are offered a tool.

    Raises:
        InvalidRequest: One of them does not exist.
    """
    if unknown := sorted(set(scopes) - SCOPES.keys()):
        raise InvalidRequest(f"There is no scope {', '.join(unknown)[:200]}. Scopes are {', '.join(SCOPES)}.")
