"""Render a conversation's messages for clients, page by page from the newest back, and read their images.

Decision 0067 explains the pages.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any, assert_never
from urllib.parse import quote

from fermata.aws.resources import Resources
from fermata.conversations.block_predicates import is_reasoning, is_tool_call
from fermata.conversations.block_store import BlockFetcher
from fermata.conversations.history.repair import INTERRUPTED_CALL_ERROR
from fermata.conversations.message_cuts import leave_out_cut_messages
from fermata.conversations.message_store import (
    count_positions,
    find_message,
    group_into_lines,
    read_following_messages,
    read_newest_messages,
)
from fermata.domain.blocks import AudioBlock, Block, ImageBlock
from fermata.domain.conversation import Conversation
from fermata.domain.dialect import Dialect
from fermata.domain.errors import NotFound
from fermata.domain.messages import Message, UsageSoFar
from fermata.domain.usd_rounding import round_usd
from fermata.domain.value_dataclass import value_dataclass

MessageLine = dict[str, Any]
ToolCallKey = tuple[str, int, str | None]
"""Turn, round and id of a tool call."""
MAX_PAGE_LINES = 1000
MAX_PAGE_BYTES = 3_800_000
"""Size of a page as JSON within Lambda's JSON response, which may have 6 MB."""
_READ_BATCH_SIZE = 200
_MESSAGE_OVERHEAD_BYTES = 400
"""Estimate of the members around a message's content."""
_IMAGE_NOT_FOUND = "Conversation image not found"


@value_dataclass(frozen=True)
class MessagePage:
    """Lines in order. `before` is the position that the page of older lines ends before; None when there is none."""

    lines: Sequence[MessageLine]
    before: int | None


def read_message_page(
    resources: Resources,
    conversation: Conversation,
    dialect: Dialect,
    display_name: Callable[[str], str] = str,
    *,
    before: int | None = None,
    limit: int = MAX_PAGE_LINES,
) -> MessagePage:
    """Return the newest lines before a position, as many as a response holds; a message is never divided.

    A call that was closed by the end of its turn has no row for its result. It is shown with the result that the
    stream had (decision 0097).

    Args:
        display_name: Maps any name of a tool to the one that the client knows.
        limit: Lines of the page, unless its first message alone has more.
    """
    messages, has_more = _read_page_messages(resources, conversation, before, limit)
    folder = f"/admin/api/ai/conversations/{quote(conversation.id)}/messages"
    unanswered = _find_unanswered_calls(resources, conversation, messages, before)
    renderer = _MessageRenderer(folder, dialect, display_name, unanswered)
    shown = BlockFetcher(resources.blobs).fetch_shown_blocks(messages)
    lines = [line for message in shown for line in renderer.render_lines(message)]
    return MessagePage(lines, messages[0].position if has_more else None)


def _read_page_messages(
    resources: Resources, conversation: Conversation, before: int | None, limit: int
) -> tuple[list[Message], bool]:
    """Return the page's messages in order, at least one, and whether there are older ones."""
    newest_first: list[Message] = []
    page_bytes = 0
    line_count = 0
    batch_size = min(_READ_BATCH_SIZE, limit + 1)
    batch_before = before
    while True:
        batch = read_newest_messages(
            resources, conversation.tenant, conversation.id, before=batch_before, limit=batch_size
        )
        for message in leave_out_cut_messages(batch, conversation.cuts):
            page_bytes += _count_response_bytes(message)
            line_count += count_positions(message)
            if newest_first and (page_bytes > MAX_PAGE_BYTES or line_count > limit):
                return newest_first[::-1], True
            newest_first.append(message)
        if len(batch) < batch_size:
            return newest_first[::-1], False
        batch_before = batch[-1].position


def _find_unanswered_calls(
    resources: Resources, conversation: Conversation, messages: Sequence[Message], before: int | None
) -> frozenset[ToolCallKey]:
    """Return the page's calls that will not be answered any more. Those of the turn with the claim still may be."""
    calls = {
        (message.turn, message.round, block.tool_call_id)
        for message in messages
        if message.turn != conversation.claim
        for block in message.content
        if is_tool_call(block)
    }
    unanswered = calls - _answered_calls(messages)
    if before is not None and any(call[:2] == (messages[-1].turn, messages[-1].round) for call in unanswered):
        # The page ends within the round of these calls, so their results come first in what follows it.
        following = read_following_messages(
            resources, conversation.tenant, conversation.id, before, limit=len(unanswered)
        )
        unanswered -= _answered_calls(following)
    return frozenset(unanswered)


def _answered_calls(messages: Sequence[Message]) -> set[ToolCallKey]:
    return {(message.turn, message.round, message.tool_call_id) for message in messages if message.role == "tool"}


def _count_response_bytes(message: Message) -> int:
    """Return the bytes of a message in Lambda's response, where JSON within JSON escapes each quote once more."""
    text = json.dumps([block.to_wire() for block in message.content if not is_reasoning(block)])
    large = sum(
        2 * block.size for block in message.content if block.kind == "blob" and block.replaced_kind != "toolResult"
    )
    return len(text) + text.count('"') + text.count("\\") + large + _MESSAGE_OVERHEAD_BYTES


def read_message_image(
    resources: Resources, conversation: Conversation, message_id: str, index: str
) -> tuple[bytes, str]:
    """Return the bytes and the MIME type of an image or a recording.

    Args:
        message_id: Id of the line that shows it.
        index: Its position in the line's content.

    Raises:
        NotFound: The ids lead to no stored file of the conversation.
    """
    turn, _, position = message_id.rpartition("-")
    if not (_is_number(position) and _is_number(index) and len(index) < 4):
        raise NotFound(_IMAGE_NOT_FOUND)
    message = find_message(resources, conversation.tenant, conversation.id, int(position[:8]))
    if message is None or message.turn != turn:
        raise NotFound(_IMAGE_NOT_FOUND)
    blocks = [block for line in group_into_lines(message.content)[:1] for block in line]
    block = blocks[int(index)] if int(index) < len(blocks) else None
    if block is None or not (block.kind == "image" or block.kind == "audio") or block.blob is None:
        raise NotFound(_IMAGE_NOT_FOUND)
    return resources.blobs.get_bytes(block.blob), block.mime_type


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


@value_dataclass(frozen=True)
class _MessageRenderer:
    """Render messages for one client.

    Attributes:
        folder: URL path of the conversation's messages.
        unanswered: Calls that are shown as closed.
    """

    folder: str
    dialect: Dialect
    display_name: Callable[[str], str]
    unanswered: frozenset[ToolCallKey]

    def render_lines(self, message: Message) -> list[MessageLine]:
        groups = group_into_lines(message.content)
        lines = [self._render_line(message, message.position + offset, group) for offset, group in enumerate(groups)]
        if lines and message.turn_usage and self.dialect != "instatic":
            lines[-1]["turnUsage"] = _render_usage(message.turn_usage)
        if not self.unanswered or message.role == "tool":
            return lines
        return [shown for line in lines for shown in (line, *self._render_closed_call(message, line))]

    def _render_closed_call(self, message: Message, line: MessageLine) -> tuple[MessageLine, ...]:
        """Return the failed result of an unanswered call. It has no row, so it has the position of its call."""
        if (message.turn, message.round, line["toolCallId"]) not in self.unanswered:
            return ()
        closed_id = f"{line['id']}-closed"
        return (line | {"id": closed_id, "role": "tool", "content": [_render_result(False, INTERRUPTED_CALL_ERROR)]},)

    def _render_line(self, message: Message, position: int, group: Sequence[Block]) -> MessageLine:
        line_id = f"{message.turn}-{position}"
        images_url = f"{self.folder}/{line_id}/images"
        content = [self._render_block(block, f"{images_url}/{index}") for index, block in enumerate(group)]
        line: MessageLine = {
            "id": line_id,
            "position": position,
            "role": message.role,
            "content": content,
            "toolCallId": content[0].get("toolCallId", message.tool_call_id),
            "toolName": content[0].get("toolName", message.tool_name and self.display_name(message.tool_name)),
            "createdAt": message.created_at,
        }
        return line | {"partial": True} if message.partial and self.dialect != "instatic" else line

    def _render_block(self, block: Block, image_url: str) -> MessageLine:
        match block.kind:
            case "text":
                return {"kind": "text", "text": block.text}
            case "toolCall":
                name = self.display_name(block.tool_name)
                return {"kind": "toolCall", "toolCallId": block.tool_call_id, "toolName": name, "input": block.input}
            case "image":
                return self._render_file(block, image_url)
            case "audio":
                return self._render_file(block, image_url)
            case "toolResult":
                return _render_result(block.ok, block.error)
            case "blob":
                return _render_result(bool(block.ok), block.error)
            case "reasoning":
                raise ValueError("reasoning is not shown to clients")
            case _:
                assert_never(block)

    def _render_file(self, block: ImageBlock | AudioBlock, url: str) -> MessageLine:
        """Return the file; for Instatic's browsers only a JPEG, because others keep them from opening the thread."""
        if self.dialect == "instatic" and block.mime_type != "image/jpeg":
            return {"kind": "text", "text": f"[{block.mime_type}]"}
        return {"kind": block.kind, "mimeType": block.mime_type, "url": url}


def _render_usage(usage: UsageSoFar) -> dict[str, Any]:
    return usage.to_wire() | {"costUsd": round_usd(usage.cost_usd)}


def _render_result(ok: bool, error: str | None) -> MessageLine:
    return {"kind": "toolResult", "ok": ok} | ({"error": error} if error else {})
