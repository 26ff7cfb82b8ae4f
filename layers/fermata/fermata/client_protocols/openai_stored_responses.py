"""Serve responses again that were asked for before: read them, follow them, cancel and delete them (decision 0442).

A response is not stored by itself: the log of its turn says what it was, for as long as the turn is kept.
"""

import re
from dataclasses import replace

from fermata.aws.resources import Resources
from fermata.client_protocols.openai_conversations import (
    RESPONSE_ID_PREFIX,
    is_response_deleted,
    mark_response_deleted,
)
from fermata.client_protocols.openai_endpoint import build_current_response, make_response_renderer, send_answer
from fermata.client_protocols.openai_exchange import AnswerPlace, Exchange, count_tokens, make_exchange
from fermata.domain.agent_ids import read_agent_id
from fermata.domain.errors import InvalidRequest, LogRewound, NotFound
from fermata.domain.events import CancelledEvent
from fermata.turns.end.stop_turn import stop_turn
from fermata.turns.turn import Turn, find_turn_for_caller
from fermata.turns.turn_log import LogEntry, read_last_entry, read_whole_log
from fermata.wire.http.messages import Response, read_integer_parameter
from fermata.wire.http.routing import RequestContext
from fermata.wire.renderers.openai_answer import OpenAIAnswer, TokenTotals

MAX_EVENT_NUMBER = 10**9
_RESPONSE_ID = re.compile(RESPONSE_ID_PREFIX + r"([A-Za-z0-9_-]{1,64})(?:\.([0-9]{1,6})(d?))?")


def show_response(context: RequestContext) -> Response:
    """Return a response as far as it has come, or with `stream` all of its events, those to come as well."""
    exchange = open_stored_response(context)
    query = context.request.query
    wanted = query.get("stream", "false").lower()
    if wanted not in ("true", "false"):
        raise InvalidRequest("'stream' must be true or false.")
    if wanted == "false":
        return build_current_response(context, exchange, make_response_renderer(exchange, _name_model(exchange.turn)))
    after = -1
    if "starting_after" in query:
        after = read_integer_parameter(context.request, "starting_after", 0, maximum=MAX_EVENT_NUMBER)
        _require_known_event(exchange, after)
    renderer = make_response_renderer(exchange, _name_model(exchange.turn), after=after)
    return send_answer(context, exchange, renderer, is_streamed=True)


def _require_known_event(exchange: Exchange, number: int) -> None:
    """Refuse a number that the response has not reached. Its reader has seen it only if the log was restored.

    Raises:
        LogRewound: There is no such event (decision 0162).
    """
    renderer = make_response_renderer(replace(exchange), "")
    for entry in exchange.entries:
        if not renderer.is_response_over():
            renderer.render_events(entry.events)
    if renderer.is_response_over():
        renderer.render_end(None)
    if number > renderer.last_number:
        raise LogRewound(
            f"Event {number} does not exist: the last one is number {renderer.last_number}. Read the response from its "
            "beginning.",
            last_seq=renderer.last_number,
        )


def cancel_response(context: RequestContext) -> Response:
    """End the turn of a response, and return the response. Safe to repeat; one that is over stays as it is."""
    exchange = open_stored_response(context)
    stop_turn(context.resources, exchange.turn, CancelledEvent())
    exchange = open_stored_response(context)
    return build_current_response(context, exchange, make_response_renderer(exchange, _name_model(exchange.turn)))


def delete_response(context: RequestContext) -> Response:
    """Mark a response as deleted. Its words stay in the conversation, which is deleted by itself."""
    exchange = open_stored_response(context)
    mark_response_deleted(context.resources, exchange.turn, str(exchange.place))
    return Response(200, {"id": context.path_parameters["responseId"], "object": "response", "deleted": True})


def open_stored_response(context: RequestContext) -> Exchange:
    """Return the exchange of the response that a path names.

    Raises:
        NotFound: The caller has no such response.
    """
    response_id = context.path_parameters["responseId"]
    matched = _RESPONSE_ID.fullmatch(response_id)
    unknown = NotFound(f"Response with id '{response_id[:120]}' not found.")
    if matched is None:
        raise unknown
    try:
        turn = find_turn_for_caller(context.resources, context.caller, matched[1])
    except NotFound:
        raise unknown from None
    entries = read_whole_log(context.resources, turn.pk)
    place = _find_place(make_exchange(context.resources, turn, entries, "item"), int(matched[2] or 0), bool(matched[3]))
    if turn.undone_turn or not entries or place is None or is_response_deleted(context.resources, turn, str(place)):
        raise unknown
    return _find_tokens(context, make_exchange(context.resources, turn, entries, "item", place))


def _find_tokens(context: RequestContext, exchange: Exchange) -> Exchange:
    """Return the exchange with what the turn had used before its answer, and the entry with which the answer ended.

    Each entry of a log says what the turn has used until then. Readers of a whole log leave it out of all but the last.
    """
    answer, entries = exchange.begin(), exchange.entries
    begin: int | None = None if exchange.place.call_count else -1
    end: int | None = None
    for index, entry in enumerate(entries):
        answer.fold(entry.events)
        begin = index if begin is None and answer.has_begun else begin
        if answer.is_over():
            end = index
            break
    used_before = TokenTotals()
    if begin is not None and begin >= 0:
        used_before = count_tokens(_read_entry(context.resources, exchange.turn, entries[begin]))
    last = None if end in (None, len(entries) - 1) else _read_entry(context.resources, exchange.turn, entries[end or 0])
    return replace(exchange, used_before=used_before, end=last)


def _read_entry(resources: Resources, turn: Turn, entry: LogEntry) -> LogEntry:
    return read_last_entry(resources, turn.pk, at_or_before=entry.first_number) or entry


def _find_place(first: Exchange, call_count: int, follows_decisions: bool) -> AnswerPlace | None:
    """Return the place of an answer in its turn; None if the turn has no such answer."""
    if not call_count:
        return AnswerPlace()
    calls = list(_fold_all(first.begin(), list(first.entries)).turn.calls.values())[:call_count]
    if len(calls) < call_count:
        return None
    answered = [call.call_id for call in calls if call.approval] if follows_decisions else [c.call_id for c in calls]
    return AnswerPlace(tuple(answered), call_count, follows_decisions) if answered else None


def _fold_all(answer: OpenAIAnswer, entries: list[LogEntry]) -> OpenAIAnswer:
    for entry in entries:
        answer.fold(entry.events)
    return answer


def _name_model(turn: Turn) -> str:
    return read_agent_id(turn.scope) or turn.scope
