"""Serve clients of the CMS agent's own protocol: prompts, their answers as named events or whole, and decisions."""

import hashlib
from dataclasses import replace
from decimal import Decimal
from functools import partial

from fermata.aws.clock import new_id
from fermata.client_protocols.chat_conversations import opened_chat
from fermata.client_protocols.client_messages import ClientPrompt
from fermata.client_protocols.client_turns import (
    ClientRequest,
    make_failure_error,
    read_started_entries,
    start_client_turn,
)
from fermata.client_protocols.cms_agent_sessions import CMS_SCOPE
from fermata.client_protocols.continue_turn import make_turn_fold
from fermata.client_protocols.log_response import send_chunks
from fermata.credentials.model_list import find_list_price
from fermata.domain.blocks import TextBlock
from fermata.domain.conversation import Conversation
from fermata.domain.errors import Conflict, InvalidRequest, NotFound
from fermata.turns.approvals.approval_answer import ApprovalAnswer
from fermata.turns.approvals.decide_approval import decide_approval
from fermata.turns.start.commit_start import StartedTurn
from fermata.turns.turn import TURN_NOT_FOUND_MESSAGE, Turn, find_turn_for_caller
from fermata.turns.turn_log import LogEntry, read_whole_log
from fermata.wire.bodies.cms_agent_requests import CmsDecisionBody, CmsPromptBody
from fermata.wire.http.cms_agent_envelope import build_cms_envelope
from fermata.wire.http.json_body import parse_body
from fermata.wire.http.messages import EVENT_STREAM, EVENT_STREAM_HEARTBEAT, Response
from fermata.wire.http.rate_limit_headers import build_rate_limit_headers
from fermata.wire.http.routing import RequestContext
from fermata.wire.renderers.cms_agent_stream import CmsAgentRenderer, CmsAnswerHead, CmsProgress

CMS_STREAM_HEADERS = {
    "Content-Type": EVENT_STREAM,
    "Cache-Control": "private, no-store",
    "X-Accel-Buffering": "no",
}


def stream_cms_answer(context: RequestContext) -> Response:
    """Answer a prompt with a stream of named events, which goes on while a person decides."""
    body = parse_body(context.request, CmsPromptBody, ignore_unknown=True)
    started = _start(context, body)
    renderer = _make_renderer(context, started, body.prompt)
    return send_chunks(
        context,
        started.turn,
        _read_entries(context, started),
        renderer,
        CMS_STREAM_HEADERS | _build_rate_headers(started),
        heartbeat=EVENT_STREAM_HEARTBEAT,
        is_returning=started.is_joined,
        render_end=renderer.render_end,
        see_entry=partial(_show_progress, renderer),
    )


def generate_cms_answer(context: RequestContext) -> Response:
    """Answer a prompt as a whole, once it is there or a person has to decide."""
    body = parse_body(context.request, CmsPromptBody, ignore_unknown=True)
    started = _start(context, body)
    renderer = _make_renderer(context, started, body.prompt, is_whole=True)
    entries = read_started_entries(context.resources, started)
    headers = _build_rate_headers(started)
    response = send_chunks(
        context, started.turn, entries, renderer, headers, heartbeat=b"", is_returning=started.is_joined
    )
    return replace(response, build_whole=partial(_build_whole, context, renderer))


def follow_cms_answer(context: RequestContext) -> Response:
    """Send the events of an answer from its beginning, and those to come."""
    resources = context.resources
    turn = find_turn_for_caller(resources, context.caller, context.path_parameters["traceId"])
    if turn.scope != CMS_SCOPE or turn.undone_turn:
        raise NotFound(TURN_NOT_FOUND_MESSAGE)
    head = CmsAnswerHead(turn.id, turn.conversation, turn.model, price=_find_price(context, turn))
    renderer = CmsAgentRenderer(make_turn_fold(resources, turn), head, resources.clock.now_iso)
    return send_chunks(
        context,
        turn,
        read_whole_log(resources, turn.pk, with_states=True),
        renderer,
        CMS_STREAM_HEADERS,
        heartbeat=EVENT_STREAM_HEARTBEAT,
        is_returning=True,
        render_end=renderer.render_end,
        see_entry=partial(_show_progress, renderer),
    )


def decide_cms_approval(context: RequestContext) -> Response:
    """Store the decision of a person about a call. What cannot be decided any more is an invalid request here."""
    body = parse_body(context.request, CmsDecisionBody)
    approval_id = context.path_parameters["approvalId"]
    try:
        record = decide_approval(
            context.resources, context.caller, approval_id, ApprovalAnswer(body.approved, body.reason)
        )
    except (NotFound, Conflict) as refusal:
        raise InvalidRequest(refusal.message) from refusal
    now = context.resources.clock.now_iso()
    decision = {"approved": body.approved, "reason": body.reason, "timestamp": record.decided_at or now}
    return Response(200, build_cms_envelope({"approvalId": approval_id, "response": decision}, now))


def _start(context: RequestContext, body: CmsPromptBody) -> StartedTurn:
    """Start the turn of a prompt, or join that of the same request. One that is refused leaves no session behind."""
    prompt = body.prompt.strip()
    if not prompt:
        raise InvalidRequest("'prompt' is empty.")
    resources, name = context.resources, body.session_id or _name_new_session(context)
    with opened_chat(resources, context.caller, CMS_SCOPE, name) as conversation:
        return _start_in(context, body, prompt, conversation)


def _name_new_session(context: RequestContext) -> str:
    """Return the name of a session that begins: the same for the same request sent again, by its Idempotency-Key."""
    key = context.request.headers.get("idempotency-key", "")
    return f"request {hashlib.sha256(key.encode()).hexdigest()[:32]}" if key else new_id()


def _start_in(context: RequestContext, body: CmsPromptBody, prompt: str, conversation: Conversation) -> StartedTurn:
    request = ClientRequest(
        protocol="cms",
        conversation=conversation,
        prompt=ClientPrompt((TextBlock(text=prompt),)),
        has_browser_tools=False,
        model_id=body.model_id or "",
        space=body.cms_target.space if body.cms_target else "",
    )
    return start_client_turn(context, None, request)


def _make_renderer(
    context: RequestContext, started: StartedTurn, prompt: str, *, is_whole: bool = False
) -> CmsAgentRenderer:
    turn = started.turn
    price = None if is_whole else _find_price(context, turn)
    head = CmsAnswerHead(turn.id, turn.conversation, turn.model, prompt.strip(), price)
    fold = make_turn_fold(context.resources, turn)
    return CmsAgentRenderer(fold, head, context.resources.clock.now_iso, is_whole=is_whole)


def _read_entries(context: RequestContext, started: StartedTurn) -> list[LogEntry]:
    """Return the entries that are known of a started turn, with what its steps are measured by."""
    if started.is_joined:
        return read_whole_log(context.resources, started.turn.pk, with_states=True)
    return [started.entry]


def _find_price(context: RequestContext, turn: Turn) -> tuple[float, float] | None:
    price = find_list_price(context.resources, turn.provider, turn.model)
    return (price.input_per_mtok, price.output_per_mtok) if price else None


def _show_progress(renderer: CmsAgentRenderer, entry: LogEntry) -> None:
    state = entry.state
    used = (state.prompt_tokens, state.completion_tokens, Decimal(state.cost))
    renderer.see_progress(CmsProgress(entry.at_ms, *used))


def _build_rate_headers(started: StartedTurn) -> dict[str, str]:
    """Return how many prompts are left; nothing for a repeated request, which counts none."""
    return build_rate_limit_headers(*started.prompt_rate) if started.prompt_rate else {}


def _build_whole(context: RequestContext, renderer: CmsAgentRenderer) -> Response:
    """Return the answer, or the error of a turn that has failed."""
    answer = renderer.answer
    if answer.failure is not None:
        raise make_failure_error(answer.failure)
    data = answer.to_wire() | {"approvals": list(answer.approvals.values())}
    return Response(200, build_cms_envelope(data, context.resources.clock.now_iso()))
