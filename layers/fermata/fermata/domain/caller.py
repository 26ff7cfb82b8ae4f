"""Define the authenticated caller of a request, and the capabilities it may have."""

from enum import StrEnum

from fermata.domain.base import DomainModel


class Capability(StrEnum):
    CHAT = "ai.chat"
    WRITE = "ai.tools.write"
    PROVIDERS = "ai.providers.manage"
    AUDIT = "ai.audit.read"
    TURNS = "ai.turns.manage"
    KEYS = "ai.keys.manage"
    DATA = "ai.data.manage"
    TOOLS = "ai.tools.manage"
    APPROVE = "ai.tools.approve"
    POLICIES = "ai.policies.manage"
    AGENTS = "ai.agents.manage"
    READ_CONTENT = "ai.content.read"
    REVIEW_CONTENT = "ai.content.review"
    WRITE_CONTENT = "ai.content.write"
    CONTENT = "ai.content.manage"


class Caller(DomainModel, defer_build=False):
    """The user a request acts for. Capabilities are open strings: editors add their own, such as `site.read`."""

    tenant: str
    user: str
    capabilities: frozenset[str]
    label: str = ""
    """The user's display name, if the token states one."""
    api_key: str = ""
    """The id of the API key that the caller has sent; empty for a user with a token."""
    scopes: frozenset[str] | None = None
    """The scopes that the caller's API key is for; None for all. Tokens of users have no such limit."""

    space: str = ""
    """The only content space that the caller's API key is for, as `site/environment`; empty for all."""
    has_remote_tools: bool = True
    """Whether the workspace's remote tools are offered. A key of the Conversation API has the studio's tools only."""

    def has_capability(self, capability: str) -> bool:
        """Return whether the caller's token grants exactly this capability. There are no wildcards."""
        return capability in self.capabilities

    def allows_scope(self, scope: str) -> bool:
        """Return whether the caller may act in this scope."""
        return self.scopes is None or scope in self.scopes
