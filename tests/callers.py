"""Tenants and tokens for tests.

bakery = make_tenant(desk)                       # issuer, audience and secret of a stored tenant
headers = bakery.bearer(user="ada")              # an Authorization header with every capability
"""

import time
from dataclasses import dataclass
from typing import Any

import jwt

from fermata.aws.desk import Desk
from fermata.wire.tenants import add_tenant
from fermata.words.caller import Capability

EVERYTHING = tuple(str(capability) for capability in Capability)


@dataclass(frozen=True)
class Signer:
    """Signs tokens as a tenant's own server would."""

    tenant: str
    issuer: str
    audience: str
    key: Any
    algorithm: str = "HS256"
    kid: str | None = None

    @property
    def origin(self) -> str:
        return self.issuer

    def claims(self, user: str = "ada", capabilities: Any = EVERYTHING, **others: Any) -> dict[str, Any]:
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": self.audience, "sub": user, "iat": now, "exp": now + 600}
        claims |= {"capabilities": list(capabilities) if isinstance(capabilities, tuple) else capabilities}
        return {name: value for name, value in (claims | others).items() if value is not None}

    def token(self, user: str = "ada", capabilities: Any = EVERYTHING, **others: Any) -> str:
        headers = {"kid": self.kid} if self.kid else None
        return jwt.encode(self.claims(user, capabilities, **others), self.key, self.algorithm, headers=headers)

    def bearer(self, user: str = "ada", capabilities: Any = EVERYTHING, **others: Any) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token(user, capabilities, **others)}"}

    def cookie(self, name: str = "fermata_session", **others: Any) -> dict[str, str]:
        return {"cookie": f"theme=dark; {name}={self.token(**others)}"}


def make_tenant(desk: Desk, name: str = "bakery", **settings: Any) -> Signer:
    issuer = settings.pop("issuer", f"https://{name}.example")
    wanted = {"issuer": issuer, "audience": "fermata", "origins": [f"https://{name}.example"]} | settings
    tenant, secret = add_tenant(desk, name, **wanted)
    return Signer(name, tenant.issuer, tenant.audience, secret)
