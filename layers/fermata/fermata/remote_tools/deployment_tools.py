"""Offer the remote tools that a file of the deployment lists, to all tenants (decision 0333).

The setting `TOOL_MANIFEST_PATH` names a JSON file `{"tools": [...]}`. An entry has `manifest` and `endpoint`, and may
have `staticHeaders` and `signingSecret`. Every entry is validated for itself: one that is wrong is logged and left
out. A missing file is a warning.
"""

import hashlib
import json
from dataclasses import field
from pathlib import Path
from typing import Any

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.domain.errors import ApiError, InvalidRequest
from fermata.domain.value_dataclass import value_dataclass
from fermata.drivers.transport.url_guard import UrlGuard
from fermata.remote_tools.registration_checks import check_static_headers
from fermata.remote_tools.tool_definition import RegisteredTool, ToolDefinition, ToolSecrets
from fermata.remote_tools.tool_manifest import normalize_tool_name, parse_manifest

DEPLOYMENT_ID_PREFIX = "deployment."
MAX_DEPLOYMENT_TOOLS = 64
_ID_CHARS = 20


@value_dataclass(frozen=True)
class DeploymentTool:
    """One tool of the file."""

    definition: ToolDefinition
    secrets: ToolSecrets = field(repr=False)


def get_deployment_tools(resources: Resources) -> dict[str, DeploymentTool]:
    """Return the tools of the deployment's file by their ids, which a process reads once."""
    if not resources.settings.tool_manifest_path:
        return {}
    return resources.cache.get_shared(("deployment tools",), lambda: read_deployment_tools(resources))


def read_deployment_tools(resources: Resources) -> dict[str, DeploymentTool]:
    """Read the file. Of two tools of one name, the later one counts."""
    path = resources.settings.tool_manifest_path
    try:
        value = json.loads(Path(path).read_text())
        entries = value["tools"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        observability.log_warning("tools.file_unreadable", path=path, reason=f"{type(error).__name__}: {error}"[:200])
        return {}
    by_name: dict[str, DeploymentTool] = {}
    for number, entry in enumerate(entries if isinstance(entries, list) else []):
        try:
            tool = _read_entry(resources, entry)
        except ApiError as error:
            observability.log_warning("tools.entry_refused", path=path, entry=number, reason=error.message)
            continue
        by_name[normalize_tool_name(tool.definition.parsed_manifest.name)] = tool
    return {tool.definition.id: tool for tool in list(by_name.values())[:MAX_DEPLOYMENT_TOOLS]}


def _read_entry(resources: Resources, entry: Any) -> DeploymentTool:
    if not isinstance(entry, dict):
        raise InvalidRequest("It is no object.")
    manifest = parse_manifest(entry.get("manifest"))
    endpoint, headers, secret = entry.get("endpoint"), entry.get("staticHeaders", {}), entry.get("signingSecret", "")
    is_map = isinstance(headers, dict) and all(isinstance(value, str) for value in headers.values())
    if not isinstance(endpoint, str) or not is_map or not isinstance(secret, str):
        raise InvalidRequest("`endpoint` and `signingSecret` have to be texts, `staticHeaders` an object of texts.")
    UrlGuard(loopback=resources.settings.is_loopback_allowed).check_url(endpoint)
    secrets = ToolSecrets(headers=check_static_headers(headers), signing_secrets=(secret,) if secret else ())
    identity = json.dumps([manifest.to_wire(), endpoint, secrets.to_stored_json()], sort_keys=True)
    digest = hashlib.sha256(identity.encode()).hexdigest()[:_ID_CHARS]
    definition = ToolDefinition(
        id=f"{DEPLOYMENT_ID_PREFIX}{digest}",
        tenant="",
        manifest=manifest.to_wire(),
        endpoint=endpoint,
        header_names=tuple(sorted(secrets.headers)),
        created_at=resources.clock.now_iso(),
    )
    return DeploymentTool(definition, secrets)


def list_deployment_lines(resources: Resources) -> dict[str, RegisteredTool]:
    """Return the tools of the file as lines of a list, by `normalize_tool_name`."""
    tools = [tool.definition for tool in get_deployment_tools(resources).values()]
    return {
        normalize_tool_name(one.parsed_manifest.name): RegisteredTool(
            name=one.parsed_manifest.name,
            definition=one.id,
            enabled=one.manifest.get("enabled", True),
            registered_at=one.created_at,
            updated_at=one.created_at,
        )
        for one in tools
    }
