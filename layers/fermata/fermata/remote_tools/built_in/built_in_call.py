"""Define what a built-in tool works with, and send its HTTP requests."""

import json
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, NamedTuple
from urllib.parse import urlencode

from fermata.domain.errors import ProviderError
from fermata.domain.lenient_json import UnreadableJson
from fermata.domain.value_dataclass import value_dataclass
from fermata.drivers.error_mapping import parse_retry_after, redact_secrets
from fermata.drivers.protocols.tool_arguments import parse_strict_json
from fermata.drivers.transport.connection_interface import ProviderConnection, ProviderResponse
from fermata.remote_tools.manifest_tool_executor import AttemptFailed
from fermata.remote_tools.paid_request_report import ReportPaidRequest, ignore_paid_request
from fermata.remote_tools.signed_tool_attempt import MAX_ENDPOINT_WORDS_CHARS, is_refused_status, is_transient_status
from fermata.signed_requests.signed_post import MAX_RESPONSE_BYTES, is_transient_transport_error


class FoundPhoto(NamedTuple):
    """A photo of a stock that is to become an image of the site.

    Attributes:
        url: Where its file is.
        tags: Of which one names the stock and the photo, such as `pexels:7`.
    """

    url: str
    filename: str
    alt: str
    tags: tuple[str, ...]


StorePhoto = Callable[[FoundPhoto], Mapping[str, Any]]
"""Fetches a photo and stores it as an image of the turn's site; returns `imageId`, `url`, `filename` and `isNew`."""
StoreImage = Callable[[bytes, str], str]
"""Stores the bytes of an image of a MIME type, and returns its URL."""


def refuse_photo(_photo: FoundPhoto) -> Mapping[str, Any]:
    """Stand for a turn that works in no site.

    Raises:
        AttemptFailed: Always.
    """
    raise AttemptFailed("No site is chosen. Ask the user which site and environment to work on.")


@value_dataclass(frozen=True)
class BuiltInCall:
    """One call of a built-in tool.

    Attributes:
        options: What the administrator has set besides the key.
        store_image: Keeps an image with the conversation.
        report_paid_request: Lets a request be accounted for.
        store_photo: Makes a photo an image of the turn's site. Raises AttemptFailed.
    """

    arguments: Mapping[str, Any]
    api_key: str = field(repr=False)
    options: Mapping[str, str]
    connection: ProviderConnection
    store_image: StoreImage
    effect_key: str
    report_paid_request: ReportPaidRequest = ignore_paid_request
    store_photo: StorePhoto = refuse_photo

    def get_json(self, label: str, url: str, query: Mapping[str, Any], headers: Mapping[str, str]) -> Any:
        """Send a GET request and return the JSON of its response. Raises AttemptFailed."""
        return self.read_json(label, "GET", f"{url}?{urlencode(query)}" if query else url, headers, None)

    def post_json(
        self, label: str, url: str, body: Any, headers: Mapping[str, str], limit: int = MAX_RESPONSE_BYTES
    ) -> Any:
        """Send JSON with a POST request and return that of its response. Raises AttemptFailed."""
        content = json.dumps(body).encode()
        return self.read_json(label, "POST", url, {"content-type": "application/json", **headers}, content, limit)

    def read_json(
        self,
        label: str,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        limit: int = MAX_RESPONSE_BYTES,
    ) -> Any:
        """Send a request and return the JSON of its response.

        Raises:
            AttemptFailed: It was refused or failed, or the response is no JSON or too large.
        """
        own = {"accept": "application/json", "accept-encoding": "identity"}
        try:
            exchange = (
                self.connection.get(label, url, own | dict(headers))
                if body is None
                else self.connection.post(label, url, own | dict(headers), body)
            )
            with exchange as response:
                return self._parse(label, response, limit)
        except ProviderError as error:
            reason = error.message.partition(" failed: ")[2] or error.message
            is_transient = is_transient_transport_error(error)
            message = f"{label} did not answer: {reason}"
            raise AttemptFailed(message, is_transient=is_transient, is_unanswered=not error.is_unsent) from error

    def _parse(self, label: str, response: ProviderResponse, limit: int) -> Any:
        content = response.read_body(limit + 1)
        if not 200 <= response.status < 300:
            raise self.describe_status(label, response, content)
        if len(content) > limit:
            raise AttemptFailed(f"{label} answered with more than {limit // 1024} KB.", is_unanswered=True)
        try:
            return parse_strict_json(content.decode("utf-8", "replace"))
        except UnreadableJson:
            raise AttemptFailed(f"{label} answered with what is no JSON.", is_unanswered=True) from None

    def describe_status(self, label: str, response: ProviderResponse, content: bytes) -> AttemptFailed:
        """Return the failure of a response whose status is not a success, without the key."""
        status = response.status
        words = redact_secrets(content[:2000].decode("utf-8", "replace"), self.api_key, MAX_ENDPOINT_WORDS_CHARS)
        return AttemptFailed(
            f"{label} answered {status}: {words}" if words else f"{label} answered {status}.",
            is_transient=is_transient_status(status),
            was_refused=is_refused_status(status),
            retry_after=parse_retry_after(response.headers),
        )
