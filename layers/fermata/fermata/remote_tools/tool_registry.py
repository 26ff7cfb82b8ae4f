"""Register, change, list and remove the remote tools of a tenant. `stored_tools.py` has their rows."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, InvalidRequest, NotFound
from fermata.remote_tools.registration_checks import check_endpoint, check_scopes, check_static_headers
from fermata.remote_tools.reserved_names import is_built_in_name
from fermata.remote_tools.stored_tools import (
    make_definition,
    open_current_secrets,
    read_definitions,
    read_registered_tools,
    read_tool_definition,
    store_tool,
)
from fermata.remote_tools.tool_definition import (
    RegisteredTool,
    RegisteredTools,
    ToolDefinition,
    ToolSecrets,
    to_tool_view,
)
from fermata.remote_tools.tool_manifest import ToolManifest, normalize_tool_name, parse_manifest
from fermata.signed_requests.signature import make_signing_secret

MAX_TOOLS = 64


class StoredTool(NamedTuple):
    """A tool after a change. `signing_secret` is set when it is new; it cannot be read again."""

    view: dict[str, Any]
    signing_secret: str | None = None


class ToolChange(NamedTuple):
    """What changes of a tool. None keeps what is there."""

    enabled: bool | None = None
    headers: Mapping[str, str] | None = None
    rotates_secret: bool = False


def list_registered_tools(resources: Resources, tenant: str) -> list[dict[str, Any]]:
    """Return the views of all tools, by name."""
    registered = read_registered_tools(resources, tenant)
    definitions = read_definitions(resources, tenant, [tool.definition for tool in registered.tools.values()])
    found = [tool for _, tool in sorted(registered.tools.items()) if tool.definition in definitions]
    return [to_tool_view(tool, definitions[tool.definition]) for tool in found]


def register_tool(
    resources: Resources,
    caller: Caller,
    manifest_json: Any,
    endpoint: str,
    *,
    headers: Mapping[str, str] | None = None,
    scopes: Collection[str] = (),
    forwards_authorization: bool = False,
    replace: bool = False,
) -> StoredTool:
    """Register a remote tool, or replace one. A tool that is replaced keeps its signing secret.

    Args:
        caller: The administrator.
        manifest_json: The manifest as it was sent.
        endpoint: The URL that its calls are posted to.
        headers: Headers of the tenant that every call has. They are sealed.
        scopes: The scopes whose turns are offered the tool; none for all.
        forwards_authorization: Whether its calls have the Authorization header of the turn's user. A replacement has
            to say so again.
        replace: Whether a tool of this name is replaced.

    Raises:
        InvalidManifest: A member of the manifest is wrong.
        InvalidRequest: The endpoint, a header or a scope is not allowed, or the tenant has too many tools.
        Conflict: The name is that of a built-in tool, or is taken and `replace` is false, or the list of tools has
            just changed.
    """
    manifest = parse_manifest(manifest_json)
    check_endpoint(resources, endpoint)
    check_scopes(scopes)
    sent_headers = check_static_headers(headers or {})
    key = normalize_tool_name(manifest.name)
    registered = read_registered_tools(resources, caller.tenant)
    old = registered.tools.get(key)
    _check_name(manifest.name, registered, old, replace=replace)
    kept = open_current_secrets(resources, caller.tenant, old.definition).signing_secrets if old else ()
    new_secret = None if kept else make_signing_secret()
    secrets = ToolSecrets(headers=sent_headers, signing_secrets=kept or (new_secret or "",))
    definition = make_definition(
        resources,
        caller.tenant,
        manifest,
        endpoint,
        tuple(sorted(scopes)),
        secrets,
        forwards_authorization=forwards_authorization,
    )
    tool = _list_definition(manifest, definition, old, resources.clock.now_iso())
    store_tool(resources, caller, registered, key, tool, definition)
    observability.log_audit_event("ai.tool.registered", tenant=caller.tenant, user=caller.user, tool=manifest.name)
    return StoredTool(to_tool_view(tool, definition), new_secret)


def _list_definition(
    manifest: ToolManifest, definition: ToolDefinition, old: RegisteredTool | None, now: str
) -> RegisteredTool:
    """Return the line of a tool's current definition in the list of tools."""
    return RegisteredTool(
        name=manifest.name,
        definition=definition.id,
        enabled=manifest.enabled,
        scopes=definition.scopes,
        forwards_authorization=definition.forwards_authorization,
        registered_at=old.registered_at if old else now,
        updated_at=now,
    )


def _check_name(name: str, registered: RegisteredTools, old: RegisteredTool | None, *, replace: bool) -> None:
    """Check that a tool may have a name, and the tenant one more tool."""
    if is_built_in_name(name):
        raise Conflict(f"{name} is a built-in tool, which cannot be replaced. Choose another name.")
    if old is not None and not replace:
        raise Conflict(f"There is a tool {old.name} already. Send 'replace': true to replace it.")
    if old is None and len(registered.tools) >= MAX_TOOLS:
        raise InvalidRequest(f"A tenant has {MAX_TOOLS} tools at most. Remove one that is not used.")


def change_tool(resources: Resources, caller: Caller, name: str, change: ToolChange) -> StoredTool:
    """Enable or disable a tool, replace its headers, or give it another signing secret.

    After a rotation, requests carry the signatures of both secrets, until the next rotation drops the older one.

    Args:
        caller: The administrator.
        name: The tool's name, in any case.
        change: What is changed.

    Raises:
        NotFound: The tenant has no such tool.
        InvalidRequest: A header is not allowed.
        Conflict: The list of tools has just changed.
    """
    registered = read_registered_tools(resources, caller.tenant)
    key, tool = _find_tool(registered, name)
    definition = read_tool_definition(resources, caller.tenant, tool.definition)
    if definition.is_built_in and (change.headers is not None or change.rotates_secret):
        raise InvalidRequest(f"{tool.name} is a built-in tool: send its new key with PUT.")
    new_secret = make_signing_secret() if change.rotates_secret else None
    update: dict[str, Any] = {"updated_at": resources.clock.now_iso()}
    if change.enabled is not None:
        update["enabled"] = change.enabled
    new_definition = None
    if change.headers is not None or new_secret:
        new_definition = _replace_secrets(resources, definition, change.headers, new_secret)
        update["definition"] = new_definition.id
    changed = tool.model_copy(update=update)
    store_tool(resources, caller, registered, key, changed, new_definition)
    observability.log_audit_event("ai.tool.changed", tenant=caller.tenant, user=caller.user, tool=tool.name)
    return StoredTool(to_tool_view(changed, new_definition or definition), new_secret)


def _replace_secrets(
    resources: Resources, definition: ToolDefinition, headers: Mapping[str, str] | None, new_secret: str | None
) -> ToolDefinition:
    """Return a new version of a tool with other headers, or with a further signing secret, or both."""
    old = open_current_secrets(resources, definition.tenant, definition.id)
    signing = (*old.signing_secrets[-1:], new_secret) if new_secret else old.signing_secrets
    return make_definition(
        resources,
        definition.tenant,
        definition.parsed_manifest,
        definition.endpoint,
        definition.scopes,
        ToolSecrets(headers=old.headers if headers is None else check_static_headers(headers), signing_secrets=signing),
        forwards_authorization=definition.forwards_authorization,
    )


def remove_tool(resources: Resources, caller: Caller, name: str) -> None:
    """Remove a tool. Turns that run may not call it any more.

    Args:
        caller: The administrator.
        name: The tool's name, in any case.

    Raises:
        NotFound: The tenant has no such tool.
        Conflict: The list of tools has just changed.
    """
    registered = read_registered_tools(resources, caller.tenant)
    key, tool = _find_tool(registered, name)
    store_tool(resources, caller, registered, key, None, None)
    observability.log_audit_event("ai.tool.removed", tenant=caller.tenant, user=caller.user, tool=tool.name)


def _find_tool(registered: RegisteredTools, name: str) -> tuple[str, RegisteredTool]:
    key = normalize_tool_name(name)
    if key not in registered.tools:
        raise NotFound(f"The tenant has no tool {name[:120]!r}.")
    return key, registered.tools[key]
