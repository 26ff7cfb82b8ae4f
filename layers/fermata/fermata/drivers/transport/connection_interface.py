"""Describe the connection on which drivers send requests, whatever carries it.

`HttpConnection` is the real one. A test that decides what arrives, and when, implements the same protocol
(decision 0171). Nothing here loads httpx.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from fermata.domain.errors import ProviderError
from fermata.domain.value_dataclass import value_dataclass
from fermata.drivers.adjustments import LearnedAdjustments
from fermata.drivers.retry_policy import Failure


@value_dataclass(frozen=True)
class ProviderResponse:
    """A response whose body arrives in chunks."""

    status: int
    headers: Mapping[str, str]
    chunks: Iterator[bytes]

    def read_body(self, limit: int = 65536) -> bytes:
        """Return at most `limit` bytes of a body that is no stream; the default is enough to understand an error."""
        body = bytearray()
        for chunk in self.chunks:
            body += chunk
            if len(body) >= limit:
                break
        return bytes(body[:limit])

    def read_error_body(self) -> bytes:
        """Return the body of an error status, as far as it is readable: the status says enough without it."""
        try:
            return self.read_body()
        except ProviderError as error:
            if error.code in (Failure.UNUSABLE_RESPONSE.code, Failure.SERVER_ERROR.code):
                return b""
            raise


class ProviderConnection(Protocol):
    """Send one request at a time, from one thread; any other thread may call `abort` at any moment.

    A stall, a call that takes too long and an abort each end the request with a `ProviderError`. Afterwards the
    connection serves the next request.
    """

    learned_adjustments: LearnedAdjustments
    """What servers have refused; providers read and extend it."""

    def call_scope(self) -> AbstractContextManager[None]:
        """Enclose one call, which may be several requests with delays in between. Scopes nest."""

    def post(
        self, label: str, url: str, headers: Mapping[str, str], body: bytes, *, request_name: str = ""
    ) -> AbstractContextManager[ProviderResponse]:
        """Send one POST request.

        Args:
            label: How error messages call the provider.
            request_name: `ModelRequest.name`. It is not sent to a provider.

        Raises:
            ProviderError: The request was not allowed, or the connection failed, stalled or was aborted.
        """

    def get(self, label: str, url: str, headers: Mapping[str, str]) -> AbstractContextManager[ProviderResponse]:
        """Send one GET request. It raises what `post` raises.

        Args:
            label: How error messages call the provider.
            url: The address, with its query.
            headers: Sent in addition to those of the client.
        """

    def sleep(self, seconds: float) -> None:
        """Wait between two requests of a call.

        Raises:
            ProviderError: The call was aborted meanwhile.
        """

    def remaining_seconds(self) -> float:
        """Return the seconds that the current call may still take."""

    def run_before_wait(self, action: Callable[[], object]) -> bool:
        """Call `action` once, in the thread that reads the response, before it waits for more of it.

        It is not called while more has arrived already. Another action takes its place.

        Returns:
            False if this connection does not know when it waits, and never calls it.
        """

    def abort(self) -> bool:
        """Stop the current call, wherever it is. Returns False if there is none."""

    def drain_response(self, response: ProviderResponse) -> None:
        """Read on to the end of the response, so that the connection can be reused; for a moment at most."""
