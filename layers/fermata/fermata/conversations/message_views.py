"""A conversation's messages as the contract shows them (instatic.md §1.2), the newest first, page by page."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, assert_never
from urllib.parse import quote

from fermata.aws.resources import Resources
from fermata.conversations import message_store
from fermata.conversations.history.repair import INTERRUPTED_CALL_ERROR
from fermata.domain.blocks import Block, ImageBlock
from fermata.domain.conversation import Conversation
from fermata.domain.dialect import Dialect
from fermata.domain.errors import NotFound
from fermata.domain.messages import Message

MessageLine = dict[str, Any]
ToolCallKey = tuple[str, int, str | None]
"""A call: its turn, its round, and its id there."""
MAX_PAGE_LINES = 1000
MAX_PAGE_BYTES = 3_800_000
"""Of a page, counted as it travels inside of a Lambda's answer, which may have 6 MB: as JSON within JSON."""
_READ_BATCH_SIZE = 200
_MESSAGE_OVERHEAD_BYTES = 400
"""Of what stands around each message."""
_IMAGE_NOT_FOUND = "Conversation image not found"


@dataclass(frozen=True)
class MessagePage:
    """`lines` in order; `before` asks for the page of older ones, None when there is none."""

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
    """The newest lines before a position, as many as an answer holds; a message is never divided.

    `called`: what a tool is called towards the client, by any of the tool's names. A call that its turn's end closed
    has no row for that; it is shown with the result the stream had.
    """
    messages, has_more = _read_page_messages(resources, conversation, before, limit)
    folder = f"/admin/api/ai/conversations/{quote(conversation.id)}/messages"
    view = _MessageRenderer(
        folder, dialect, display_name, _find_unanswered_calls(resources, conversation, messages, before)
    )
    lines = [
        line for message in message_store.fetch_shown_blocks(resources, messages) for line in view.render_lines(message)
    ]
    return MessagePage(lines, messages[0].position if has_more else None)


def _read_page_messages(
    resources: Resources, conversation: Conversation, before: int | None, limit: int
) -> tuple[list[Message], bool]:
    """Messages in order, and whether there are older ones. There is always one, however large."""
    kept: list[Message] = []
    room, count = MAX_PAGE_BYTES, 0
    at_once = min(_READ_BATCH_SIZE, limit + 1)
    while True:
        at = kept[-1].position if kept else before
        batch = message_store.read_newest_messages(
            resources, conversation.tenant, conversation.id, before=at, limit=at_once
        )
        for message in batch:
            room, count = room - _count_response_bytes(message), count + message_store.count_positions(message)
            if kept and (room < 0 or count > limit):
                return kept[::-1], True
            kept.append(message)
        if len(batch) < at_once:
            return kept[::-1], False


def _find_unanswered_calls(
    resources: Resources, conversation: Conversation, messages: Sequence[Message], before: int | None
) -> frozenset[ToolCallKey]:
    """The page's calls that nobody will answer any more: only the turn that has the claim still may."""
    calls = {
        (message.turn, message.round, block.tool_call_id)
        for message in messages
        if message.turn != conversation.claim
        for block in message.content
        if block.kind == "toolCall" or (block.kind == "blob" and block.of == "toolCall")
    }
    left = calls - _answered_calls(messages)
    if before is not None and any(call[:2] == (messages[-1].turn, messages[-1].round) for call in left):
        # The page ends within their round: their results come first behind it.
        left -= _answered_calls(
            message_store.read_following_messages(
                resources, conversation.tenant, conversation.id, before, limit=len(left)
            )
        )
    return frozenset(left)


def _answered_calls(messages: Sequence[Message]) -> set[ToolCallKey]:
    return {(message.turn, message.round, message.tool_call_id) for message in messages if message.role == "tool"}


def _count_response_bytes(message: Message) -> int:
    """Bytes of a message's lines inside of a Lambda's answer, where each quote is escaped once more."""
    text = json.dumps([block.to_wire() for block in message.content if not message_store.is_reasoning(block)])
    large = sum(2 * block.size for block in message.content if block.kind == "blob" and block.of != "toolResult")
    return len(text) + text.count('"') + text.count("\\") + large + _MESSAGE_OVERHEAD_BYTES


def read_message_image(
    resources: Resources, conversation: Conversation, message_id: str, index: str
) -> tuple[bytes, str]:
    """The bytes of a message's picture and what kind it is; `index` is its block's place in the message."""
    turn, _, position = message_id.rpartition("-")
    if not (position.isascii() and position.isdigit() and index.isascii() and index.isdigit() and len(index) < 4):
        raise NotFound(_IMAGE_NOT_FOUND)
    message = message_store.find_message(resources, conversation.tenant, conversation.id, int(position[:8]))
    blocks = (
        [block for group in message_store.group_into_lines(message.content)[:1] for block in group] if message else []
    )
    block = blocks[int(index)] if int(index) < len(blocks) else None
    if message is None or message.turn != turn or block is None or block.kind != "image" or block.blob is None:
        raise NotFound(_IMAGE_NOT_FOUND)
    return resources.blobs.get_bytes(block.blob), block.mime_type


@dataclass(frozen=True)
class _MessageRenderer:
    """How messages look to one generation of clients; `folder` is where their pictures are."""

    folder: str
    dialect: Dialect
    display_name: Callable[[str], str]
    unanswered: frozenset[ToolCallKey]

    def render_lines(self, message: Message) -> list[MessageLine]:
        groups = message_store.group_into_lines(message.content)
        lines = [self._render_line(message, message.position + offset, group) for offset, group in enumerate(groups)]
        if not self.unanswered or message.role == "tool":
            return lines
        return [shown for line in lines for shown in (line, *self._render_closed_call(message, line))]

    def _render_closed_call(self, message: Message, line: MessageLine) -> tuple[MessageLine, ...]:
        """The end of a call that its turn's end closed; it has its call's place."""
        if (message.turn, message.round, line["toolCallId"]) not in self.unanswered:
            return ()
        name = f"{line['id']}-closed"
        return (line | {"id": name, "role": "tool", "content": [_render_result(False, INTERRUPTED_CALL_ERROR)]},)

    def _render_line(self, message: Message, position: int, group: Sequence[Block]) -> MessageLine:
        name = f"{message.turn}-{position}"
        content = [
            self._render_block(block, f"{self.folder}/{name}/images/{index}") for index, block in enumerate(group)
        ]
        line: MessageLine = {
            "id": name,
            "position": position,
            "role": message.role,
            "content": content,
            "toolCallId": content[0].get("toolCallId", message.tool_call_id),
            "toolName": content[0].get("toolName", message.tool_name and self.display_name(message.tool_name)),
            "createdAt": message.created_at,
        }
        return line | {"partial": True} if message.partial and self.dialect != "instatic" else line

    def _render_block(self, block: Block, url: str) -> MessageLine:
        match block.kind:
            case "text":
                return {"kind": "text", "text": block.text}
            case "toolCall":
                name = self.display_name(block.tool_name)
                return {"kind": "toolCall", "toolCallId": block.tool_call_id, "toolName": name, "input": block.input}
            case "image":
                return self._render_image(block, url)
            case "toolResult":
                return _render_result(block.ok, block.error)
            case "blob":
                return _render_result(bool(block.ok), block.error)
            case "reasoning":
                raise ValueError("reasoning is nobody's but the model's")
            case _:
                assert_never(block)

    def _render_image(self, block: ImageBlock, url: str) -> MessageLine:
        """Instatic's browsers know JPEG only; any other kind would keep them from opening the conversation."""
        if self.dialect == "instatic" and block.mime_type != "image/jpeg":
            return {"kind": "text", "text": f"[{block.mime_type}]"}
        return {"kind": "image", "mimeType": block.mime_type, "url": url}


def _render_result(ok: bool, error: str | None) -> MessageLine:
    return {"kind": "toolResult", "ok": ok} | ({"error": error} if error else {})
