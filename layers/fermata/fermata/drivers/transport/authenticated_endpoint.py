"""Hold where a provider is reached and with which key."""

import re

from pydantic import SecretStr

from fermata.domain.value_dataclass import value_dataclass

_OTHER_VERSION = re.compile(r"/v(?!1$)\d++(?:[a-z]++\d*+)?(/|$)")


@value_dataclass(frozen=True)
class AuthenticatedEndpoint:
    """A base URL and an API key.

    The key stays a `SecretStr`, so that no repr, log line or error shows it. It is empty if the server needs none.
    """

    base_url: str
    api_key: SecretStr

    @property
    def plain_key(self) -> str:
        """The key itself, without the blanks and line ends that people paste along."""
        return self.api_key.get_secret_value().strip()

    def url_for(self, path: str) -> str:
        """Return the URL of a path like `/v1/…`, whether or not the base URL already ends with its beginning.

        A base URL that names another version (`/api/paas/v4`, `/v1beta/openai`) replaces `/v1` (decision 0073).
        """
        base = self.base_url.strip().rstrip("/")
        if path.startswith("/v1/") and _OTHER_VERSION.search(base):
            return base + path.removeprefix("/v1")
        version = "/v1beta" if path.startswith("/v1beta/") else "/v1"
        base = base.removesuffix("/v1").removesuffix(version).rstrip("/")
        return (base.removesuffix("/api") if path.startswith("/api/") else base) + path
