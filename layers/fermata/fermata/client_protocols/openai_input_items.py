"""List what a request of the Responses API brought: a user's message, results of the client's tools, or decisions."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from fermata.aws.resources import Resources
from fermata.client_protocols.openai_exchange import Exchange
from fermata.client_protocols.openai_stored_responses import open_stored_response
from fermata.conversations.block_store import BlockFetcher
from fermata.conversations.message_store import read_newest_messages
from fermata.domain.blocks import Block
from fermata.domain.errors import InvalidRequest
from fermata.domain.messages import Message
from fermata.turns.turn import Turn
from fermata.wire.http.messages import Response, read_integer_parameter
from fermata.wire.http.routing import RequestContext
from fermata.wire.renderers.openai_answer import make_client_call_id
from fermata.wire.renderers.turn_fold import FoldedCall, TurnFold

MAX_LISTED_ITEMS = 100
DEFAULT_LISTED_ITEMS = 20
_BATCH_SIZE = 200
_Json = dict[str, Any]


def list_input_items(context: RequestContext) -> Response:
    """Return a page of the items of a response's request, the newest first unless the client asks otherwise."""
    limit = read_integer_parameter(context.request, "limit", DEFAULT_LISTED_ITEMS, maximum=MAX_LISTED_ITEMS)
    query = context.request.query
    if not limit or query.get("order", "desc") not in ("asc", "desc"):
        raise InvalidRequest("'limit' must be 1 to 100, and 'order' is 'asc' or 'desc'.")
    exchange = open_stored_response(context)
    items = list(_iter_items(context.resources, exchange))
    ordered = items if query.get("order") == "asc" else items[::-1]
    rest = _skip_to(ordered, query.get("after", ""))
    page = rest[:limit]
    ends = {"first_id": page[0]["id"] if page else None, "last_id": page[-1]["id"] if page else None}
    return Response(200, {"object": "list", "data": page, **ends, "has_more": len(rest) > limit})


def _skip_to(items: Sequence[_Json], after: str) -> Sequence[_Json]:
    if not after:
        return items
    index = next((index for index, item in enumerate(items) if item["id"] == after), None)
    if index is None:
        raise InvalidRequest(f"The response has no input item {after[:120]!r}.")
    return items[index + 1 :]


def _iter_items(resources: Resources, exchange: Exchange) -> Iterator[_Json]:
    turn, place = exchange.turn, exchange.place
    if not place.call_count:
        messages = _read_turn_messages(resources, turn)
        said = [message for message in messages if message.role == "user"]
        yield from (_build_message(turn, number, message) for number, message in enumerate(said))
        return
    answer = exchange.begin()
    for entry in exchange.entries:
        answer.fold(entry.events)
    if place.follows_decisions:
        yield from (_build_decision(answer.turn, answer.turn.calls[call_id]) for call_id in place.call_ids)
        return
    results = {
        message.tool_call_id: message for message in _read_turn_messages(resources, turn) if message.tool_call_id
    }
    for call_id in place.call_ids:
        call = answer.turn.calls[call_id]
        yield _build_result(answer.turn, call, results.get(call.tool_call_id))


def _read_turn_messages(resources: Resources, turn: Turn) -> list[Message]:
    """Return the messages of a turn, in order, with all that they hold."""
    found: list[Message] = []
    before: int | None = None
    while True:
        batch = read_newest_messages(resources, turn.tenant, turn.conversation, before=before, limit=_BATCH_SIZE)
        found += [message for message in batch if message.turn == turn.id]
        if len(batch) < _BATCH_SIZE or (found and batch[-1].turn != turn.id):
            return BlockFetcher(resources.blobs).fetch_all_blocks(found[::-1])
        before = batch[-1].position


def _build_message(turn: Turn, number: int, message: Message) -> _Json:
    content = [part for block in message.content if (part := _build_part(block))]
    head: _Json = {"id": f"msg_{turn.id}_in{number}", "type": "message", "role": "user", "status": "completed"}
    return head | {"content": content}


def _build_part(block: Block) -> _Json | None:
    match block.kind:
        case "text":
            return {"type": "input_text", "text": block.text}
        case "image":
            url = f"data:{block.mime_type};base64,{block.data}"
            return {"type": "input_image", "detail": "auto", "file_id": None, "image_url": url}
        case _:
            return None


def _build_result(fold: TurnFold, call: FoldedCall, message: Message | None) -> _Json:
    number = fold.numbers[call.call_id]
    item = {"id": f"fc_{fold.bridge_id}_{number}_out", "type": "function_call_output", "status": "completed"}
    item["call_id"] = make_client_call_id(fold.bridge_id, number)
    blocks = message.content if message else ()
    outputs = [block.data if block.ok else block.error for block in blocks if block.kind == "toolResult"]
    text = outputs[0] if outputs and isinstance(outputs[0], str) else json.dumps(outputs[0] if outputs else None)
    return item | {"output": text}


def _build_decision(fold: TurnFold, call: FoldedCall) -> _Json:
    request_id = f"mcpr_{fold.bridge_id}_{fold.numbers[call.call_id]}"
    item: _Json = {"id": f"{request_id}_decision", "type": "mcp_approval_response", "reason": None}
    return item | {"approval_request_id": request_id, "approve": not call.is_denied}
