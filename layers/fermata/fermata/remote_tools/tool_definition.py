"""Define a registered tool as it is stored: one immutable row for each version, and one row that lists the tools.

    t#<tenant>   tools        which tools there are, and which version of each (`RegisteredTools`)
    t#<tenant>   tool#<id>    a version: manifest, endpoint, sealed headers and signing secrets (`ToolDefinition`)

A turn pins the ids of the versions that it starts with (decision 0328).
"""

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from pydantic import Field

from fermata.aws.dynamodb_items_and_writes import Item, ItemKey
from fermata.aws.resources import Resources
from fermata.aws.vault import SecretUndecryptable
from fermata.domain.base import StoredModel
from fermata.remote_tools.tool_manifest import ToolManifest

TOOLS_SORT_KEY = "tools"
MAX_SECRET_BYTES = 4096
"""Of headers and signing secrets together; KMS seals no more."""


class ToolDefinition(StoredModel):
    """One version of a registered tool. It never changes."""

    id: str
    tenant: str
    manifest: dict[str, Any]
    endpoint: str
    scopes: tuple[str, ...] = ()
    """The scopes whose turns are offered the tool; empty for all."""
    header_names: tuple[str, ...] = ()
    options: dict[str, str] = Field(default_factory=dict)
    """Of a built-in tool: what its administrator has set besides the key."""
    forwards_authorization: bool = False
    """Whether its endpoint is sent the Authorization header of the turn's user."""
    created_at: str
    sealed: bytes = b""

    @cached_property
    def parsed_manifest(self) -> ToolManifest:
        """The manifest, which was validated when it was registered. The list of tools says what is turned off."""
        return ToolManifest.model_validate(self.manifest | {"enabled": True})

    @property
    def is_built_in(self) -> bool:
        """Whether the service itself carries the tool out."""
        return self.endpoint.startswith("builtin:")

    def to_item(self) -> Item:
        """Return the row of the settings table."""
        stored = self.to_stored(exclude=frozenset({"manifest", "tenant", "sealed"}))
        data = {"data": json.dumps(stored | {"manifest": self.manifest}, separators=(",", ":"))}
        return {"pk": f"t#{self.tenant}", "sk": f"tool#{self.id}", "v": 1, "sealed": self.sealed} | data

    @classmethod
    def from_item(cls, item: Item) -> "ToolDefinition":
        """Read the row of one version of a tool."""
        tenant = str(item["pk"]).removeprefix("t#")
        return cls.from_stored(json.loads(item["data"]) | {"tenant": tenant, "sealed": bytes(item["sealed"])})


class ToolSecrets(StoredModel):
    """The secrets of a tool: the headers that are sent along, and the keys that sign, the newest last."""

    headers: dict[str, str]
    signing_secrets: tuple[str, ...]


class RegisteredTool(StoredModel):
    """A line of the list: the current version of a tool."""

    name: str
    definition: str
    enabled: bool = True
    scopes: tuple[str, ...] = ()
    forwards_authorization: bool = False
    registered_at: str
    updated_at: str


class RegisteredTools(StoredModel, defer_build=False):
    """The tools of a tenant, by `normalize_tool_name`, and the versions that running turns may still use."""

    tools: dict[str, RegisteredTool] = Field(default_factory=dict)
    retired: dict[str, int] = Field(default_factory=dict)
    """When a version was replaced or removed, in epoch seconds, by its id."""
    version: int = 0

    def to_item(self, tenant: str) -> Item:
        """Return the row of the settings table."""
        data = self.to_stored_json(exclude=frozenset({"version"}))
        return {
            "pk": f"t#{tenant}",
            "sk": TOOLS_SORT_KEY,
            "v": 1,
            "version": self.version,
            "data": json.dumps(data, separators=(",", ":")),
        }

    @classmethod
    def from_item(cls, item: Item | None) -> "RegisteredTools":
        """Read the row that lists a tenant's tools. Without one the tenant has none."""
        return cls() if item is None else cls.from_stored(json.loads(item["data"]) | {"version": item["version"]})


def build_tools_key(resources: Resources, tenant: str) -> ItemKey:
    """Return the key of the row that lists a tenant's tools."""
    return ItemKey(resources.settings.settings_table, f"t#{tenant}", TOOLS_SORT_KEY)


def build_definition_key(resources: Resources, tenant: str, definition_id: str) -> ItemKey:
    """Return the key of one version of a tool."""
    return ItemKey(resources.settings.settings_table, f"t#{tenant}", f"tool#{definition_id}")


def seal_tool_secrets(resources: Resources, tenant: str, definition_id: str, secrets: ToolSecrets) -> bytes:
    """Encrypt the secrets of a version. They take at most MAX_SECRET_BYTES."""
    text = encode_tool_secrets(secrets)
    return resources.vault.seal_secret(text, purpose="tool-secret", tenant=tenant, name=definition_id)


def encode_tool_secrets(secrets: ToolSecrets) -> str:
    """Return the text that is sealed."""
    return json.dumps(secrets.to_stored_json(), separators=(",", ":"))


def open_tool_secrets(resources: Resources, definition: ToolDefinition) -> ToolSecrets | None:
    """Decrypt the secrets of a version; None if they can no longer be opened."""
    try:
        text = resources.vault.open_secret(
            definition.sealed, purpose="tool-secret", tenant=definition.tenant, name=definition.id
        )
    except SecretUndecryptable:
        return None
    return ToolSecrets.from_stored({"headers": {}, "signing_secrets": ()} | json.loads(text))


def to_tool_view(tool: RegisteredTool, definition: ToolDefinition, source: str = "") -> dict[str, Any]:
    """Return what administrators see of a tool: the names of its headers and never their values.

    Args:
        tool: Its line in the list.
        definition: Its current version.
        source: Where it is from, if that is not the tenant.
    """
    return {
        "manifest": definition.manifest | {"enabled": tool.enabled},
        "source": source or ("builtin" if definition.is_built_in else "remote"),
        "endpoint": definition.endpoint,
        "scopes": list(definition.scopes),
        **({"options": definition.options} if definition.is_built_in else {}),
        "headerNames": list(definition.header_names),
        "forwardAuthorization": definition.forwards_authorization,
        "definition": definition.id,
        "registeredAt": tool.registered_at,
        "updatedAt": tool.updated_at,
    }


def index_by_id(definitions: Mapping[ItemKey, Item]) -> dict[str, ToolDefinition]:
    """Return the versions of rows by their ids."""
    parsed = map(ToolDefinition.from_item, definitions.values())
    return {definition.id: definition for definition in parsed}
