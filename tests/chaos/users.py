"""The users of the simulated workspace, with the tokens that its server signs for them."""

from dataclasses import dataclass
from functools import cache

import jwt

from fermata.aws.clock import Clock
from fermata.domain.caller import Caller, Capability

TENANT = "bakery"
ISSUER = "https://bakery.example"
AUDIENCE = "fermata"
SECRET = "0123456789abcdefghijklmnopqrstuvwxyz-simulation"
EDITOR_CAPABILITIES = ("site.read", "site.structure.edit", "site.style.edit", "site.content.edit")
CAPABILITIES = (*(str(capability) for capability in Capability), *EDITOR_CAPABILITIES)


@dataclass(frozen=True)
class User:
    name: str

    @property
    def caller(self) -> Caller:
        return Caller(tenant=TENANT, user=self.name, capabilities=frozenset(CAPABILITIES))

    @property
    def token(self) -> str:
        return sign_token(self.name, int(Clock().time()) // 3600)


@cache
def sign_token(name: str, hour: int) -> str:
    """Sign a token for the hour: its times are checked against the clock on the wall, not the simulated one."""
    times = {"iat": hour * 3600, "exp": hour * 3600 + 3 * 3600}
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": name, "capabilities": list(CAPABILITIES)}
    return jwt.encode(claims | times, SECRET, "HS256")
