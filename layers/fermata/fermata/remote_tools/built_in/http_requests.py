"""Send HTTP requests to public addresses for the model, as far as the administrator allows."""

import json
import re
from typing import Any
from urllib.parse import urljoin, urlsplit

from fermata.aws.security_events import SecurityEvent, log_security_event
from fermata.domain.errors import ProviderError
from fermata.domain.lenient_json import UnreadableJson
from fermata.drivers.protocols.tool_arguments import parse_strict_json
from fermata.drivers.transport.connection_interface import ProviderResponse
from fermata.remote_tools.built_in.built_in_call import BuiltInCall
from fermata.remote_tools.built_in.host_names import ANY_HOST, HOSTS_OPTION, split_host_names
from fermata.remote_tools.manifest_tool_executor import AttemptFailed
from fermata.signed_requests.signed_post import MAX_RESPONSE_BYTES, is_transient_transport_error

MAX_LOGGED_HOST_CHARS = 253
MAX_REDIRECTS = 3
MAX_TEXT_CHARS = 50_000
_CHARSET = re.compile(r"charset=[\"']?([a-z0-9_-]{1,20})")
_PAGE_ENCODING = re.compile(
    r"us-ascii|utf-8|utf-16|iso-8859-(?:[1-9]|1[013456])|windows-125[0-8]|koi8-[ru]|shift_jis|euc-(?:jp|kr)"
    r"|gbk|gb2312|gb18030|big5"
)
_ENCODING_NAMED_WITHIN = 1024
"""Bytes of a page that may name its encoding."""


def get_url(call: BuiltInCall) -> Any:
    """Fetch a URL. Up to three redirects are followed, each to an address that is checked like the first."""
    url = str(call.arguments["url"]).strip()
    for _ in range(MAX_REDIRECTS + 1):
        location, data = _send(call, "GET", url, None)
        if location is None:
            return data
        url = urljoin(url, location)
    raise AttemptFailed(f"{_host(url)} redirects more than {MAX_REDIRECTS} times.")


def fetch_text(call: BuiltInCall, url: str) -> tuple[str, str]:
    """Return the media type of a page and all of its text, behind up to three redirects.

    Raises:
        AttemptFailed: It is not of an allowed host, was refused, failed, or is too large.
    """
    for _ in range(MAX_REDIRECTS + 1):
        location, found = _send(call, "GET", url, None, _PAGES)
        if location is None:
            return found["contentType"], found["body"]
        url = urljoin(url, location)
    raise AttemptFailed(f"{_host(url)} redirects more than {MAX_REDIRECTS} times.")


def post_to_url(call: BuiltInCall) -> Any:
    """Send JSON to a URL. Redirects are not followed: the person who has approved has seen this address."""
    url = str(call.arguments["url"]).strip()
    location, data = _send(call, "POST", url, json.dumps(call.arguments.get("body", {})).encode())
    if location is not None:
        raise AttemptFailed(f"{_host(url)} redirects, which is not followed.")
    return data


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _check_host(call: BuiltInCall, url: str) -> str:
    host = _host(url)
    allowed = split_host_names(call.options.get(HOSTS_OPTION, ""))
    if not allowed:
        raise AttemptFailed("No host may be reached: an administrator has to name some in the tool's option 'hosts'.")
    is_allowed = any(name == ANY_HOST or host == name or host.endswith(f".{name}") for name in allowed)
    if not is_allowed:
        log_security_event(SecurityEvent.ADDRESS_REFUSED, "host_not_named", host=host[:MAX_LOGGED_HOST_CHARS])
        raise AttemptFailed(f"{host or 'This address'} is not among the hosts that may be reached.")
    return host


_DATA = "application/json, text/*;q=0.8"
_PAGES = "text/html, text/*;q=0.8"


def _send(
    call: BuiltInCall, method: str, url: str, body: bytes | None, accepted: str = _DATA
) -> tuple[str | None, Any]:
    """Return where the response redirects to, or None and its content. That of a page is all of its text."""
    host = _check_host(call, url)
    headers = {"accept": accepted, "accept-encoding": "identity"}
    try:
        if body is None:
            exchange = call.connection.get(host, url, headers)
        else:
            own = {"content-type": "application/json", "idempotency-key": call.effect_key}
            exchange = call.connection.post(host, url, headers | own, body)
        with exchange as response:
            return _read(call, host, response, is_whole_text=accepted == _PAGES)
    except ProviderError as error:
        reason = error.message.partition(" failed: ")[2] or error.message
        raise AttemptFailed(
            f"{host} did not answer: {reason}", is_transient=is_transient_transport_error(error)
        ) from error


def _get_encoding(description: str) -> str:
    """Return the encoding that a text is first said to have; UTF-8 for none, and for one that no pages have."""
    named = _CHARSET.search(description.lower())
    if named is None or not _PAGE_ENCODING.fullmatch(named[1]):
        return "utf-8"
    return "cp1252" if named[1] in ("iso-8859-1", "us-ascii") else named[1]  # as browsers do


def _read(call: BuiltInCall, host: str, response: ProviderResponse, *, is_whole_text: bool) -> tuple[str | None, Any]:
    if 300 <= response.status < 400 and response.headers.get("location"):
        return response.headers["location"], None
    content = response.read_body(MAX_RESPONSE_BYTES + 1)
    if not 200 <= response.status < 300:
        raise call.describe_status(host, response, content)
    if len(content) > MAX_RESPONSE_BYTES:
        raise AttemptFailed(f"{host} answered with more than 1 MB.")
    kind = response.headers.get("content-type", "")
    named = content[:_ENCODING_NAMED_WITHIN].decode("ascii", "replace") if "html" in kind else ""
    text = content.decode(_get_encoding(kind + named), "replace")
    if is_whole_text:
        return None, {"contentType": kind, "body": text}
    try:
        value = parse_strict_json(text) if "json" in kind or not kind else text[:MAX_TEXT_CHARS]
    except UnreadableJson:
        value = text[:MAX_TEXT_CHARS]
    return None, {"status": response.status, "contentType": kind, "body": value}
