"""Serve OpenAI's clients: each request starts a turn of an agent, or goes on with one (decision 0385)."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from fermata.client_protocols.chat_conversations import find_agent_scope, open_chat
from fermata.client_protocols.client_messages import ClientAnswer, build_client_tools, parse_tool_content
from fermata.client_protocols.client_turns import ClientRequest, read_started_entries, start_client_turn
from fermata.client_protocols.continue_turn import ClientTurn, make_turn_fold
from fermata.client_protocols.log_response import handler_pool, send_chunks
from fermata.client_protocols.openai_conversations import (
    RESPONSE_ID_PREFIX,
    find_response_conversation,
    open_transcript_conversation,
    store_transcript,
)
from fermata.client_protocols.openai_transcript import (
    Transcript,
    TranscriptCall,
    TranscriptMessage,
    read_chat_transcript,
    read_client_tools,
    read_response_transcript,
)
from fermata.domain.conversation import Conversation
from fermata.domain.errors import InvalidRequest, NotFound
from fermata.domain.events import DoneEvent, Event
from fermata.turns.turn import Turn, find_turn_for_caller
from fermata.turns.turn_log import LogEntry, read_last_entry
from fermata.wire.bodies.openai_requests import ChatCompletionBody, OpenAIItem, OpenAIRequestBody, ResponseBody
from fermata.wire.http.json_body import parse_body
from fermata.wire.http.messages import EVENT_STREAM, EVENT_STREAM_HEARTBEAT, Response
from fermata.wire.http.openai_errors import build_failure_error, get_failure_status
from fermata.wire.http.routing import RequestContext
from fermata.wire.renderers.openai_answer import OpenAIAnswer, TokenTotals, read_client_call_id
from fermata.wire.renderers.openai_chat import ChatCompletionRenderer
from fermata.wire.renderers.openai_response import ResponseRenderer

SSE_HEADERS = {
    "Content-Type": EVENT_STREAM,
    "Cache-Control": "private, no-store",
    "X-Accel-Buffering": "no",
}
MISSING_RESULTS = "Each call of the last answer needs its result, in a message of its own. There is none for: {}."
"""What a client is told that sends the results of some calls only."""


class OpenAIRenderer(Protocol):
    """Renders an answer in one of the forms that clients ask for."""

    def render_events(self, events: Sequence[Event]) -> bytes: ...

    def is_response_over(self) -> bool: ...

    def render_end(self, tokens: TokenTotals) -> bytes: ...

    def build_whole(self, tokens: TokenTotals) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Exchange:
    """A request, and the turn that answers it.

    Attributes:
        entries: What is known of the turn's log.
        used_before: What the turn had used before the request.
        messages: All messages of the client.
        is_started: Whether the request has started the turn.
        call_count: How many calls of the turn were answered by the request or before it.
    """

    turn: Turn
    entries: Sequence[LogEntry]
    answer: OpenAIAnswer
    used_before: TokenTotals
    messages: tuple[TranscriptMessage, ...]
    is_started: bool
    call_count: int = 0


def create_chat_completion(context: RequestContext) -> Response:
    """Answer a chat completion."""
    body = parse_body(context.request, ChatCompletionBody, ignore_unknown=True)
    _refuse_format(body.response_format)
    transcript = read_chat_transcript(body.messages)
    exchange = _open_exchange(context, body, transcript)
    renderer = ChatCompletionRenderer(
        exchange.answer,
        completion_id=f"chatcmpl-{exchange.turn.id}",
        model=body.model,
        created=exchange.turn.started_ms // 1000,
        has_usage=bool(body.stream_options and body.stream_options.include_usage),
    )
    return _respond(context, exchange, renderer, is_streamed=bool(body.stream))


def create_response(context: RequestContext) -> Response:
    """Answer a request of the Responses API."""
    body = parse_body(context.request, ResponseBody, ignore_unknown=True)
    _refuse_format(body.text.format if body.text else None)
    transcript = read_response_transcript(body.input, body.instructions or "")
    exchange = _open_exchange(context, body, transcript, body.previous_response_id or "")
    renderer = ResponseRenderer(
        exchange.answer,
        response_id=RESPONSE_ID_PREFIX + exchange.turn.id + (f".{exchange.call_count}" if exchange.call_count else ""),
        model=body.model,
        created=exchange.turn.started_ms // 1000,
        instructions=body.instructions,
    )
    return _respond(context, exchange, renderer, is_streamed=bool(body.stream))


def _refuse_format(asked: OpenAIItem | None) -> None:
    if asked is not None and asked.get("type", "text") != "text":
        raise InvalidRequest("An agent answers in the form that its definition says. Leave the format out.")


def _open_exchange(
    context: RequestContext, body: OpenAIRequestBody, transcript: Transcript, previous_response: str = ""
) -> Exchange:
    scope = find_agent_scope(context.caller, body.model.removeprefix("agent:"))
    if transcript.results:
        return _continue_turn(context, transcript)
    prompt = transcript.prompt.to_prompt()
    conversation = _open_conversation(context, scope, body, transcript, previous_response)
    tools = read_client_tools(body.tools, body.tool_choice)
    request = ClientRequest(
        protocol="openai",
        conversation=conversation,
        prompt=prompt,
        client_tools=build_client_tools(tools),
        notes=transcript.instructions,
    )
    started = start_client_turn(context, None, request)
    entries = read_started_entries(context.resources, started)
    answer = OpenAIAnswer(make_turn_fold(context.resources, started.turn))
    used = _count_tokens(entries[0])
    return Exchange(started.turn, entries, answer, used, transcript.messages, is_started=not started.is_joined)


def _open_conversation(
    context: RequestContext, scope: str, body: OpenAIRequestBody, transcript: Transcript, previous_response: str
) -> Conversation:
    """Return the conversation of a prompt: the one that the client names, or that its messages are of."""
    resources, caller = context.resources, context.caller
    if previous_response:
        return find_response_conversation(resources, caller, scope, previous_response)
    if body.conversation_name:
        return open_chat(resources, caller, scope, body.conversation_name)
    key = context.request.headers.get("idempotency-key", "")
    if key and not transcript.earlier:
        return open_chat(resources, caller, scope, f"request {key[:180]}")  # the same for the request sent again
    return open_transcript_conversation(resources, caller, scope, transcript.earlier)


def _continue_turn(context: RequestContext, transcript: Transcript) -> Exchange:
    """Go on with the turn whose calls the results at the end are of."""
    named = [(read_client_call_id(message.call_id), message) for message in transcript.results]
    known = [(place, message) for place, message in named if place is not None]
    if len(known) < len(named) or len({place[0] for place, _ in known}) != 1:
        raise InvalidRequest("The results at the end are not those of the calls that an answer has asked for.")
    try:
        turn = find_turn_for_caller(context.resources, context.caller, known[0][0][0])
    except NotFound:
        raise InvalidRequest("The turn that has asked for these calls has expired, or is not yours.") from None
    client_turn = ClientTurn(context.resources, context.caller, turn)
    used = _count_tokens(client_turn.entries[-1])
    call_ids = list(client_turn.fold.calls)
    if any(place[1] >= len(call_ids) for place, _ in known):
        raise InvalidRequest("The results at the end are not those of the calls that an answer has asked for.")
    answers = {
        call_ids[place[1]]: ClientAnswer(call_ids[place[1]], output=parse_tool_content(message.text))
        for place, message in known
    }
    _require_all_results(client_turn, answers)
    client_turn.apply(list(answers.values()))
    answer = OpenAIAnswer(make_turn_fold(context.resources, turn), awaited=set(answers))
    count = 1 + max(place[1] for place, _ in known)
    return Exchange(turn, client_turn.entries, answer, used, transcript.messages, is_started=False, call_count=count)


def _require_all_results(client_turn: ClientTurn, answers: dict[str, ClientAnswer]) -> None:
    calls = client_turn.fold.list_waiting_calls()
    numbers = {call_id: number for number, call_id in enumerate(client_turn.fold.calls)}
    missing = [call for call in calls if call.is_shown and call.is_browser and call.call_id not in answers]
    if missing:
        ids = (f"call_{client_turn.turn.id}_{numbers[call.call_id]}" for call in missing)
        raise InvalidRequest(MISSING_RESULTS.format(", ".join(ids)))


class _SilentRenderer:
    """Folds a log for a response that is sent whole."""

    def __init__(self, renderer: OpenAIRenderer) -> None:
        self._renderer = renderer

    def render_events(self, events: Sequence[Event]) -> bytes:
        self._renderer.render_events(events)
        return b""

    def is_response_over(self) -> bool:
        return self._renderer.is_response_over()


def _respond(context: RequestContext, exchange: Exchange, renderer: OpenAIRenderer, *, is_streamed: bool) -> Response:
    response = send_chunks(
        context,
        exchange.turn,
        exchange.entries,
        renderer if is_streamed else _SilentRenderer(renderer),
        SSE_HEADERS,
        heartbeat=EVENT_STREAM_HEARTBEAT if is_streamed else b"",
        is_returning=not exchange.is_started,
    )
    assert isinstance(response.stream, AsyncIterable)
    end = partial(_end_exchange, context, exchange)
    if is_streamed:
        return replace(response, stream=_add_end(response.stream, end, renderer))
    return replace(response, headers={}, build_whole=partial(_build_whole, exchange, end, renderer))


async def _add_end(
    lines: AsyncIterable[bytes], end: Callable[[], TokenTotals], renderer: OpenAIRenderer
) -> AsyncIterator[bytes]:
    async for line in lines:
        yield line
    yield renderer.render_end(await asyncio.get_running_loop().run_in_executor(handler_pool, end))


def _build_whole(exchange: Exchange, end: Callable[[], TokenTotals], renderer: OpenAIRenderer) -> Response:
    """Return the response to a request that is not streamed, once its answer is whole."""
    tokens = end()
    failure = exchange.answer.failure
    if failure is not None:
        return Response(get_failure_status(failure), {"error": build_failure_error(failure)})
    return Response(200, renderer.build_whole(tokens))


def _end_exchange(context: RequestContext, exchange: Exchange) -> TokenTotals:
    """Return what the response has used, and store where its messages go on."""
    answer = exchange.answer
    answer.close()
    last = read_last_entry(context.resources, exchange.turn.pk)
    if last and isinstance(last.events[-1], DoneEvent):
        calls = tuple(TranscriptCall(call.call_id, call.tool_name, call.arguments) for call in answer.calls)
        messages = (*exchange.messages, TranscriptMessage("assistant", answer.text, calls=calls))
        store_transcript(context.resources, context.caller, exchange.turn, messages)
    used, before = _count_tokens(last) if last else exchange.used_before, exchange.used_before
    return TokenTotals(
        prompt=used.prompt - before.prompt,
        completion=used.completion - before.completion,
        cached=used.cached - before.cached,
    )


def _count_tokens(entry: LogEntry) -> TokenTotals:
    """Return what the turn had used when the entry was written."""
    state = entry.state
    return TokenTotals(prompt=state.prompt_tokens, completion=state.completion_tokens, cached=state.cache_read_tokens)
