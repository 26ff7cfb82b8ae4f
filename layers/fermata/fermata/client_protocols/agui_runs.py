"""Serve clients of AG-UI: a run starts a turn, or goes on with the one that its thread waits in (decision 0382)."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fermata.client_protocols.chat_conversations import find_agent_scope, opened_chat
from fermata.client_protocols.client_messages import (
    ClientAnswer,
    build_client_tools,
    defer_downloads,
    find_last_message,
    parse_tool_content,
    read_agui_prompt,
)
from fermata.client_protocols.client_turns import (
    ClientRequest,
    find_client_turn,
    read_started_entries,
    start_client_turn,
)
from fermata.client_protocols.continue_turn import ClientTurn, make_turn_fold
from fermata.client_protocols.log_response import send_chunks
from fermata.domain.conversation import Conversation
from fermata.domain.errors import InvalidRequest
from fermata.domain.page_context import AgentContext
from fermata.turns.turn import Turn
from fermata.turns.turn_log import LogEntry
from fermata.wire.bodies.chat_clients import AguiRunBody, ResumeBody
from fermata.wire.http.messages import EVENT_STREAM_HEARTBEAT, Response
from fermata.wire.http.routing import RequestContext
from fermata.wire.renderers.agui import AGUI_HEADERS, AguiRenderer, AguiRun

MAX_NOTES_CHARS = 12_000
INSTRUCTION_ROLES = ("system", "developer")


def run_agui(context: RequestContext) -> Response:
    """Answer a run."""
    body = context.parse_body(AguiRunBody)
    scope = find_agent_scope(context.caller, context.path_parameters["agentId"])
    answers = _read_answers(body)
    is_prompt = not body.resume and bool(body.messages) and body.messages[-1].get("role") == "user"
    if answers and not is_prompt:
        with opened_chat(context.resources, context.caller, scope, body.thread_id) as conversation:
            return _go_on(context, body, conversation, answers)
    if not is_prompt:
        raise InvalidRequest("There is nothing new: neither a message of the user, nor results, nor decisions.")
    return _start(context, body, scope)


def _start(context: RequestContext, body: AguiRunBody, scope: str) -> Response:
    prompt = defer_downloads(read_agui_prompt, body.messages[-1])  # refused before there is a conversation
    client_tools = build_client_tools(body.tools)
    with opened_chat(context.resources, context.caller, scope, body.thread_id) as conversation:
        request = ClientRequest(
            protocol="agui",
            conversation=conversation,
            prompt=prompt,
            request_key=body.run_id,
            client_tools=client_tools,
            agent_context=AgentContext(
                shared_state=body.state if isinstance(body.state, dict) and body.state else None
            ),
            notes=_build_notes(body),
        )
        started = start_client_turn(context, None, request)
    entries = read_started_entries(context.resources, started)
    return _send(context, body, started.turn, entries, is_returning=started.is_joined)


def _build_notes(body: AguiRunBody) -> str:
    """Return what the front end tells the agent: its instructions, its context, and its state."""
    lines = [
        str(message.get("content", ""))
        for message in body.messages
        if message.get("role") in INSTRUCTION_ROLES and isinstance(message.get("content"), str)
    ]
    lines += [f"{fact.description}: {fact.value}" for fact in body.context]
    if body.state:
        lines.append(f"State of the application: {json.dumps(body.state, ensure_ascii=False)}")
    return "\n".join(line for line in lines if line.strip())[:MAX_NOTES_CHARS]


def _go_on(
    context: RequestContext, body: AguiRunBody, conversation: Conversation, answers: Sequence[ClientAnswer]
) -> Response:
    last = find_last_message(body.messages, "assistant")
    message_id = str(body.messages[last].get("id", "")) if last >= 0 else ""
    turn = find_client_turn(context.resources, context.caller, conversation, message_id)
    if turn is None:
        name = answers[0].call_id or answers[0].approval_id
        raise InvalidRequest(f"The call {name[:120]!r} is not one that this conversation waits for.")
    client_turn = ClientTurn.open(context, turn)
    first_segment = client_turn.apply(answers)
    return _send(context, body, turn, client_turn.entries, first_segment, is_returning=True)


def _read_answers(body: AguiRunBody) -> list[ClientAnswer]:
    """Return the results behind the assistant's last message, and the decisions of the run."""
    last = find_last_message(body.messages, "assistant")
    results = [_read_result(message) for message in body.messages[last + 1 :] if message.get("role") == "tool"]
    return [*results, *map(_read_decision, body.resume or ())]


def _read_result(message: Mapping[str, Any]) -> ClientAnswer:
    error = message.get("error")
    call_id = str(message.get("toolCallId", ""))
    if isinstance(error, str) and error:
        return ClientAnswer(call_id, error=error)
    return ClientAnswer(call_id, output=parse_tool_content(message.get("content")))


def _read_decision(entry: ResumeBody) -> ClientAnswer:
    """Return a decision. Whoever cancels an interrupt has not approved the call."""
    payload = entry.payload if isinstance(entry.payload, dict) else {"approved": entry.payload is True}
    reason, changed_input = payload.get("reason"), payload.get("input")
    return ClientAnswer(
        approval_id=entry.interrupt_id,
        is_approved=entry.status == "resolved" and payload.get("approved") is True,
        reason=reason if isinstance(reason, str) else "",
        changed_input=changed_input if isinstance(changed_input, dict) else None,
    )


def _send(
    context: RequestContext,
    body: AguiRunBody,
    turn: Turn,
    entries: Sequence[LogEntry],
    first_segment: int = 0,
    *,
    is_returning: bool,
) -> Response:
    run = AguiRun(body.thread_id, body.run_id, body.state)
    renderer = AguiRenderer(make_turn_fold(context.resources, turn), run, first_segment=first_segment)
    headers = {**AGUI_HEADERS, "Fermata-Conversation": turn.conversation, "Fermata-Bridge": turn.id}
    return send_chunks(
        context,
        turn,
        entries,
        renderer,
        headers,
        heartbeat=EVENT_STREAM_HEARTBEAT,
        is_returning=is_returning,
        render_end=renderer.render_end,
    )
