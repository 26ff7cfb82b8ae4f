"""Choose the content space of a turn, and say what the model is told about it (decision 0450)."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from fermata.agents.agent import Agent
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import InvalidRequest

if TYPE_CHECKING:
    from fermata.agents.agent_space import AgentSpace


class PromptSpace(NamedTuple):
    """The space of a turn as `site/environment`, empty for none.

    Attributes:
        situation: The lines of the situation about it.
        withheld: The tools that the turn is not offered in it.
    """

    name: str = ""
    situation: str = ""
    withheld: tuple[str, ...] = ()


def choose_prompt_space(
    resources: Resources,
    caller: Caller,
    agent: Agent,
    named: str,
    usual: str = "",
    *,
    text: str = "",
    ui_context: Any = None,
) -> PromptSpace:
    """Return the space that the prompt or else its conversation names, or the only one of the tenant.

    Args:
        resources: Of the process.
        caller: The user of the turn.
        agent: The agent of the turn. Most work in no space.
        named: The space that the prompt names.
        usual: The one that its conversation names.
        text: What the user has written.
        ui_context: What the user has open, as the client has posted it.

    Raises:
        InvalidRequest: The agent works in no space, or the name is none.
        Forbidden: The caller may not read content, or is not a member of the space.
        NotFound: There is no such space.
    """
    if not agent.space_situation:
        if named:
            raise InvalidRequest(f"The agent {agent.id} works in no content space. Leave out 'space'.")
        return PromptSpace()
    found = replace(
        _find_space(resources, caller, named or usual),
        resources=resources,
        user=caller.user,
        capabilities=caller.capabilities,
        prompt_text=text,
        ui_context=ui_context,
    )
    name = found.key.name if found.key else ""
    return PromptSpace(name, agent.build_space_situation(found), agent.list_withheld_in_space(found))


def _find_space(resources: Resources, caller: Caller, name: str) -> "AgentSpace":
    # imported here because most turns work in no space
    from fermata.agents.agent_space import AgentSpace
    from fermata.content.model_store import list_content_models
    from fermata.content.space_access import find_space_for_caller, list_spaces_for_caller
    from fermata.content.space_members import require_membership

    if name:
        key, space = find_space_for_caller(resources, caller, name)
    else:
        spaces = list_spaces_for_caller(resources, caller)
        if len(spaces) != 1:
            return AgentSpace(choices=tuple(one.name for one, _ in spaces))
        [(key, space)] = spaces
        require_membership(resources, key, caller)
    return AgentSpace(key, space, tuple(list_content_models(resources, key)))
