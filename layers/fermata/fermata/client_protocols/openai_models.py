"""List the agents that a caller may ask, as the models of OpenAI's clients."""

from typing import Any

from fermata.agents.definitions.agent_list import may_ask, read_agent_list
from fermata.client_protocols.chat_conversations import SCOPES_WITHOUT_CHATS
from fermata.domain.agent_ids import SCOPES, make_agent_scope
from fermata.domain.errors import NotFound
from fermata.wire.http.messages import Response
from fermata.wire.http.routing import RequestContext

CREATED = 1_767_225_600
"""The beginning of 2026. Clients want a time; agents have versions."""


def list_agent_models(context: RequestContext) -> Response:
    """List them."""
    return Response(200, {"object": "list", "data": [_describe(name) for name in _list_names(context)]})


def show_agent_model(context: RequestContext) -> Response:
    """Show one."""
    name = context.path_parameters["model"]
    if name not in _list_names(context):
        raise NotFound(f"The model '{name[:100]}' does not exist or you do not have access to it.")
    return Response(200, _describe(name))


def _list_names(context: RequestContext) -> list[str]:
    caller = context.caller
    built_in = [name for name in SCOPES if name not in SCOPES_WITHOUT_CHATS and caller.allows_scope(name)]
    listed = read_agent_list(context.resources, caller.tenant).agents
    own = [
        name for name, entry in listed.items() if may_ask(entry, caller) and caller.allows_scope(make_agent_scope(name))
    ]
    return [*built_in, *sorted(own)]


def _describe(name: str) -> dict[str, Any]:
    owner = "fermata" if name in SCOPES else "tenant"
    return {"id": name, "object": "model", "created": CREATED, "owned_by": owner}
