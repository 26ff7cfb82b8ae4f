"""Find the conversation that a client means by the name of its chat (decision 0381).

A name that is the id of one of the caller's conversations means that one, so that a conversation goes on in another
protocol. Any other name is the user's own: it means a conversation with an id that follows from it.
"""

import contextlib
import hashlib
import json
import re
from collections.abc import Iterator

from fermata.aws.clock import is_valid_id
from fermata.aws.resources import Resources
from fermata.conversations.conversation_store import create_conversation, get_conversation
from fermata.conversations.discard_unused import discarded_if_refused
from fermata.domain.agent_ids import AGENT_ID_PATTERN, SCOPES, make_agent_scope, read_agent_id
from fermata.domain.caller import Caller
from fermata.domain.conversation import Conversation
from fermata.domain.errors import Gone, InvalidRequest, NotFound

NO_AGENT = "There is no such agent."
MAX_CHAT_NAME_CHARS = 200
DELETED_CHAT = "This chat was deleted. Use another name."
SCOPES_WITHOUT_CHATS = ("planner",)
"""Their conversations belong to sessions."""
_AGENT_ID = re.compile(AGENT_ID_PATTERN)


def find_agent_scope(caller: Caller, agent_id: str) -> str:
    """Return the scope of the conversations with an agent.

    Args:
        caller: Who asks.
        agent_id: The agent, as the path names it.

    Raises:
        NotFound: There is no such agent, or the caller's key is not for it.
    """
    is_built_in = agent_id in SCOPES
    is_chat = agent_id not in SCOPES_WITHOUT_CHATS and _AGENT_ID.fullmatch(agent_id) is not None
    scope = agent_id if is_built_in else make_agent_scope(agent_id)
    if not is_chat or not caller.allows_scope(scope):
        raise NotFound(NO_AGENT)
    return scope


def find_chat(resources: Resources, caller: Caller, scope: str, name: str) -> Conversation | None:
    """Return the conversation of a chat, or None if it has not begun, or was deleted.

    Args:
        resources: Of the process.
        caller: Whose chat it is.
        scope: The agent's.
        name: As the client names the chat.

    Raises:
        InvalidRequest: The name is too long, or the conversation is of another agent.
    """
    if len(name) > MAX_CHAT_NAME_CHARS:
        raise InvalidRequest(f"The name of a chat has at most {MAX_CHAT_NAME_CHARS} characters.")
    for conversation_id in (name, _make_chat_id(caller, scope, name)):
        if is_valid_id(conversation_id) and (found := _find(resources, caller, conversation_id)):
            if found.scope != scope:
                raise InvalidRequest(f"This conversation belongs to scope {found.scope}, not {scope}.")
            return found
    return None


def open_chat(resources: Resources, caller: Caller, scope: str, name: str, *, space: str = "") -> Conversation:
    """Return the conversation of a chat, which begins with its first request.

    Args:
        resources: Of the process.
        caller: Whose chat it is.
        scope: The agent's.
        name: As the client names the chat.
        space: The content space of a chat that begins. It is not looked up here.

    Raises:
        NotFound: The tenant has no such agent, or the caller may not ask it.
        Gone: The chat was deleted.
    """
    return find_chat(resources, caller, scope, name) or _begin_chat(resources, caller, scope, name, space)


@contextlib.contextmanager
def opened_chat(resources: Resources, caller: Caller, scope: str, name: str) -> Iterator[Conversation]:
    """Open the conversation of a chat for a request. One that begins with it goes again if the request is refused.

    Its arguments, and what it raises, are those of `open_chat`.
    """
    found = find_chat(resources, caller, scope, name)
    conversation = found or _begin_chat(resources, caller, scope, name)
    with discarded_if_refused(resources, conversation, is_new=found is None) as opened:
        yield opened


def _begin_chat(resources: Resources, caller: Caller, scope: str, name: str, space: str = "") -> Conversation:
    if agent_id := read_agent_id(scope):
        from fermata.agents.definitions.agent_list import (  # imported here because most chats go on
            find_entry_for_caller,
            read_agent_list,
        )

        find_entry_for_caller(read_agent_list(resources, caller.tenant), caller, agent_id)
    chat_id = _make_chat_id(caller, scope, name)
    create_conversation(resources, caller, scope, None, None, "", conversation_id=chat_id, space=space)
    if found := _find(resources, caller, chat_id):
        return found
    raise Gone(DELETED_CHAT)


def _make_chat_id(caller: Caller, scope: str, name: str) -> str:
    identity = json.dumps([caller.tenant, caller.user, scope, name])
    return f"ch-{hashlib.sha256(identity.encode()).hexdigest()[:32]}"


def _find(resources: Resources, caller: Caller, conversation_id: str) -> Conversation | None:
    try:
        return get_conversation(resources, caller, conversation_id)
    except NotFound:
        return None
