"""Where a provider is reached, and the key that opens it."""

import re
from dataclasses import dataclass

from pydantic import SecretStr

_OTHER_VERSION = re.compile(r"/v(?!1$)\d+[a-z]*\d*(/|$)")


@dataclass(frozen=True)
class Endpoint:
    """The key stays a `SecretStr`: it shows in no repr, log line or error. It is empty where none is needed."""

    base_url: str
    api_key: SecretStr

    @property
    def plain_key(self) -> str:
        """The bare key; keys are pasted by people, who paste blanks and line ends along."""
        return self.api_key.get_secret_value().strip()

    def url_for(self, path: str) -> str:
        """The address of a path like `/v1/…`, whether or not the base already ends with its beginning.

        A base that names another version (`/api/paas/v4`, `/v1beta/openai`) takes the place of `/v1`.
        """
        base = self.base_url.strip().rstrip("/")
        if path.startswith("/v1/") and _OTHER_VERSION.search(base):
            return base + path.removeprefix("/v1")
        base = base.removesuffix("/v1").rstrip("/")
        return (base.removesuffix("/api") if path.startswith("/api/") else base) + path
