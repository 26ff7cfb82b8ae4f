"""Read what was said in a conversation with the studio's agent, as its own clients read it (decision 0474)."""

from collections.abc import Sequence
from typing import Any

from fermata.aws.resources import Resources
from fermata.conversations.block_store import BlockFetcher
from fermata.conversations.message_cuts import leave_out_cut_messages
from fermata.conversations.message_store import read_newest_messages
from fermata.domain.conversation import Conversation
from fermata.domain.errors import InvalidRequest
from fermata.domain.messages import Message
from fermata.wire.http.messages import HttpRequest, read_integer_parameter
from fermata.wire.http.routing import RequestContext

MESSAGES_PER_PAGE, MAX_MESSAGES_PER_PAGE = 50, 100
_NO_POSITION = "'before' has to be the 'before' of the page that came first."


def read_conversation_parameter(request: HttpRequest) -> str:
    """Return the conversation that the query of a request names.

    Raises:
        InvalidRequest: It names none.
    """
    if not request.query.get("conversationId"):
        raise InvalidRequest("Name the conversation: ?conversationId=…")
    return request.query["conversationId"]


def read_studio_messages(context: RequestContext, conversation: Conversation) -> dict[str, Any]:
    """Return the newest messages of a conversation in their order, and where older ones end.

    Args:
        context: The request, whose query may have `limit` and `before`.
        conversation: One of the caller's.

    Raises:
        InvalidRequest: A member of the query is not as described.
    """
    limit = max(1, read_integer_parameter(context.request, "limit", MESSAGES_PER_PAGE, maximum=MAX_MESSAGES_PER_PAGE))
    newest, has_more = _read_page(context.resources, conversation, _read_before(context), limit)
    fetcher = BlockFetcher(context.resources.blobs)
    messages = fetcher.fetch_shown_blocks(list(leave_out_cut_messages(newest, conversation.cuts))[::-1])
    before = str(newest[-1].position) if has_more else None
    return {
        "conversationId": conversation.id,
        "messages": describe_studio_messages(messages, conversation.model_id),
        "before": before,
    }


def _read_page(
    resources: Resources, conversation: Conversation, before: int | None, limit: int
) -> tuple[list[Message], bool]:
    """Return the newest messages, and whether there are older ones. Results come on the page of their calls."""
    for count in (limit, 2 * MAX_MESSAGES_PER_PAGE):
        newest = list(read_newest_messages(resources, conversation.tenant, conversation.id, before=before, limit=count))
        has_more = len(newest) == count and newest[-1].position > 0
        while has_more and newest and newest[-1].role == "tool":
            newest.pop()
        if newest:
            break
    return newest, has_more and bool(newest)


def describe_studio_messages(messages: Sequence[Message], model_id: str = "") -> list[dict[str, Any]]:
    """Return messages with the results of their calls, which are stored as messages of their own.

    Args:
        messages: In their order.
        model_id: The language model of the conversation; empty if it has none of its own.
    """
    results: dict[tuple[str, int, str | None], Any] = {}
    for message in messages:
        if message.role == "tool":
            for block in message.content:
                if block.kind == "toolResult":
                    result = block.data if block.ok or block.data is not None else {"error": block.error}
                    results[message.turn, message.round, message.tool_call_id] = result
    return [_describe(one, results, model_id) for one in messages if one.role != "tool"]


def _describe(message: Message, results: dict[tuple[str, int, str | None], Any], model_id: str) -> dict[str, Any]:
    calls = [
        {
            "id": block.tool_call_id,
            "name": block.tool_name,
            "result": results.get((message.turn, message.round, block.tool_call_id)),
        }
        for block in message.content
        if block.kind == "toolCall"
    ]
    used = message.turn_usage
    usage = {"inputTokens": used.prompt_tokens, "outputTokens": used.completion_tokens} if used else None
    members = {
        "toolCalls": calls or None,
        "model": model_id if message.role == "assistant" else None,
        "usage": usage,
    }
    return {
        "id": f"{message.turn}-{message.position}",
        "role": message.role,
        "content": "".join(block.text for block in message.content if block.kind == "text"),
        **{name: value for name, value in members.items() if value},
        "createdAt": message.created_at,
    }


def _read_before(context: RequestContext) -> int | None:
    text = context.request.query.get("before")
    if text is None:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 12:
        raise InvalidRequest(_NO_POSITION)
    return int(text)
