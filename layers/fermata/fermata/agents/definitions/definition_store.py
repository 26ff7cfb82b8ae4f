"""Store the agents of a tenant: an immutable object for each version, and a row that says which versions are current.

    s3  agents/<tenant>/<id>/<version>   a compiled definition (`AgentDefinition`)
    t#<tenant>   agents                  which agents there are (`agent_list.py`)

A turn pins `agent@version`. What a push has replaced stays: running turns use it, and it says what has answered at a
time. The erasure of the tenant deletes it (decision 0358).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from fermata.agents.definitions.agent_definition import AgentDefinition
from fermata.agents.definitions.agent_list import NO_AGENT_MESSAGE, AgentList, AgentListEntry, read_agent_list
from fermata.agents.definitions.definition_storage_keys import (
    build_definition_blob_key,
)
from fermata.aws import observability
from fermata.aws.dynamodb_items_and_writes import (
    ConditionCheck,
    Put,
    TransactionCanceled,
)
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, InvalidRequest, NotFound

MAX_AGENTS = 200
MAX_KNOWN_IDS = 2000
MAX_LIST_CHARS = 350_000
"""A row has at most 400 KB."""
MAX_DEFINITION_BYTES = 1_000_000
_DEFINITION_CACHE_SECONDS = 3600
_CHANGED_MESSAGE = "The agents have just been changed by another request. Look at them, and try again."


class AgentChanges(NamedTuple):
    """What a push has changed: the ids of agents, sorted, and the version that the list has now."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: tuple[str, ...]
    version: int


def load_definition(resources: Resources, tenant: str, reference: str) -> AgentDefinition:
    """Return the definition `id@version`. A warm process makes no AWS call.

    Args:
        resources: The bucket, and the cache of the process.
        tenant: The tenant's name.
        reference: The agent and its version.

    Raises:
        LookupError: There is no such definition.
    """
    key = build_definition_blob_key(tenant, reference)

    def load() -> AgentDefinition:
        stored = resources.blobs.find_json(key)
        if stored is None:
            raise LookupError(f"There is no agent {reference!r}.")
        return AgentDefinition.from_wire(stored | {"storedVersion": reference.partition("@")[2]})

    return resources.cache.get_or_load(("agent definition", key), _DEFINITION_CACHE_SECONDS, load)


def list_definition_views(resources: Resources, tenant: str) -> dict[str, Any]:
    """Return what administrators see of a tenant's agents, by id, with the version of the list."""
    agents = read_agent_list(resources, tenant)
    return {
        "agents": [_to_view(*line) for line in sorted(agents.agents.items())],
        "version": agents.version,
        "updatedBy": agents.updated_by,
    }


def get_definition_view(resources: Resources, tenant: str, agent_id: str) -> dict[str, Any]:
    """Return one agent of a tenant with its compiled definition.

    Args:
        resources: The settings table and the bucket.
        tenant: The tenant's name.
        agent_id: The agent's id, as the client sent it.

    Raises:
        NotFound: The tenant has no such agent.
    """
    entry = read_agent_list(resources, tenant).agents.get(agent_id)
    if entry is None:
        raise NotFound(NO_AGENT_MESSAGE)
    definition = load_definition(resources, tenant, f"{agent_id}@{entry.version}")
    return {"agent": _to_view(agent_id, entry), "definition": definition.to_wire()}


def replace_agents(
    resources: Resources,
    caller: Caller,
    definitions: Mapping[str, AgentDefinition],
    *,
    expected_version: int | None = None,
) -> AgentChanges:
    """Make these the agents of the caller's tenant. Turns that run keep the versions they have.

    To replace the agents by what they are already writes nothing.

    Args:
        caller: The administrator.
        definitions: The compiled agents by their ids.
        expected_version: The version of the list that the caller has seen; None for any.

    Raises:
        Conflict: The list has another version, or another request changes it at the same time.
        InvalidRequest: There are too many agents, or one is too large.
    """
    _check_sizes(definitions)
    before = read_agent_list(resources, caller.tenant)
    if expected_version is not None and expected_version != before.version:
        raise Conflict(f"The agents have version {before.version} by now, not {expected_version}. Look at them again.")
    entries = _make_entries(resources, caller, definitions)
    changes = _compare(before, entries)
    if not (changes.added or changes.changed or changes.removed):
        return changes
    for agent_id in (*changes.added, *changes.changed):
        _put_definition(resources, caller.tenant, definitions[agent_id])
    kept = {agent_id: before.agents[agent_id] for agent_id in changes.unchanged}
    _write_list(resources, caller, before, entries | kept)
    observability.log_audit_event(
        "ai.agents.pushed",
        tenant=caller.tenant,
        user=caller.user,
        added=list(changes.added),
        changed=list(changes.changed),
        removed=list(changes.removed),
    )
    return changes._replace(version=before.version + 1)


def compare_agents(
    resources: Resources, caller: Caller, before: AgentList, definitions: Mapping[str, AgentDefinition]
) -> AgentChanges:
    """Return what `replace_agents` would change.

    Args:
        resources: The clock.
        caller: The administrator.
        before: The list as it is stored.
        definitions: The compiled agents by their ids.
    """
    return _compare(before, _make_entries(resources, caller, definitions))


def remove_agent(resources: Resources, caller: Caller, agent_id: str) -> None:
    """Remove an agent. Turns that run with it go on.

    Args:
        caller: The administrator.
        agent_id: The agent's id.

    Raises:
        NotFound: The tenant has no such agent.
        Conflict: Another request has just changed the agents, or another agent asks this one.
    """
    before = read_agent_list(resources, caller.tenant)
    if agent_id not in before.agents:
        raise NotFound(NO_AGENT_MESSAGE)
    kept = {other: entry for other, entry in before.agents.items() if other != agent_id}
    for other, entry in kept.items():
        definition = load_definition(resources, caller.tenant, f"{other}@{entry.version}")
        if any(one.agent_id == agent_id for one in definition.agents):
            raise Conflict(f"The agent {other} asks {agent_id}. Push the agents without it.")
    _write_list(resources, caller, before, kept)
    observability.log_audit_event("ai.agents.removed", tenant=caller.tenant, user=caller.user, agent=agent_id)


def _to_view(agent_id: str, entry: AgentListEntry) -> dict[str, Any]:
    return {
        "id": agent_id,
        "version": entry.version,
        "title": entry.title or agent_id,
        "description": entry.description,
        "public": entry.is_public,
        "roles": list(entry.roles),
        "updatedAt": entry.updated_at,
    }


def _check_sizes(definitions: Mapping[str, AgentDefinition]) -> None:
    if len(definitions) > MAX_AGENTS:
        raise InvalidRequest(f"A tenant has {MAX_AGENTS} agents at most.")
    for agent_id, definition in definitions.items():
        if len(definition.canonical_json) > MAX_DEFINITION_BYTES:
            raise InvalidRequest(f"The agent {agent_id} has more than {MAX_DEFINITION_BYTES:,} bytes.")


def _make_entries(
    resources: Resources, caller: Caller, definitions: Mapping[str, AgentDefinition]
) -> dict[str, AgentListEntry]:
    return {one.id: _make_entry(resources, caller, one) for one in definitions.values()}


def _make_entry(resources: Resources, caller: Caller, definition: AgentDefinition) -> AgentListEntry:
    return AgentListEntry(
        version=definition.version,
        title=definition.title[:200],
        description=definition.description[:500],
        roles=definition.access.roles,
        is_public=definition.access.is_public,
        updated_at=resources.clock.now_iso(),
    )


def _compare(before: AgentList, entries: Mapping[str, AgentListEntry]) -> AgentChanges:
    unchanged = {agent_id for agent_id, entry in entries.items() if entry.is_same_agent(before.agents.get(agent_id))}
    return AgentChanges(
        added=tuple(sorted(entries.keys() - before.agents.keys())),
        changed=tuple(sorted((entries.keys() & before.agents.keys()) - unchanged)),
        removed=tuple(sorted(before.agents.keys() - entries.keys())),
        unchanged=tuple(sorted(unchanged)),
        version=before.version,
    )


def _put_definition(resources: Resources, tenant: str, definition: AgentDefinition) -> None:
    key = build_definition_blob_key(tenant, definition.reference)
    resources.blobs.put_file(key, definition.canonical_json, "application/json")


def _write_list(resources: Resources, caller: Caller, before: AgentList, entries: Mapping[str, AgentListEntry]) -> None:
    """Store the list in place of the one that was read.

    Raises:
        InvalidRequest: The list is too long.
        Conflict: The list has changed since it was read.
    """
    known_ids = tuple(dict.fromkeys((*before.known_ids, *entries)))
    if len(known_ids) > MAX_KNOWN_IDS:
        raise Conflict(f"The tenant has had {MAX_KNOWN_IDS} ids of agents. Use one of them again.")
    changed = AgentList(agents=dict(entries), known_ids=known_ids, updated_by=caller.user, version=before.version + 1)
    if len(changed.to_item(caller.tenant)["data"]) > MAX_LIST_CHARS:
        raise InvalidRequest("The ids, titles, descriptions and roles of the agents are too long together.")
    _put_list(resources, caller.tenant, changed)


def _put_list(resources: Resources, tenant: str, changed: AgentList) -> None:
    table = resources.settings.settings_table
    is_new = changed.version == 1
    put = Put(
        table,
        changed.to_item(tenant),
        if_absent=is_new,
        condition="" if is_new else "version = :before",
        values={} if is_new else {":before": changed.version - 1},
    )
    tenant_exists = ConditionCheck(table, f"t#{tenant}", "tenant", "attribute_exists(pk)")
    try:
        resources.tables.write_items(put, tenant_exists)
    except TransactionCanceled as error:
        if error.reasons[0].item != put.item:  # else the answer to an earlier attempt was lost
            raise Conflict(_CHANGED_MESSAGE) from error
