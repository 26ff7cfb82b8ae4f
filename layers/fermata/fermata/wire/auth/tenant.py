"""A tenant's record, and what an operator may put into it.

Every check raises Invalid with a sentence for the operator. Plain http is for the local stage, and for origins
on this machine.
"""

import re
import secrets
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field

from fermata.domain.base import DomainModel
from fermata.domain.dialect import Dialect, ToolNameVariant
from fermata.domain.errors import InvalidRequest

_TENANT_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_HOST = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")
_LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
_DEFAULT_PORTS = {"http": 80, "https": 443}
MIN_TENANT_SECRET_BYTES = 32
MAX_TENANT_ORIGINS = 20


class TenantLimits(DomainModel):
    """What one tenant may ask of us; what is left out is as the deployment decides."""

    max_rounds: int | None = Field(default=None, ge=1, le=1000)
    thinking_tokens: int | None = Field(default=None, ge=0, le=100_000)
    """How much a model is told to think before it answers; 0 leaves it to the model."""
    token_seconds: int = Field(default=86_400, ge=60, le=30 * 86_400)
    """The longest a token may be good for, from issued to expired."""


class TenantSecret(DomainModel):
    """A shared secret, sealed. `until` (epoch seconds) is when one that was rotated away stops counting."""

    id: str
    sealed: Annotated[bytes, BeforeValidator(bytes)]
    created_at: str
    until: int | None = None


class Tenant(DomainModel):
    """Its callers' tokens are signed with one of `secrets` (HS256) or a key found at `jwks_url` (RS256, ES256)."""

    name: str
    issuer: str
    audience: str
    jwks_url: str | None = None
    secrets: tuple[TenantSecret, ...] = ()
    origins: tuple[str, ...] = ()
    dialect: Dialect = "fermata"
    tool_names: ToolNameVariant = "seed"
    limits: TenantLimits = TenantLimits()
    version: int = 1
    created_at: str
    updated_at: str

    def to_operator_view(self) -> dict[str, Any]:
        """For an operator's eyes: the secrets are counted and dated, never shown, sealed or open."""
        shown = self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"secrets"})
        shown["secrets"] = [secret.model_dump(by_alias=True, exclude={"sealed"}) for secret in self.secrets]
        return shown

    def list_valid_secrets(self, now: float) -> list[TenantSecret]:
        """The newest first."""
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
    """An address under https; on the local stage http will do."""
    check_tenant_text(label, url)
    parts = urlsplit(url)
    if parts.scheme not in (("https", "http") if allow_http else ("https",)):
        raise InvalidRequest(f"The {label} must be an https URL, not {url!r}.")
    if not parts.hostname or "@" in parts.netloc or parts.fragment:
        raise InvalidRequest(f"The {label} must name a host, without user name or fragment: {url!r} does not.")
    return url


def check_tenant_secret(secret: str) -> str:
    """Strong enough for HS256: as many bytes as the hash has, and not one thing said over and over."""
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
    return tuple(dict.fromkeys(_checked_origin(text) for text in origins))


def _checked_origin(text: str) -> str:
    origin = normalize_origin(text)
    if origin is None:
        raise InvalidRequest(f"{text!r} is not an origin. Write scheme://host or scheme://host:port, without a path.")
    if origin.startswith("http://") and urlsplit(origin).hostname not in _LOCAL_HOSTS:
        raise InvalidRequest(f"The origin {text!r} must be https; plain http is only for localhost.")
    return origin


def normalize_origin(text: str) -> str | None:
    """`scheme://host[:port]` as browsers send it: lower case, no standard port, no trailing slash. Else None."""
    if len(text) > 300 or not text.isprintable():
        return None
    try:
        parts = urlsplit(text.lower())
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or parts.path not in ("", "/") or parts.query or parts.fragment:
        return None
    if "@" in parts.netloc or not _HOST.fullmatch(host):
        return None
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + (f":{port}" if port not in (None, _DEFAULT_PORTS[parts.scheme]) else "")
