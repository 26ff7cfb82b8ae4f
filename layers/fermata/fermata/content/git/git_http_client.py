"""Speak Git's protocol over our own connections: checked addresses, limited sizes and times, no redirects."""

import base64
import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urljoin

from dulwich.client import AbstractHttpGitClient

from fermata.content.git.git_errors import GitAccessRefused, GitMoved, GitUnavailable
from fermata.domain.errors import ProviderError
from fermata.drivers.error_mapping import redact_secrets
from fermata.drivers.transport.connection_interface import ProviderResponse
from fermata.drivers.transport.http_connection import HttpConnection

MAX_PACK_BYTES = 64 * 1024 * 1024
"""Of a response or a request: a function holds it in memory."""
MAX_GIT_WORDS_CHARS = 500
_REDIRECTS = (301, 302, 303, 307, 308)


class GitCredentials(NamedTuple):
    """A user name and a password, or a token in place of it."""

    username: str
    password: str

    @property
    def header(self) -> str:
        """The header that carries them."""
        return "Basic " + base64.b64encode(f"{self.username}:{self.password}".encode()).decode()


class GitResponse:
    """A whole response, in the form in which dulwich reads it."""

    def __init__(self, content_type: str, body: bytes) -> None:
        self.content_type = content_type
        self.redirect_location = ""
        self._body = io.BytesIO(body)

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        return self._body.read(size)

    def close(self) -> None:
        """Do nothing, because the response was read as a whole."""


class GuardedGitClient(AbstractHttpGitClient):
    """A client for one repository."""

    def __init__(self, url: str, connection: HttpConnection, credentials: GitCredentials | None) -> None:
        super().__init__(url, quiet=True)
        self._connection = connection
        self._own_credentials = credentials

    def veil(self, text: str) -> str:
        """Return the beginning of what the server says, on one line and without the password that it may repeat."""
        password = self._own_credentials.password if self._own_credentials else ""
        return redact_secrets(text, password, MAX_GIT_WORDS_CHARS)

    def _http_request(
        self,
        url: str,
        headers: dict[str, str] | None = None,
        data: bytes | Iterator[bytes] | None = None,
        raise_for_status: bool = True,
    ) -> Any:
        """Send one request. Credentials go to the repository's own address only.

        Args:
            url: The address.
            headers: Of the protocol.
            data: The body of a POST; None for a GET.
            raise_for_status: Of the protocol for servers without Git, which is not spoken.
        """
        own = {"pragma": "no-cache", "user-agent": "git/fermata", "accept-encoding": "identity", **(headers or {})}
        own.pop("Content-Length", None)
        if self._own_credentials is not None and url.startswith(self._base_url):
            own["authorization"] = self._own_credentials.header
        body = None if data is None else _join_body(data)
        try:
            with self._connection.request("git", "GET" if body is None else "POST", url, own, body) as response:
                if response.status in _REDIRECTS:
                    raise GitMoved(self.veil(_name_repository(url, response.headers)))
                _check_status(response)
                content = response.read_body(MAX_PACK_BYTES + 1)
        except ProviderError as error:
            raise GitUnavailable(f"The Git server did not answer: {error.message}") from error
        if len(content) > MAX_PACK_BYTES:
            raise GitUnavailable(
                f"The repository is too large: its newest files are more than {MAX_PACK_BYTES >> 20} MB."
            )
        content_type = response.headers.get("content-type", "")
        if not content_type.startswith("application/x-git-"):
            raise GitUnavailable("There is no Git repository at this address that is served over HTTPS.")
        found = GitResponse(content_type, content)
        reader: Callable[[int], bytes] = found.read
        return found, reader


def _join_body(data: bytes | Iterator[bytes]) -> bytes:
    body = bytearray()
    for chunk in [data] if isinstance(data, bytes) else data:
        body += chunk
        if len(body) > MAX_PACK_BYTES:
            raise GitUnavailable(f"What is to be pushed is more than {MAX_PACK_BYTES >> 20} MB.")
    return bytes(body)


def _check_status(response: ProviderResponse) -> None:
    status = response.status
    if status in (401, 403):
        raise GitAccessRefused(
            "The Git server refuses access. Enter credentials that may read and write the repository."
        )
    if status in (404, 410):
        raise GitAccessRefused("The Git server has no such repository, or does not show it with these credentials.")
    if status != 200:
        raise GitUnavailable(f"The Git server answered with the status {status}. Try again later.")


def _name_repository(url: str, headers: Mapping[str, str]) -> str:
    """Return the address of the repository that a redirect names, which may say it as seen from the former one."""
    location = headers.get("location", "")
    try:
        return urljoin(url, location).partition("/info/refs")[0] if location else "another address"
    except ValueError:  # no address
        return location
