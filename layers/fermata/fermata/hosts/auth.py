"""Sign the token that states to a host which user a request acts for."""

from typing import Any

from fermata.domain.value_dataclass import value_dataclass

HOST_AUDIENCE = "host"
HOST_TOKEN_SECONDS = 60


@value_dataclass(frozen=True)
class HostCaller:
    """The user a host request acts for, and the turn it belongs to.

    The capabilities are those the turn was started with. The host decides by them and by its own rules.
    """

    tenant: str
    user: str
    capabilities: frozenset[str]
    scope: str
    turn: str

    def to_claims(self, now: float) -> dict[str, Any]:
        """Return the JWT claims of a token issued at `now` (epoch seconds)."""
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
    """Sign a token that is valid for HOST_TOKEN_SECONDS. Its header `kid` names the secret it was signed with."""
    import jwt  # imported here, because most turns send no host request

    return jwt.encode(caller.to_claims(now), secret, "HS256", headers={"kid": key_id})
