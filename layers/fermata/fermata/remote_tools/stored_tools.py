"""Store the list of a tenant's remote tools, and the versions of each tool that turns pin (decision 0328)."""

from collections.abc import Collection

from fermata.aws.clock import new_id
from fermata.aws.dynamodb_items_and_writes import ConditionCheck, ConditionFailed, Delete, Put, TransactionCanceled
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, InvalidRequest
from fermata.remote_tools.tool_definition import (
    MAX_SECRET_BYTES,
    RegisteredTool,
    RegisteredTools,
    ToolDefinition,
    ToolSecrets,
    build_definition_key,
    build_tools_key,
    encode_tool_secrets,
    index_by_id,
    open_tool_secrets,
    seal_tool_secrets,
)
from fermata.remote_tools.tool_manifest import ToolManifest

MAX_RETIRED_VERSIONS = 200


def read_registered_tools(resources: Resources, tenant: str) -> RegisteredTools:
    """Return the list of a tenant's tools as it is stored now."""
    return RegisteredTools.from_item(resources.tables.get_item_by_key(build_tools_key(resources, tenant)))


def read_definitions(resources: Resources, tenant: str, ids: Collection[str]) -> dict[str, ToolDefinition]:
    """Return versions of tools by their ids; those that are gone are missing."""
    if not ids:
        return {}
    return index_by_id(
        resources.tables.batch_get_by_keys({build_definition_key(resources, tenant, one) for one in ids})
    )


def make_definition(
    resources: Resources,
    tenant: str,
    manifest: ToolManifest,
    endpoint: str,
    scopes: tuple[str, ...],
    secrets: ToolSecrets,
    *,
    options: dict[str, str] | None = None,
    forwards_authorization: bool = False,
) -> ToolDefinition:
    """Return a new version of a tool, with its secrets sealed. It is not stored yet.

    Args:
        tenant: The tenant's name.
        manifest: The valid manifest.
        endpoint: Where it is called.
        scopes: The scopes whose turns are offered the tool; empty for all.
        secrets: Headers and signing secrets.
        options: Of a built-in tool.
        forwards_authorization: Whether it receives the Authorization header of users.

    Raises:
        InvalidRequest: The secrets are too long.
    """
    if len(encode_tool_secrets(secrets).encode()) > MAX_SECRET_BYTES:
        raise InvalidRequest("The headers have more characters than can be sealed.")
    definition_id = new_id()
    return ToolDefinition(
        id=definition_id,
        tenant=tenant,
        manifest=manifest.to_wire(),
        endpoint=endpoint,
        scopes=scopes,
        header_names=tuple(sorted(secrets.headers)),
        options=options or {},
        forwards_authorization=forwards_authorization,
        created_at=resources.clock.now_iso(),
        sealed=seal_tool_secrets(resources, tenant, definition_id, secrets),
    )


def read_tool_definition(resources: Resources, tenant: str, definition_id: str) -> ToolDefinition:
    """Return a version of a tool, which is there."""
    return ToolDefinition.from_item(
        resources.tables.get_item_by_key(build_definition_key(resources, tenant, definition_id)) or {}
    )


def open_current_secrets(resources: Resources, tenant: str, definition_id: str) -> ToolSecrets:
    """Open the secrets of a version. If they cannot be opened any more, there are none, and a new one is made."""
    definition = read_tool_definition(resources, tenant, definition_id)
    return open_tool_secrets(resources, definition) or ToolSecrets(headers={}, signing_secrets=())


def store_tool(
    resources: Resources,
    caller: Caller,
    registered: RegisteredTools,
    key: str,
    tool: RegisteredTool | None,
    definition: ToolDefinition | None,
) -> None:
    """Store the list with one changed line, and with it the new version of the tool.

    Versions that no turn can use any more are deleted afterwards.

    Args:
        caller: The administrator.
        registered: The list as it was read.
        key: The name that is changed, from `normalize_tool_name`.
        tool: Its new line; None to remove it.
        definition: Its new version; None if that stays.

    Raises:
        Conflict: The list has changed since it was read, or too often.
    """
    now = int(resources.clock.time())
    tools = {other: line for other, line in registered.tools.items() if other != key} | ({key: tool} if tool else {})
    current = {line.definition for line in tools.values()}
    retired = registered.retired | {
        line.definition: now for line in registered.tools.values() if line.definition not in current
    }
    expired = [one for one, since in retired.items() if since < now - resources.settings.turn_lifetime_seconds]
    kept = {one: since for one, since in retired.items() if one not in expired}
    if len(kept) > MAX_RETIRED_VERSIONS:
        raise Conflict("The tools were changed too often lately. Running turns may still use their former versions.")
    changed = RegisteredTools(tools=tools, retired=kept, version=registered.version + 1)
    _write_list(resources, caller.tenant, changed, definition)
    for definition_id in expired:
        resources.tables.write_items(Delete(*build_definition_key(resources, caller.tenant, definition_id)))


def _write_list(resources: Resources, tenant: str, changed: RegisteredTools, definition: ToolDefinition | None) -> None:
    table, is_new = resources.settings.settings_table, changed.version == 1
    put = Put(
        table,
        changed.to_item(tenant),
        if_absent=is_new,
        condition="" if is_new else "version = :before",
        values={} if is_new else {":before": changed.version - 1},
    )
    writes = (put, Put(table, definition.to_item(), if_absent=True)) if definition else (put,)
    tenant_exists = ConditionCheck(table, f"t#{tenant}", "tenant", "attribute_exists(pk)")
    try:
        resources.tables.write_items(*writes, tenant_exists)
    except (ConditionFailed, TransactionCanceled) as error:
        raise Conflict("The tools have just been changed by another request. Look at them, and try again.") from error
