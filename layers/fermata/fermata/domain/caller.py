"""Who is asking."""

from enum import StrEnum

from fermata.domain.base import DomainModel


class Capability(StrEnum):
    CHAT = "ai.chat"
    WRITE = "ai.tools.write"
    PROVIDERS = "ai.providers.manage"
    AUDIT = "ai.audit.read"
    TURNS = "ai.turns.manage"


class Caller(DomainModel):
    """Capabilities are open strings: an editor adds its own (`site.read`) to ours."""

    tenant: str
    user: str
    capabilities: frozenset[str]
    label: str = ""
    """What people call this user, where the token says so."""

    def has_capability(self, capability: str) -> bool:
        return capability in self.capabilities
