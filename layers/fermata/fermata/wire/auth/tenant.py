"""Define a tenant's record, and check what an operator puts into it.

Every check returns the value it was given, or raises InvalidRequest with a sentence for the operator.
"""

import re
import secrets
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field

from fermata.domain.base import RecordModel
from fermata.domain.dialect import Dialect, ToolNameVariant
from fermata.domain.errors import InvalidRequest
from fermata.domain.use_limits import UseLimitChoices
from fermata.domain.workspace_plan import Subscription

_TENANT_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_HOST = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")
_LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
_DEFAULT_PORTS = {"http": 80, "https": 443}
MIN_TENANT_SECRET_BYTES = 32
MAX_TENANT_ORIGINS = 20


class TenantLimits(UseLimitChoices):
    """Limits of one tenant, also those of what it uses (docs/limits.md). A limit that is None is the deployment's."""

    max_rounds: int | None = Field(default=None, ge=1, le=1000)
    thinking_tokens: int | None = Field(default=None, ge=0, le=100_000)
    """Tokens that a model may think before it answers; 0 leaves it to the model."""
    deleted_days: int | None = Field(default=None, ge=0, le=3650)
    """How many days a deleted conversation can be restored before it is purged; None for 30."""
    token_seconds: int = Field(default=86_400, ge=60, le=30 * 86_400)
    """The longest lifetime of a token, from `iat` to `exp`."""


class TenantSecret(RecordModel):
    """A shared secret, encrypted. `until` (epoch seconds) is set when it was rotated: it is not valid afterwards."""

    id: str
    sealed: Annotated[bytes, BeforeValidator(bytes)]
    created_at: str
    until: int | None = None


class Tenant(RecordModel):
    """A tenant. Its callers' tokens are signed with one of `secrets` (HS256) or a key at `jwks_url` (RS256, ES256)."""

    name: str
    issuer: str
    audience: str
    jwks_url: str | None = None
    secrets: tuple[TenantSecret, ...] = ()
    origins: tuple[str, ...] = ()
    dialect: Dialect = "fermata"
    tool_names: ToolNameVariant = "seed"
    limits: TenantLimits = TenantLimits()
    subscription: Subscription = Subscription()
    version: int = 1
    created_at: str
    updated_at: str

    def to_operator_view(self) -> dict[str, Any]:
        """Return the record for an operator: secrets by id and date, without their text."""
        known = self.to_known(exclude=frozenset({"secrets", "limits", "subscription"}))
        view = {name: member for name, member in known.items() if member is not None}
        limits = self.limits.to_known()
        view["limits"] = {name: limit for name, limit in limits.items() if limit is not None}
        if self.subscription != Subscription():
            view["subscription"] = self.subscription.to_known()
        view["secrets"] = [secret.to_known(exclude=frozenset({"sealed"})) for secret in self.secrets]
        return view

    def list_valid_secrets(self, now: float) -> list[TenantSecret]:
        """Return the secrets that are valid at `now` (epoch seconds), the newest first."""
        return [secret for secret in self.secrets if secret.until is None or secret.until > now]


def check_tenant_name(name: str) -> str:
    if not _TENANT_NAME.fullmatch(name):
        raise InvalidRequest("A tenant's name is 1 to 63 of a-z, 0-9 and '-', and does not begin with '-'.")
    return name


def check_tenant_text(label: str, text: str) -> str:
    if not 1 <= len(text) <= 300 or not text.isprintable():
        raise InvalidRequest(f"The {label} must be 1 to 300 printable characters.")
    return text


def check_tenant_url(label: str, url: str, *, allow_http: bool) -> str:
    """Check that a URL is https and names a host.

    Args:
        allow_http: Also accept http, as on the local stage.
    """
    check_tenant_text(label, url)
    parts = urlsplit(url)
    if parts.scheme not in (("https", "http") if allow_http else ("https",)):
        raise InvalidRequest(f"The {label} must be an https URL, not {url!r}.")
    if not parts.hostname or "@" in parts.netloc or parts.fragment:
        raise InvalidRequest(f"The {label} must name a host, without user name or fragment: {url!r} does not.")
    return url


def check_tenant_secret(secret: str) -> str:
    """Check that a secret is strong enough for HS256: as long as the hash, and not a repeated pattern."""
    if len(secret.encode()) < MIN_TENANT_SECRET_BYTES or len(set(secret)) < 10:
        raise InvalidRequest(
            f"The secret is too weak: use {MIN_TENANT_SECRET_BYTES} random bytes or more, or let one be made."
        )
    if len(secret.encode()) > 1024:
        raise InvalidRequest("The secret is too long: 1,024 bytes at most.")
    if secret.lstrip().startswith(("-----", "ssh-")):
        raise InvalidRequest(
            "That is a key file, not a shared secret. For RS256 or ES256 give the URL of your JWKS instead."
        )
    return secret


def generate_tenant_secret() -> str:
    return secrets.token_urlsafe(48)


def check_tenant_origins(origins: tuple[str, ...]) -> tuple[str, ...]:
    if len(origins) > MAX_TENANT_ORIGINS:
        raise InvalidRequest(f"A tenant may have {MAX_TENANT_ORIGINS} origins, not {len(origins)}.")
    return tuple(dict.fromkeys(_check_origin(text) for text in origins))


def _check_origin(text: str) -> str:
    origin = normalize_origin(text)
    if origin is None:
        raise InvalidRequest(f"{text!r} is not an origin. Write scheme://host or scheme://host:port, without a path.")
    if origin.startswith("http://") and urlsplit(origin).hostname not in _LOCAL_HOSTS:
        raise InvalidRequest(f"The origin {text!r} must be https; plain http is only for localhost.")
    return origin


def normalize_origin(text: str) -> str | None:
    """Normalize an origin to what browsers send: `scheme://host[:port]`, lower case, without a default port.

    Returns:
        The origin, or None if the text is none.
    """
    if len(text) > 300 or not text.isprintable():
        return None
    try:
        parts = urlsplit(text.lower())
        host = parts.hostname or ""
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or parts.path not in ("", "/") or parts.query or parts.fragment:
        return None
    if "@" in parts.netloc or not _HOST.fullmatch(host):
        return None
    bracketed = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{bracketed}" + (f":{port}" if port not in (None, _DEFAULT_PORTS[parts.scheme]) else "")
