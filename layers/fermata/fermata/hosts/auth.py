"""In whose name a host is asked, and the token that says so."""

from dataclasses import dataclass
from typing import Any

HOST_AUDIENCE = "host"
HOST_TOKEN_SECONDS = 60


@dataclass(frozen=True)
class HostCaller:
    """The rights are those the turn was started with; the host decides by them, and by its own."""

    tenant: str
    user: str
    capabilities: frozenset[str]
    scope: str
    turn: str

    def to_claims(self, now: float) -> dict[str, Any]:
        return {
            "iss": "fermata",
            "aud": HOST_AUDIENCE,
            "sub": self.user,
            "tenant": self.tenant,
            "capabilities": sorted(self.capabilities),
            "scope": self.scope,
            "turn": self.turn,
            "iat": int(now),
            "exp": int(now) + HOST_TOKEN_SECONDS,
        }


def sign_host_token(caller: HostCaller, secret: str, key_id: str, now: float) -> str:
    """A token good for a minute. `name` tells the host which of its secrets it was signed with (`kid`)."""
    import jwt  # here, because most turns never ask a host

    return jwt.encode(caller.to_claims(now), secret, "HS256", headers={"kid": key_id})
