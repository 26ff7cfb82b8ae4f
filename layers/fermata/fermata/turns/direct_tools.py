"""List the tools that a turn calls without asking a model: those that only rounds can carry out (decision 0444)."""

from collections.abc import Iterator, Sequence

from fermata.agents.registry import get_toolset
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller, Capability
from fermata.domain.dialect import NEWEST_GENERATION
from fermata.domain.value_dataclass import value_dataclass
from fermata.hosts.host_record import build_host_key, is_registered_host
from fermata.remote_tools.pinned_tools import add_remote_tools, list_tools_of_scope, load_definitions
from fermata.tools.tool import Execution, Tool


@value_dataclass(frozen=True)
class DirectTool:
    """A tool, and the scope of the turn that calls it. `is_remote`: the workspace has registered it."""

    scope: str
    tool: Tool
    is_remote: bool


def list_direct_tools(resources: Resources, caller: Caller, scopes: Sequence[str]) -> Iterator[DirectTool]:
    """Yield the tools of these scopes that a caller may have called: registered ones, and those of the content system.

    Args:
        resources: Of the process.
        caller: Who calls.
        scopes: Of built-in agents. A tool that several have is of the first one.
    """
    if not caller.has_capability(Capability.CHAT):
        return
    has_host = is_registered_host(resources.tables.get_item_by_key(build_host_key(resources, caller.tenant)))
    seen: set[str] = set()
    for scope in filter(caller.allows_scope, scopes):
        lines = list_tools_of_scope(resources, caller.tenant, scope, resources.tables.get_item_by_key)
        definitions = load_definitions(resources, caller.tenant, [line.definition for line in lines])
        toolset = add_remote_tools(get_toolset(scope, NEWEST_GENERATION), definitions)
        for tool in toolset.list_permitted_tools(caller.capabilities, scope, tenant=caller.tenant):
            is_remote = tool.execution is Execution.REMOTE
            is_of_host = has_host and tool.execution is Execution.SERVER and tool.works_without_host is not None
            if (is_remote or is_of_host) and tool.name not in seen:
                seen.add(tool.name)
                yield DirectTool(scope, tool, is_remote)
