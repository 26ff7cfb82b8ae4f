"""Push the agents of a tenant: compile them, check what only the service knows, store their files, replace the list."""

import base64
import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from fermata.agents.definitions.agent_definition import AgentDefinition, ConnectionDefinition
from fermata.agents.definitions.agent_list import AgentList, read_agent_list
from fermata.agents.definitions.compile_definitions import CompiledFiles, compile_definitions
from fermata.agents.definitions.connection_types import CONNECTION_TYPES
from fermata.agents.definitions.definition_problems import DefinitionProblem, SourceDocument
from fermata.agents.definitions.definition_store import AgentChanges, compare_agents, load_definition, replace_agents
from fermata.agents.definitions.resolve_operators import SECRET_OPERATOR, iter_operators
from fermata.agents.definitions.tenant_secrets import list_secret_views
from fermata.agents.files.bundle_store import PushedFile, keep_file_times, name_bundle, store_bundle
from fermata.aws.resources import Resources
from fermata.aws.security_events import log_refused_address
from fermata.credentials.base_urls import make_url_guard
from fermata.domain.caller import Caller
from fermata.domain.errors import InvalidRequest
from fermata.domain.value_dataclass import value_dataclass
from fermata.drivers.registry import PROVIDER_MODULES
from fermata.drivers.transport.url_guard import UnknownHost, UrlGuard
from fermata.turns.agent_model_connection import find_credential_by_name

MAX_SHOWN_PROBLEMS = 200
MAX_SHOWN_DIFFERENCES = 500
MAX_SHOWN_CHARS = 1000
"""Of each value of a difference."""


class InvalidAgents(InvalidRequest):
    """Files that define agents have mistakes, which `problems` of the response names."""

    code = "invalid_agents"

    def __init__(self, problems: Sequence[DefinitionProblem]) -> None:
        first = problems[0]
        place = ":".join(filter(None, (first.file, str(first.line or ""))))
        more = f" There are {len(problems) - 1} more mistakes." if len(problems) > 1 else ""
        super().__init__(f"{place} {first.path}: {first.message}{more}".strip())
        self.details = {"problems": [problem.to_wire() for problem in problems[:MAX_SHOWN_PROBLEMS]]}


@value_dataclass(frozen=True)
class AgentPush:
    """What is pushed.

    Attributes:
        folders: The files of each folder that an agent reads, by its `basePath`.
        expected_version: The version of the list that the client has seen; None for any.
        dry_run: Whether nothing is stored.
    """

    documents: tuple[SourceDocument, ...]
    folders: Mapping[str, Sequence[PushedFile]]
    expected_version: int | None = None
    dry_run: bool = False


class PushedAgents(NamedTuple):
    """What a push has changed, or would change."""

    changes: AgentChanges
    warnings: tuple[DefinitionProblem, ...]
    differences: dict[str, list[dict[str, Any]]]
    """The members that differ, by the id of each changed agent."""

    def to_view(self) -> dict[str, Any]:
        """Return the wire form."""
        lists = {name: list(getattr(self.changes, name)) for name in ("added", "changed", "removed", "unchanged")}
        warnings = [warning.to_wire() for warning in self.warnings]
        return lists | {"version": self.changes.version, "warnings": warnings, "differences": self.differences}


def push_agents(resources: Resources, caller: Caller, push: AgentPush) -> PushedAgents:
    """Make what the files define the agents of the caller's tenant. To push the same again changes nothing.

    Args:
        resources: Settings and bucket.
        caller: The administrator.
        push: The files.

    Raises:
        InvalidAgents: The files have mistakes; all of them are named.
        InvalidRequest: There are too many agents, or one is too large.
        Conflict: The agents have another version, or another request changes them at the same time.
    """
    before = read_agent_list(resources, caller.tenant)
    push = _keep_times(resources, caller.tenant, before, push)
    compiled = _compile(caller.tenant, push)
    addresses = tuple(_check_addresses(resources, compiled))
    problems = (*compiled.errors, *(problem for problem in addresses if not problem.is_warning))
    if problems:
        raise InvalidAgents(problems)
    definitions = dict(compiled.definitions)
    expected = before.version if push.expected_version is None else push.expected_version
    changes = compare_agents(resources, caller, before, definitions)
    differences = _compare_definitions(resources, caller.tenant, before, definitions, changes.changed)
    if not push.dry_run:
        for definition in definitions.values():
            if definition.files:
                store_bundle(resources, caller.tenant, push.folders[definition.files.base_path])
        changes = replace_agents(resources, caller, definitions, expected_version=expected)
    warnings = [problem for problem in (*compiled.problems, *addresses) if problem.is_warning]
    warnings += _check_names(resources, caller.tenant, definitions)
    return PushedAgents(changes, tuple(warnings[:MAX_SHOWN_PROBLEMS]), differences)


def parse_pushed_files(files: Sequence[Mapping[str, Any]]) -> tuple[PushedFile, ...]:
    """Return files as they were sent.

    Args:
        files: Each with `path`, `content` in Base64 and `modifiedMs`.

    Raises:
        InvalidRequest: A content is no Base64.
    """
    parsed = []
    for file in files:
        try:
            content = base64.b64decode(file["content"], validate=True)
        except ValueError:
            raise InvalidRequest(f"The content of {file['path'][:200]!r} is no Base64.") from None
        parsed.append(PushedFile(path=file["path"], content=content, modified_ms=file["modifiedMs"]))
    return tuple(parsed)


def list_differences(before: Any, after: Any, path: str = "") -> list[dict[str, Any]]:
    """Return the members of two JSON values that differ, with both values of each.

    Args:
        before: The one value.
        after: The other.
        path: Where they are.
    """
    if isinstance(before, dict) and isinstance(after, dict):
        names = sorted(before.keys() | after.keys())
        inner = (list_differences(before.get(one), after.get(one), f"{path}.{one}" if path else one) for one in names)
        return [difference for differences in inner for difference in differences]
    return [] if before == after else [{"path": path, "before": before, "after": after}]


def _compare_definitions(
    resources: Resources,
    tenant: str,
    before: AgentList,
    definitions: Mapping[str, AgentDefinition],
    changed: Sequence[str],
) -> dict[str, list[dict[str, Any]]]:
    """Return what differs in each changed agent. Long values are cut, and so is a long list of differences."""
    found: dict[str, list[dict[str, Any]]] = {}
    room = MAX_SHOWN_DIFFERENCES
    for agent_id in changed:
        stored = load_definition(resources, tenant, f"{agent_id}@{before.agents[agent_id].version}")
        differences = list_differences(stored.to_wire(), definitions[agent_id].to_wire())[:room]
        room -= len(differences)
        found[agent_id] = [{name: _shorten(value) for name, value in one.items()} for one in differences]
    return found


def _shorten(value: Any) -> Any:
    text = value if isinstance(value, str) else json.dumps(value)
    return value if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"


def _keep_times(resources: Resources, tenant: str, before: AgentList, push: AgentPush) -> AgentPush:
    """Return the push with the times of files that are stored already, so that a fresh checkout changes nothing."""
    if not push.folders:
        return push
    stored = (load_definition(resources, tenant, f"{name}@{entry.version}") for name, entry in before.agents.items())
    bundles = {one.files.base_path: one.files.bundle for one in stored if one.files}
    folders = dict(push.folders)
    for base_path in folders.keys() & bundles.keys():
        with contextlib.suppress(InvalidRequest):  # the compiler says at which agent the files cannot be stored
            folders[base_path] = keep_file_times(resources, tenant, folders[base_path], bundles[base_path])
    return replace(push, folders=folders)


def _compile(tenant: str, push: AgentPush) -> CompiledFiles:
    def find_bundle(base_path: str) -> str:
        if base_path not in push.folders:
            raise ValueError("was not sent along")
        try:
            return name_bundle(tenant, push.folders[base_path])
        except InvalidRequest as error:
            raise ValueError(f"cannot be stored: {error.message.rstrip('.')}") from None

    return compile_definitions(push.documents, find_bundle)


def _check_addresses(resources: Resources, compiled: CompiledFiles) -> Iterator[DefinitionProblem]:
    """Yield a problem for each address that the service may not call, and a warning for each host without an address.

    Such a host may be there tomorrow, and each call checks it again.
    """
    settings = resources.settings
    provider_guard = make_url_guard(settings)
    guard = UrlGuard(loopback=settings.is_loopback_allowed, on_refusal=log_refused_address)
    checked: set[str] = set()
    for definition in compiled.definitions.values():
        for url, is_provider in _iter_addresses(definition):
            if url in checked:
                continue
            checked.add(url)
            try:
                (provider_guard if is_provider else guard).check_url_and_host(url, has_query=not is_provider)
            except InvalidRequest as error:
                message = f"The address {url!r} cannot be used: {error.message}"
                is_warning = isinstance(error, UnknownHost)
                yield DefinitionProblem(message, path=definition.id, is_warning=is_warning)


def _iter_addresses(definition: AgentDefinition) -> Iterator[tuple[str, bool]]:
    for connection in (definition.connection, *definition.connections.values()):
        if url := connection.properties.get("baseURL"):
            yield str(url), True
    yield from ((endpoint.url, False) for endpoint in definition.endpoints.values())
    yield from ((source.url, False) for source in definition.mcp if source.url)


def _check_names(
    resources: Resources, tenant: str, definitions: Mapping[str, AgentDefinition]
) -> Iterator[DefinitionProblem]:
    """Yield a warning for each credential, secret and provider that is not there yet."""
    known = {str(view["name"]) for view in list_secret_views(resources, tenant)}
    connections = {one.connection.id: one.connection for one in definitions.values()}
    for connection in connections.values():
        problem = _find_connection_problem(resources, tenant, connection)
        if problem:
            yield DefinitionProblem(problem, path=f"connections.{connection.id}", is_warning=True)
    named = {
        str(operator.parameter)
        for definition in definitions.values()
        for operator in iter_operators(definition.to_wire())
        if operator.name == SECRET_OPERATOR
    }
    for name in sorted(named - known):
        message = f"The secret {name!r} is not entered yet: PUT /admin/api/ai/secrets/{name}, or fermata secrets set."
        yield DefinitionProblem(message, path=name, is_warning=True)


def _find_connection_problem(resources: Resources, tenant: str, connection: ConnectionDefinition) -> str:
    kind = CONNECTION_TYPES[connection.type]
    if kind.provider not in PROVIDER_MODULES:
        return f"This deployment has no provider for connections of type {connection.type}."
    if not connection.credential:
        return ""
    credential = find_credential_by_name(resources, tenant, connection.credential)
    if credential is None:
        return f"The workspace has no credential {connection.credential!r} yet."
    is_fitting = credential.provider_id == kind.provider
    return "" if is_fitting else f"The credential {connection.credential!r} is of {credential.provider_id}."
