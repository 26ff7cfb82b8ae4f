"""Create tenants and sign their tokens.

bakery = make_tenant(resources)                  # issuer, audience and secret of a stored tenant
headers = bakery.bearer_headers(user="ada")      # an Authorization header with every capability
"""

import time
from dataclasses import dataclass
from typing import Any

import jwt

from fermata.aws.resources import Resources
from fermata.domain.caller import Capability
from fermata.wire.auth.tenant_store import add_tenant

ALL_CAPABILITIES = tuple(str(capability) for capability in Capability)


@dataclass(frozen=True)
class TokenSigner:
    """Signs tokens as the tenant's own server would."""

    tenant: str
    issuer: str
    audience: str
    key: Any
    algorithm: str = "HS256"
    kid: str | None = None

    @property
    def origin(self) -> str:
        return self.issuer

    def make_claims(self, user: str = "ada", capabilities: Any = ALL_CAPABILITIES, **others: Any) -> dict[str, Any]:
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": self.audience, "sub": user, "iat": now, "exp": now + 600}
        claims |= {"capabilities": list(capabilities) if isinstance(capabilities, tuple) else capabilities}
        return {name: value for name, value in (claims | others).items() if value is not None}

    def sign_token(self, user: str = "ada", capabilities: Any = ALL_CAPABILITIES, **others: Any) -> str:
        headers = {"kid": self.kid} if self.kid else None
        return jwt.encode(self.make_claims(user, capabilities, **others), self.key, self.algorithm, headers=headers)

    def bearer_headers(self, user: str = "ada", capabilities: Any = ALL_CAPABILITIES, **others: Any) -> dict[str, str]:
        return {"authorization": f"Bearer {self.sign_token(user, capabilities, **others)}"}

    def cookie_headers(self, name: str = "fermata_session", **others: Any) -> dict[str, str]:
        return {"cookie": f"theme=dark; {name}={self.sign_token(**others)}"}


def make_tenant(resources: Resources, name: str = "bakery", **settings: Any) -> TokenSigner:
    issuer = settings.pop("issuer", f"https://{name}.example")
    fields = {"issuer": issuer, "audience": "fermata", "origins": [f"https://{name}.example"]} | settings
    tenant, secret = add_tenant(resources, name, **fields)
    return TokenSigner(name, tenant.issuer, tenant.audience, secret)
