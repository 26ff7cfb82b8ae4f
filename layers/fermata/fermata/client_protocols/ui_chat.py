"""Serve clients of the AI SDK: chats with an agent, resumed streams, and stops (decisions 0379 to 0384)."""

import queue
from collections.abc import Mapping, Sequence

from fermata.aws.clock import new_id
from fermata.client_protocols.chat_conversations import find_agent_scope, find_chat, opened_chat
from fermata.client_protocols.client_messages import (
    ClientPrompt,
    build_client_tools,
    defer_downloads,
    find_last_message,
    read_ui_answers,
    read_ui_prompt,
)
from fermata.client_protocols.client_turns import (
    ClientRequest,
    find_client_turn,
    read_started_entries,
    start_client_turn,
)
from fermata.client_protocols.continue_turn import ClientTurn, make_turn_fold
from fermata.client_protocols.log_response import get_log_poller, send_chunks
from fermata.domain.conversation import Conversation
from fermata.domain.errors import BadGateway, Conflict, InvalidRequest
from fermata.domain.events import CancelledEvent, ErrorEvent, TextEvent, ToolCallEvent
from fermata.domain.page_context import AgentContext
from fermata.turns.end.stop_turn import stop_turn
from fermata.turns.turn import Turn, load_turn
from fermata.turns.turn_log import LogEntry, read_end_type, read_whole_log
from fermata.wire.bodies.chat_clients import UiChatBody
from fermata.wire.http.messages import EVENT_STREAM, EVENT_STREAM_HEARTBEAT, Response
from fermata.wire.http.routing import RequestContext
from fermata.wire.renderers.turn_fold import list_settled_calls
from fermata.wire.renderers.ui_stream import (
    UI_STREAM_HEADERS,
    AiSdkVersion,
    PlainTextRenderer,
    UiStreamRenderer,
)

MAX_FIRST_PIECE_SECONDS = 25.0
"""How long a response waits for the beginning of the answer. API Gateway waits for 29 seconds."""
INVALID_PATH = "Invalid agent path"
REGENERATE = "regenerate-message"
CONVERSATION_HEADER, BRIDGE_HEADER_OF_CHATS = "Fermata-Conversation", "Fermata-Bridge"


def chat_on_page(context: RequestContext) -> Response:
    """Answer a request of a chat that belongs to a page. The last segment of the path is the agent."""
    page, _, agent_id = context.path_parameters["path"].strip("/").rpartition("/")
    if not page or not agent_id:
        raise InvalidRequest(INVALID_PATH)
    return _answer_chat(context, agent_id, page)


def chat_with_agent(context: RequestContext) -> Response:
    """Answer a request of a chat without a page."""
    return _answer_chat(context, context.path_parameters["agentId"], "")


def resume_on_page(context: RequestContext) -> Response:
    """Follow the answer of a chat that belongs to a page."""
    parts = context.path_parameters["path"].strip("/").split("/")
    if len(parts) < 4 or parts[-1] != "stream":
        raise InvalidRequest(INVALID_PATH)
    return _resume(context, parts[-3], parts[-2])


def resume_chat(context: RequestContext) -> Response:
    """Follow the answer of a chat."""
    return _resume(context, context.path_parameters["agentId"], context.path_parameters["chatId"])


def stop_chat(context: RequestContext) -> Response:
    """End the turn that runs in a chat. Safe to repeat."""
    scope = find_agent_scope(context.caller, context.path_parameters["agentId"])
    conversation = find_chat(context.resources, context.caller, scope, context.path_parameters["chatId"])
    turn = _find_claiming_turn(context, conversation)
    if turn is None or read_end_type(context.resources, turn):
        return Response(200, {"status": "idle"})
    return Response(200, {"status": stop_turn(context.resources, turn, CancelledEvent()), "bridgeId": turn.id})


def _answer_chat(context: RequestContext, agent_id: str, page: str) -> Response:
    body = context.parse_body(UiChatBody)
    _read_sdk(context)  # refused before anything is started
    scope = find_agent_scope(context.caller, agent_id)
    if not body.messages:
        raise InvalidRequest("'messages' is empty.")
    name = _choose_name(context, body, page)
    is_text = not page and body.trigger is None and EVENT_STREAM not in context.request.headers.get("accept", "")
    if body.messages[-1].get("role") == "assistant":
        with opened_chat(context.resources, context.caller, scope, name) as conversation:
            return _go_on(context, body, conversation)
    prompt = _read_prompt(body)  # refused before there is a conversation
    with opened_chat(context.resources, context.caller, scope, name) as conversation:
        return _start(context, body, prompt, conversation, page, is_text=is_text)


def _choose_name(context: RequestContext, body: UiChatBody, page: str) -> str:
    """Return the name of a request's chat. Without a page, a request that names none begins one.

    The header of the response says which. The same request with the same key finds it.
    """
    if name := context.request.query.get("conversationId") or body.id:
        return name
    if page or body.messages[-1].get("role") == "assistant":
        raise InvalidRequest("The chat has no name: send 'id', or 'conversationId' in the query.")
    key = context.request.headers.get("idempotency-key", "")[:180]
    return f"request {key}" if key else new_id()


def _make_request_key(context: RequestContext, body: UiChatBody) -> str:
    """Return what is the same for a request that is sent again; empty if nothing is."""
    message_id = body.messages[-1].get("id")
    if isinstance(message_id, str):
        return f"{message_id} {body.trigger} {body.message_id}"
    return context.request.headers.get("idempotency-key", "")[:180]


def _read_prompt(body: UiChatBody) -> ClientPrompt:
    index = find_last_message(body.messages, "user")
    if index != len(body.messages) - 1:
        raise InvalidRequest("The last message must be the user's, or the assistant's with results of its calls.")
    return defer_downloads(read_ui_prompt, body.messages[index])


def _start(
    context: RequestContext,
    body: UiChatBody,
    prompt: ClientPrompt,
    conversation: Conversation,
    page: str,
    *,
    is_text: bool,
) -> Response:
    request = ClientRequest(
        protocol="ui",
        conversation=conversation,
        prompt=prompt,
        request_key=_make_request_key(context, body),
        client_tools=None if body.tools is None else build_client_tools(body.tools),
        has_browser_tools=body.browser_tools and not is_text,
        agent_context=AgentContext(
            page_id=page,
            url_query=body.url_query or {},
            shared_state=body.shared_state or None,
            shared_state_read_only=body.shared_state_read_only,
        ),
        cut_after=_find_last_kept_turn(context, body, conversation, len(body.messages) - 1),
        runs_confirmed_tools=is_text,
    )
    started = start_client_turn(context, body, request)
    entries = read_started_entries(context.resources, started)
    turn = started.turn
    if not page:
        entries = _await_first_piece(context, turn, entries)
    if is_text:
        return _send_text(context, turn, entries, is_returning=started.is_joined)
    fold = make_turn_fold(context.resources, turn, _list_settled(entries))
    renderer = UiStreamRenderer(fold, sdk=_read_sdk(context))
    return _send(context, turn, entries, renderer, is_returning=started.is_joined)


def _find_last_kept_turn(
    context: RequestContext, body: UiChatBody, conversation: Conversation, index: int
) -> str | None:
    """Return the turn behind which the stored conversation is dropped, if the client goes back; None if it does not."""
    is_edit = body.message_id is not None and body.message_id == body.messages[index].get("id")
    if body.trigger != REGENERATE and not is_edit:
        return None
    kept = find_last_message(body.messages[:index], "assistant")
    if kept < 0:
        return ""
    message_id = str(body.messages[kept].get("id", ""))
    turn = find_client_turn(
        context.resources, context.caller, conversation.model_copy(update={"claim": None}), message_id
    )
    if turn is None:
        raise Conflict(f"The message {message_id[:120]!r} is not one of this conversation. Read it again.")
    return turn.id


def _go_on(context: RequestContext, body: UiChatBody, conversation: Conversation) -> Response:
    message = body.messages[-1]
    message_id = str(message.get("id", ""))
    answers = read_ui_answers(message)
    if not answers:
        raise InvalidRequest("The last message is the assistant's, and has neither results of calls nor decisions.")
    turn = find_client_turn(context.resources, context.caller, conversation, message_id)
    if turn is None:
        raise InvalidRequest(f"The call {answers[0].call_id[:120]!r} is not one that this conversation waits for.")
    client_turn = ClientTurn.open(context, turn, body)
    first_segment = client_turn.apply(answers)
    fold = make_turn_fold(context.resources, turn)
    renderer = UiStreamRenderer(fold, message_id=message_id, first_segment=first_segment, sdk=_read_sdk(context))
    return _send(context, turn, client_turn.entries, renderer, is_returning=True)


def _resume(context: RequestContext, agent_id: str, name: str) -> Response:
    sdk = _read_sdk(context)
    scope = find_agent_scope(context.caller, agent_id)
    conversation = find_chat(context.resources, context.caller, scope, name)
    turn = _find_claiming_turn(context, conversation)
    entries = read_whole_log(context.resources, turn.pk) if turn else []
    if turn is None or not entries or entries[-1].state.phase == "ended":
        return Response(204)
    fold = make_turn_fold(context.resources, turn, _list_settled(entries))
    return _send(context, turn, entries, UiStreamRenderer(fold, sdk=sdk), is_returning=True)


def _find_claiming_turn(context: RequestContext, conversation: Conversation | None) -> Turn | None:
    """Return the turn that may write to a conversation. It may have ended."""
    if conversation is None or not conversation.claim:
        return None
    turn = load_turn(context.resources, context.caller.tenant, conversation.claim)
    return None if turn is None or turn.undone_turn else turn


def _list_settled(entries: Sequence[LogEntry]) -> frozenset[str]:
    return list_settled_calls([entry.events for entry in entries])


def _read_sdk(context: RequestContext) -> AiSdkVersion:
    match context.request.query.get("sdk", "6"):
        case "5":
            return 5
        case "6":
            return 6
        case "7":
            return 7
        case other:
            raise InvalidRequest(f"'sdk' must be 5, 6 or 7, not {other[:20]!r}.")


def _send(
    context: RequestContext, turn: Turn, entries: Sequence[LogEntry], renderer: UiStreamRenderer, *, is_returning: bool
) -> Response:
    return send_chunks(
        context,
        turn,
        entries,
        renderer,
        {**UI_STREAM_HEADERS, **_name_turn(turn)},
        heartbeat=EVENT_STREAM_HEARTBEAT,
        is_returning=is_returning,
        render_end=renderer.render_end,
    )


def _name_turn(turn: Turn) -> Mapping[str, str]:
    return {CONVERSATION_HEADER: turn.conversation, BRIDGE_HEADER_OF_CHATS: turn.id}


def _send_text(context: RequestContext, turn: Turn, entries: Sequence[LogEntry], *, is_returning: bool) -> Response:
    renderer = PlainTextRenderer(make_turn_fold(context.resources, turn))
    headers = {"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-cache", **_name_turn(turn)}
    return send_chunks(context, turn, entries, renderer, headers, heartbeat=b"", is_returning=is_returning)


def _await_first_piece(context: RequestContext, turn: Turn, entries: Sequence[LogEntry]) -> list[LogEntry]:
    """Wait until the answer begins, so that what fails before that is an error with a status of its own.

    Raises:
        BadGateway: The turn has failed before it has said anything.
    """
    known = list(entries)
    arrived: queue.Queue[LogEntry | None] = queue.Queue()
    follower = get_log_poller(context.resources).follow(turn, known[-1].next_number, arrived.put, known[-1])
    end = context.resources.clock.monotonic() + min(MAX_FIRST_PIECE_SECONDS, context.resources.settings.reader_seconds)
    try:
        while not _has_begun(known):
            entry = arrived.get(timeout=max(0.01, end - context.resources.clock.monotonic()))
            if entry is None:
                break
            known.append(entry)
    except queue.Empty:
        return known
    finally:
        get_log_poller(context.resources).unfollow(follower)
    return known


def _has_begun(entries: Sequence[LogEntry]) -> bool:
    events = [event for entry in entries for event in entry.events]
    has_piece = any(isinstance(event, TextEvent | ToolCallEvent) for event in events)
    failure = next((event for event in events if isinstance(event, ErrorEvent)), None)
    if failure and not has_piece:
        raise BadGateway(failure.message)
    return has_piece or entries[-1].state.phase == "ended"
