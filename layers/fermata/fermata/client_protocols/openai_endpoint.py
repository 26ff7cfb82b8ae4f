"""Serve OpenAI's clients: each request starts a turn of an agent, or goes on with one (decision 0385)."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from fermata.client_protocols.log_response import handler_pool, send_chunks
from fermata.client_protocols.openai_conversations import RESPONSE_ID_PREFIX, store_transcript
from fermata.client_protocols.openai_exchange import AskedAnswer, Exchange, count_tokens, open_exchange
from fermata.client_protocols.openai_output import read_output_format
from fermata.client_protocols.openai_transcript import (
    TranscriptCall,
    TranscriptMessage,
    has_decision_tool,
    read_chat_transcript,
    read_response_transcript,
)
from fermata.domain.events import Event
from fermata.turns.turn_log import LogEntry, read_last_entry
from fermata.wire.bodies.openai_requests import ChatCompletionBody, ResponseBody
from fermata.wire.http.json_body import parse_body
from fermata.wire.http.messages import EVENT_STREAM, EVENT_STREAM_HEARTBEAT, Response
from fermata.wire.http.openai_errors import build_failure_error, get_failure_status
from fermata.wire.http.routing import RequestContext
from fermata.wire.renderers.openai_answer import TokenTotals
from fermata.wire.renderers.openai_chat import ChatCompletionRenderer
from fermata.wire.renderers.openai_response import ResponseRenderer

SSE_HEADERS = {
    "Content-Type": EVENT_STREAM,
    "Cache-Control": "private, no-store",
    "X-Accel-Buffering": "no",
}


class OpenAIRenderer(Protocol):
    """Renders an answer in one of the forms that clients ask for."""

    def render_events(self, events: Sequence[Event]) -> bytes: ...

    def is_response_over(self) -> bool: ...

    def render_end(self, tokens: TokenTotals | None) -> bytes: ...

    def build_whole(self, tokens: TokenTotals | None) -> dict[str, Any]: ...


def create_chat_completion(context: RequestContext) -> Response:
    """Answer a chat completion."""
    body = parse_body(context.request, ChatCompletionBody, ignore_unknown=True)
    asked = AskedAnswer(
        body,
        read_chat_transcript(body.messages),
        approval_form="call" if has_decision_tool(body.tools, body.tool_choice) else "words",
        output=read_output_format(body.response_format),
    )
    exchange = open_exchange(context, asked)
    renderer = ChatCompletionRenderer(
        exchange.answer,
        completion_id=f"chatcmpl-{exchange.turn.id}",
        model=body.model,
        created=exchange.turn.started_ms // 1000,
        has_usage=bool(body.stream_options and body.stream_options.include_usage),
    )
    return send_answer(context, exchange, renderer, is_streamed=bool(body.stream))


def create_response(context: RequestContext) -> Response:
    """Answer a request of the Responses API."""
    body = parse_body(context.request, ResponseBody, ignore_unknown=True)
    asked = AskedAnswer(
        body,
        read_response_transcript(body.input, body.instructions or ""),
        approval_form="item",
        output=read_output_format(body.text.format if body.text else None),
        previous_response=body.previous_response_id or "",
    )
    exchange = open_exchange(context, asked)
    renderer = make_response_renderer(exchange, body.model, instructions=body.instructions)
    if body.background and not body.stream:
        return build_current_response(context, exchange, renderer)
    return send_answer(context, exchange, renderer, is_streamed=bool(body.stream))


def make_response_renderer(
    exchange: Exchange, model: str, *, instructions: str | None = None, after: int = -1
) -> ResponseRenderer:
    """Return the renderer of a response.

    Args:
        exchange: The request, and its turn.
        model: As the client has named it.
        instructions: Those of the request.
        after: The number of the last event that the client has had; -1 for none.
    """
    return ResponseRenderer(
        exchange.answer,
        response_id=RESPONSE_ID_PREFIX + exchange.turn.id + str(exchange.place),
        model=model,
        created=exchange.turn.started_ms // 1000,
        instructions=instructions,
        after=after,
    )


def build_current_response(context: RequestContext, exchange: Exchange, renderer: ResponseRenderer) -> Response:
    """Return a response as far as it has come, without waiting."""
    for entry in exchange.entries:
        if not renderer.is_response_over():
            renderer.render_events(entry.events)
    if not renderer.is_response_over():
        return Response(200, renderer.build_whole(None))
    _store_messages(context, exchange)
    return Response(200, renderer.build_whole(_count_used(exchange, exchange.end or exchange.entries[-1])))


class _SilentRenderer:
    """Folds a log for a response that is sent whole."""

    def __init__(self, renderer: OpenAIRenderer) -> None:
        self._renderer = renderer

    def render_events(self, events: Sequence[Event]) -> bytes:
        self._renderer.render_events(events)
        return b""

    def is_response_over(self) -> bool:
        return self._renderer.is_response_over()


def send_answer(
    context: RequestContext, exchange: Exchange, renderer: OpenAIRenderer, *, is_streamed: bool
) -> Response:
    """Return the response to a request: a stream of events, or the whole answer once it is there.

    Args:
        context: The request.
        exchange: The request's turn.
        renderer: Renders its answer.
        is_streamed: Whether the client has asked for a stream.
    """
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
    lines: AsyncIterable[bytes], end: Callable[[], TokenTotals | None], renderer: OpenAIRenderer
) -> AsyncIterator[bytes]:
    async for line in lines:
        yield line
    yield renderer.render_end(await asyncio.get_running_loop().run_in_executor(handler_pool, end))


def _build_whole(exchange: Exchange, end: Callable[[], TokenTotals | None], renderer: OpenAIRenderer) -> Response:
    """Return the response to a request that is not streamed, once its answer is whole."""
    tokens = end()
    failure = exchange.answer.failure
    if failure is not None:
        return Response(get_failure_status(failure), {"error": build_failure_error(failure)})
    return Response(200, renderer.build_whole(tokens))


def _end_exchange(context: RequestContext, exchange: Exchange) -> TokenTotals | None:
    """Return what the response has used, and store where its messages go on."""
    exchange.answer.close()
    _store_messages(context, exchange)
    newest = exchange.end or read_last_entry(context.resources, exchange.turn.pk)
    return _count_used(exchange, newest or exchange.entries[-1])


def _count_used(exchange: Exchange, last: LogEntry) -> TokenTotals | None:
    return exchange.used_before and count_tokens(last).subtract(exchange.used_before)


def _store_messages(context: RequestContext, exchange: Exchange) -> None:
    """Store which conversation the messages of the client are, where its next prompt would go on with it."""
    answer = exchange.answer
    is_done = answer.turn.is_over and answer.failure is None
    if exchange.messages and (is_done or answer.waits_for_approval):
        calls = tuple(TranscriptCall(call.call_id, call.tool_name, call.arguments) for call in answer.calls)
        messages = (*exchange.messages, TranscriptMessage("assistant", answer.text, calls=calls))
        store_transcript(context.resources, context.caller, exchange.turn, messages)
