"""Define and read the list of a tenant's agents: which there are, in which version, and who may ask them.

t#<tenant>   agents   the list (`AgentList`)
"""

import json

from pydantic import Field

from fermata.agents.definitions.definition_storage_keys import (
    AGENTS_SORT_KEY,
    build_agents_key,
)
from fermata.aws.dynamodb_items_and_writes import (
    Item,
    ReadItem,
)
from fermata.aws.resources import Resources
from fermata.domain.base import StoredModel
from fermata.domain.caller import Caller
from fermata.domain.errors import NotFound

NO_AGENT_MESSAGE = "There is no such agent."


class AgentListEntry(StoredModel):
    """A line of the list: the current version of an agent, and who may ask it."""

    version: str
    title: str = ""
    description: str = ""
    roles: tuple[str, ...] = ()
    is_public: bool = True
    updated_at: str = ""

    def is_same_agent(self, other: "AgentListEntry | None") -> bool:
        """Return whether another line says the same, whenever it was written."""
        return other is not None and self.model_copy(update={"updated_at": other.updated_at}) == other


class AgentList(StoredModel):
    """The agents of a tenant by their ids. Version 0 was never stored.

    Attributes:
        known_ids: Every id that an agent has ever had, because conversations keep it as their scope.
        updated_by: Who has changed the list last. It is an attribute of its own, which the erasure of a user renames.
    """

    agents: dict[str, AgentListEntry] = Field(default_factory=dict)
    known_ids: tuple[str, ...] = ()
    updated_by: str = ""
    version: int = 0

    def to_item(self, tenant: str) -> Item:
        """Return the row of the settings table."""
        data = self.to_stored_json(exclude=frozenset({"version", "updated_by"}))
        return {
            "pk": f"t#{tenant}",
            "sk": AGENTS_SORT_KEY,
            "v": 1,
            "version": self.version,
            "updated_by": self.updated_by,
            "data": json.dumps(data, separators=(",", ":")),
        }

    @classmethod
    def from_item(cls, item: Item | None) -> "AgentList":
        """Read the row that lists a tenant's agents. Without one the tenant has none."""
        if item is None:
            return cls()
        own = {"version": item["version"], "updated_by": item["updated_by"]}
        return cls.from_stored(json.loads(item["data"]) | own)


def read_agent_list(resources: Resources, tenant: str, read_item: ReadItem | None = None) -> AgentList:
    """Return the list of a tenant's agents as it is stored now.

    Args:
        resources: The settings table.
        tenant: The tenant's name.
        read_item: Reads the row; by default with a request.
    """
    read = read_item or resources.tables.get_item_by_key
    return AgentList.from_item(read(build_agents_key(resources, tenant)))


def find_entry_for_caller(agents: AgentList, caller: Caller, agent_id: str) -> AgentListEntry:
    """Return the line of an agent that the caller may ask.

    Args:
        agents: The tenant's agents.
        caller: The user who asks.
        agent_id: The agent's id, as the client sent it.

    Raises:
        NotFound: There is no such agent, or the caller may not ask it: nobody can tell one from the other.
    """
    entry = agents.agents.get(agent_id)
    if entry is None or not may_ask(entry, caller):
        raise NotFound(NO_AGENT_MESSAGE)
    return entry


def may_ask(entry: AgentListEntry, caller: Caller) -> bool:
    """Return whether a caller has one of the roles that an agent requires."""
    return not entry.roles or not caller.capabilities.isdisjoint(entry.roles)
