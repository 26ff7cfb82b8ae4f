"""Describe an MCP server as it is reached: its address, and its headers with the secrets of the tenant."""

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Literal
from urllib.parse import urlsplit

from fermata.agents.definitions.agent_definition import McpSource
from fermata.agents.definitions.tenant_secrets import resolve_secrets
from fermata.aws.resources import Resources
from fermata.domain.errors import InvalidRequest
from fermata.domain.value_dataclass import value_dataclass
from fermata.drivers.secret_veil import SecretVeil
from fermata.signed_requests.signed_post import RESERVED_HEADERS

STDIO_REFUSED_MESSAGE = (
    "The transport stdio starts a program, which is possible on the local stage only. Give the server a URL."
)
_MCP_HEADERS = frozenset({"accept", "mcp-session-id", "mcp-protocol-version", "last-event-id"})
MAX_LABEL_CHARS = 60


@value_dataclass(frozen=True)
class McpServer:
    """A server, and how it is reached.

    Attributes:
        is_local: Whether this machine may be reached, and programs may be started.
    """

    label: str
    transport: Literal["http", "sse", "stdio"]
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    is_local: bool = False

    def veil_secrets(self, text: str) -> str:
        """Return what the server or its program says, without the secrets that it was sent and may repeat."""
        values = (*self.headers.values(), *self.env.values())
        words = (value.rpartition(" ")[2] for value in values)  # `Bearer` is no secret, and what follows it is
        return SecretVeil(*dict.fromkeys((*values, *words))).veil_text(text)


def open_mcp_server(resources: Resources, tenant: str, source: McpSource) -> McpServer:
    """Return the server of a source, with the secrets that its headers and environment name. Never store or log it.

    Args:
        resources: The settings table and the vault.
        tenant: Whose source it is.
        source: As an agent's definition has it.

    Raises:
        Conflict: A secret is not entered.
        InvalidRequest: The source starts a program, and this is not the local stage.
    """
    is_local = resources.settings.is_loopback_allowed
    if source.transport == "stdio" and not is_local:
        raise InvalidRequest(STDIO_REFUSED_MESSAGE)
    headers = resolve_secrets(resources, tenant, source.headers)
    refused = RESERVED_HEADERS | _MCP_HEADERS
    return McpServer(
        label=make_source_label(source),
        transport=source.transport,
        url=source.url,
        headers={str(name): str(value) for name, value in headers.items() if str(name).lower() not in refused},
        command=source.command,
        args=source.args,
        env={str(name): str(value) for name, value in resolve_secrets(resources, tenant, source.env).items()},
        is_local=is_local,
    )


def make_source_label(source: McpSource) -> str:
    """Return what people and models call a source: the id of its connection, its host or its program."""
    label = source.connection_id or urlsplit(source.url).hostname or source.command.rpartition("/")[2]
    return re.sub(r"[^\w.:-]", "_", label, flags=re.ASCII)[:MAX_LABEL_CHARS] or "mcp"
