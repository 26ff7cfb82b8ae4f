"""Define an MCP connector: the token with which a user's assistant calls the MCP endpoint for the user (decision 0376).

The text of a token is `imcp_<tenant>_<id>_<secret>`. As of an API key, only the SHA-256 of the secret is stored.
"""

import hmac
import re
from typing import Any, Literal, NamedTuple

from fermata.aws.clock import iso_from_epoch
from fermata.domain.base import RecordModel
from fermata.domain.caller import Caller
from fermata.wire.auth.api_key import MAX_API_KEY_CHARACTERS, hash_api_secret

CONNECTOR_MARK = "imcp"
ConnectorType = Literal["local", "remote"]
_TOKEN = re.compile(
    rf"{CONNECTOR_MARK}_(?P<tenant>[a-z0-9-]{{1,63}})_(?P<id>[0-9a-f]{{16}})_(?P<secret>[0-9A-Za-z_-]{{43}})"
)


class ConnectorToken(NamedTuple):
    """The parts of a token's text."""

    tenant: str
    id: str
    secret: str

    def __str__(self) -> str:
        return f"{CONNECTOR_MARK}_{self.tenant}_{self.id}_{self.secret}"


class McpConnector(RecordModel):
    """A connector as it is stored: whose it is, and what may be done with it."""

    id: str
    tenant: str
    created_by: str
    """The user for whom it acts."""
    label: str
    kind: ConnectorType
    capabilities: frozenset[str]
    sha256: str
    created_at: str
    expires_at: int | None = None
    """Epoch seconds; None for one that does not expire."""
    space: str = ""
    """The content space that its agents work in, as `site/environment`; empty for one that names none."""
    revoked_at: int | None = None
    """Epoch seconds. The row stays for a time, so that no late copy of its first write makes it valid again."""

    def is_live(self, now: float) -> bool:
        """Return whether it is neither revoked nor expired at `now` (epoch seconds)."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)

    def is_valid(self, secret: str, now: float) -> bool:
        """Return whether a request with this secret is admitted at `now` (epoch seconds)."""
        return self.is_live(now) and hmac.compare_digest(hash_api_secret(secret), self.sha256)

    def to_caller(self) -> Caller:
        """Return who calls with this connector: its user, with what the connector may do."""
        return Caller(tenant=self.tenant, user=self.created_by, capabilities=self.capabilities)

    def to_view(self, last_used_at: str | None) -> dict[str, Any]:
        """Return the connector as Instatic's admin pages see it, without its secret."""
        return {
            "id": self.id,
            "label": self.label,
            "type": self.kind,
            "authMode": "bearer",
            "capabilities": sorted(self.capabilities),
            "createdAt": self.created_at,
            "lastUsedAt": last_used_at,
            "revoked": self.revoked_at is not None,
            "expiresAt": None if self.expires_at is None else iso_from_epoch(self.expires_at),
            **({"space": self.space} if self.space else {}),
        }


def parse_connector_token(text: str) -> ConnectorToken | None:
    """Return the parts of a token's text, or None if it has another form."""
    match = _TOKEN.fullmatch(text) if len(text) <= MAX_API_KEY_CHARACTERS else None
    return ConnectorToken(**match.groupdict()) if match else None


def looks_like_connector_token(token: str) -> bool:
    """Return whether a bearer token is meant to be one of a connector."""
    return token.startswith(f"{CONNECTOR_MARK}_")
