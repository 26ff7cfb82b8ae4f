"""Define an API key, with which a tenant's server calls without a user's token (decision 0256).

The text of a key is `fmk_<tenant>_<id>_<secret>`: who finds one in a log or a repository sees what it is and whose.
One of the Conversation API begins with `crn_conv_` instead, and is good for nothing else (decision 0474).
Only the SHA-256 of the secret is stored; the secret is 256 random bits, so that it cannot be guessed from its hash.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from typing import Any, NamedTuple

from fermata.aws.api_key_rows import make_api_key_user
from fermata.aws.clock import iso_from_epoch
from fermata.domain.base import RecordModel
from fermata.domain.caller import Caller, Capability
from fermata.domain.conversation_key import ConversationKeyRules

API_KEY_MARK = "fmk"
CONVERSATION_KEY_MARK = "crn_conv"
MAX_API_KEY_CHARACTERS = 160
TENANT_WIDE_CAPABILITIES = frozenset({
    Capability.PROVIDERS, Capability.AUDIT, Capability.DATA, Capability.KEYS, Capability.TOOLS,
    Capability.AGENTS, Capability.READ_CONTENT, Capability.REVIEW_CONTENT, Capability.WRITE_CONTENT, Capability.CONTENT,
})  # fmt: skip
"""What they allow concerns all scopes at once, so a key for some scopes does not have them (decision 0259)."""
CONVERSATION_KEY_SCOPES = frozenset({"studio"})
CAPABILITIES_OF_KEY_ROLES = {
    "viewer": frozenset[str]({Capability.CHAT, Capability.READ_CONTENT}),
    "editor": frozenset[str]({
        Capability.CHAT, Capability.WRITE, Capability.READ_CONTENT, Capability.WRITE_CONTENT,
    }),
    "admin": frozenset[str]({
        Capability.CHAT, Capability.WRITE, Capability.READ_CONTENT, Capability.REVIEW_CONTENT,
        Capability.WRITE_CONTENT, Capability.CONTENT,
    }),
}  # fmt: skip
"""What a key of the Conversation API may do at most. Its rules narrow that when a tool is called."""
_SECRET_BYTES = 32
_API_KEY = re.compile(
    rf"(?P<mark>{API_KEY_MARK}|{CONVERSATION_KEY_MARK})_(?P<tenant>[a-z0-9-]{{1,63}})_(?P<id>[0-9a-f]{{16}})_(?P<secret>[0-9A-Za-z_-]{{43}})"
)


class ApiKeyText(NamedTuple):
    """The parts of a key's text."""

    mark: str
    tenant: str
    id: str
    secret: str

    def __str__(self) -> str:
        return f"{self.mark}_{self.tenant}_{self.id}_{self.secret}"


class ApiKeySecret(RecordModel):
    """The hash of a secret. `until` (epoch seconds) is set when it was rotated: it is not valid afterwards."""

    sha256: str
    created_at: str
    until: int | None = None


class ServerApiKey(RecordModel):
    """An API key as it is stored: what it may do, and the hashes of its secrets, the newest first."""

    id: str
    tenant: str
    label: str
    capabilities: frozenset[str]
    scopes: frozenset[str] | None = None
    """None for all scopes."""
    secrets: tuple[ApiKeySecret, ...]
    created_by: str
    created_at: str
    expires_at: int | None = None
    """Epoch seconds; None for a key that does not expire."""
    revoked_at: int | None = None
    """Epoch seconds. The row stays for a time, so that no late copy of an earlier write makes the key valid again."""
    version: int = 1
    conversation: ConversationKeyRules | None = None
    """The rules of a key of the Conversation API; None for a server's key."""

    @property
    def mark(self) -> str:
        """What the key's text begins with, which says where it is accepted."""
        return CONVERSATION_KEY_MARK if self.conversation else API_KEY_MARK

    @property
    def user(self) -> str:
        """The name under which the key acts. It stays the same when the secret is rotated."""
        return make_api_key_user(self.id)

    @property
    def prefix(self) -> str:
        """The part of the key's text that names it, and is no secret."""
        return f"{self.mark}_{self.tenant}_{self.id}"

    def to_caller(self) -> Caller:
        """Return who calls with this key, and what the caller may do."""
        rules = self.conversation
        if rules is not None:
            return Caller(
                tenant=self.tenant,
                user=self.user,
                capabilities=self.capabilities,
                label=self.label,
                api_key=self.id,
                scopes=CONVERSATION_KEY_SCOPES,
                space=rules.project,
                has_remote_tools=False,
            )
        allowed = self.capabilities if self.scopes is None else self.capabilities - TENANT_WIDE_CAPABILITIES
        return Caller(
            tenant=self.tenant,
            user=self.user,
            capabilities=allowed,
            label=self.label,
            api_key=self.id,
            scopes=self.scopes,
        )

    def to_view(self, last_used_at: str | None) -> dict[str, Any]:
        """Return the key as clients see it, without its secrets."""
        return {
            "id": self.id,
            "prefix": self.prefix,
            "label": self.label,
            "user": self.user,
            "capabilities": sorted(self.capabilities),
            "scopes": None if self.scopes is None else sorted(self.scopes),
            "conversation": self.conversation.to_known() if self.conversation else None,
            "createdBy": self.created_by,
            "createdAt": self.created_at,
            "rotatedAt": self.secrets[0].created_at,
            "expiresAt": _to_instant(self.expires_at),
            "revokedAt": _to_instant(self.revoked_at),
            "lastUsedAt": last_used_at,
        }

    def is_valid(self, secret: str, now: float) -> bool:
        """Return whether a request with this secret is admitted at `now` (epoch seconds)."""
        if self.revoked_at is not None or (self.expires_at is not None and self.expires_at <= now):
            return False
        digest = hash_api_secret(secret)
        valid = [stored.sha256 for stored in self.secrets if stored.until is None or stored.until > now]
        return any(hmac.compare_digest(digest, expected) for expected in valid)

    def is_revoked_before(self, instant: float) -> bool:
        """Return whether the key was revoked before an instant (epoch seconds)."""
        return self.revoked_at is not None and self.revoked_at < instant


def _to_instant(seconds: int | None) -> str | None:
    return None if seconds is None else iso_from_epoch(seconds)


def parse_api_key(text: str) -> ApiKeyText | None:
    """Return the parts of a key's text, or None if it has another form."""
    match = _API_KEY.fullmatch(text) if len(text) <= MAX_API_KEY_CHARACTERS else None
    return ApiKeyText(**match.groupdict()) if match else None


def looks_like_api_key(token: str) -> bool:
    return token.startswith(f"{API_KEY_MARK}_")


def looks_like_conversation_key(token: str) -> bool:
    """Return whether a bearer token is meant to be a key of the Conversation API."""
    return token.startswith(f"{CONVERSATION_KEY_MARK}_")


def generate_api_key_id() -> str:
    return secrets.token_hex(8)


def generate_api_secret() -> str:
    return secrets.token_urlsafe(_SECRET_BYTES)


def hash_api_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def sort_api_keys(keys: Iterable[ServerApiKey]) -> list[ServerApiKey]:
    """Return the keys, the newest first."""
    return sorted(keys, key=lambda key: (key.created_at, key.id), reverse=True)
