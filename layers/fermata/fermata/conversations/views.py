"""A conversation's messages as the contract shows them (instatic.md §1.2), the newest first, page by page."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, assert_never
from urllib.parse import quote

from fermata.aws.desk import Desk
from fermata.conversations import rows
from fermata.conversations.healing import INTERRUPTED
from fermata.words.blocks import Block, ImageBlock
from fermata.words.conversation import Conversation
from fermata.words.dialect import Dialect
from fermata.words.errors import NotFound
from fermata.words.messages import Message

Line = dict[str, Any]
Called = tuple[str, int, str | None]
"""A call: its turn, its round, and its id there."""
MOST_LINES = 1000
MOST_BYTES = 3_800_000
"""Of a page, counted as it travels inside of a Lambda's answer, which may have 6 MB: as JSON within JSON."""
READ_AT_ONCE = 200
FRAME = 400
"""Of what stands around each message."""
NO_IMAGE = "Conversation image not found"


@dataclass(frozen=True)
class Page:
    """`lines` in order; `before` asks for the page of older ones, None when there is none."""

    lines: Sequence[Line]
    before: int | None


def page(
    desk: Desk,
    conversation: Conversation,
    dialect: Dialect,
    called: Callable[[str], str] = str,
    *,
    before: int | None = None,
    limit: int = MOST_LINES,
) -> Page:
    """The newest lines before a position, as many as an answer holds; a message is never divided.

    `called`: what a tool is called towards the client, by any of the tool's names. A call that its turn's end closed
    has no row for that; it is shown with the result the stream had.
    """
    messages, has_more = _newest(desk, conversation, before, limit)
    folder = f"/admin/api/ai/conversations/{quote(conversation.id)}/messages"
    view = _View(folder, dialect, called, _unanswered(desk, conversation, messages, before))
    lines = [line for message in rows.spoken(desk, messages) for line in view.lines(message)]
    return Page(lines, messages[0].position if has_more else None)


def _newest(desk: Desk, conversation: Conversation, before: int | None, limit: int) -> tuple[list[Message], bool]:
    """Messages in order, and whether there are older ones. There is always one, however large."""
    kept: list[Message] = []
    room, count = MOST_BYTES, 0
    at_once = min(READ_AT_ONCE, limit + 1)
    while True:
        at = kept[-1].position if kept else before
        batch = rows.newest(desk, conversation.tenant, conversation.id, before=at, limit=at_once)
        for message in batch:
            room, count = room - _travels(message), count + rows.width(message)
            if kept and (room < 0 or count > limit):
                return kept[::-1], True
            kept.append(message)
        if len(batch) < at_once:
            return kept[::-1], False


def _unanswered(
    desk: Desk, conversation: Conversation, messages: Sequence[Message], before: int | None
) -> frozenset[Called]:
    """The page's calls that nobody will answer any more: only the turn that has the claim still may."""
    calls = {
        (message.turn, message.round, block.tool_call_id)
        for message in messages
        if message.turn != conversation.claim
        for block in message.content
        if block.kind == "toolCall" or (block.kind == "blob" and block.of == "toolCall")
    }
    left = calls - _answered(messages)
    if before is not None and any(call[:2] == (messages[-1].turn, messages[-1].round) for call in left):
        # The page ends within their round: their results come first behind it.
        left -= _answered(rows.following(desk, conversation.tenant, conversation.id, before, limit=len(left)))
    return frozenset(left)


def _answered(messages: Sequence[Message]) -> set[Called]:
    return {(message.turn, message.round, message.tool_call_id) for message in messages if message.role == "tool"}


def _travels(message: Message) -> int:
    """Bytes of a message's lines inside of a Lambda's answer, where each quote is escaped once more."""
    text = json.dumps([block.wire() for block in message.content if not rows.is_reasoning(block)])
    large = sum(2 * block.size for block in message.content if block.kind == "blob" and block.of != "toolResult")
    return len(text) + text.count('"') + text.count("\\") + large + FRAME


def image(desk: Desk, conversation: Conversation, message_id: str, index: str) -> tuple[bytes, str]:
    """The bytes of a message's picture and what kind it is; `index` is its block's place in the message."""
    turn, _, position = message_id.rpartition("-")
    if not (position.isascii() and position.isdigit() and index.isascii() and index.isdigit() and len(index) < 4):
        raise NotFound(NO_IMAGE)
    message = rows.find(desk, conversation.tenant, conversation.id, int(position[:8]))
    blocks = [block for group in rows.lines(message.content)[:1] for block in group] if message else []
    block = blocks[int(index)] if int(index) < len(blocks) else None
    if message is None or message.turn != turn or block is None or block.kind != "image" or block.blob is None:
        raise NotFound(NO_IMAGE)
    return desk.blobs.get_bytes(block.blob), block.mime_type


@dataclass(frozen=True)
class _View:
    """How messages look to one generation of clients; `folder` is where their pictures are."""

    folder: str
    dialect: Dialect
    called: Callable[[str], str]
    unanswered: frozenset[Called]

    def lines(self, message: Message) -> list[Line]:
        groups = rows.lines(message.content)
        lines = [self._line(message, message.position + offset, group) for offset, group in enumerate(groups)]
        if not self.unanswered or message.role == "tool":
            return lines
        return [shown for line in lines for shown in (line, *self._closed(message, line))]

    def _closed(self, message: Message, line: Line) -> tuple[Line, ...]:
        """The end of a call that its turn's end closed; it has its call's place."""
        if (message.turn, message.round, line["toolCallId"]) not in self.unanswered:
            return ()
        name = f"{line['id']}-closed"
        return (line | {"id": name, "role": "tool", "content": [_result(False, INTERRUPTED)]},)

    def _line(self, message: Message, position: int, group: Sequence[Block]) -> Line:
        name = f"{message.turn}-{position}"
        content = [self._block(block, f"{self.folder}/{name}/images/{index}") for index, block in enumerate(group)]
        line: Line = {
            "id": name,
            "position": position,
            "role": message.role,
            "content": content,
            "toolCallId": content[0].get("toolCallId", message.tool_call_id),
            "toolName": content[0].get("toolName", message.tool_name and self.called(message.tool_name)),
            "createdAt": message.created_at,
        }
        return line | {"partial": True} if message.partial and self.dialect != "instatic" else line

    def _block(self, block: Block, url: str) -> Line:
        match block.kind:
            case "text":
                return {"kind": "text", "text": block.text}
            case "toolCall":
                name = self.called(block.tool_name)
                return {"kind": "toolCall", "toolCallId": block.tool_call_id, "toolName": name, "input": block.input}
            case "image":
                return self._image(block, url)
            case "toolResult":
                return _result(block.ok, block.error)
            case "blob":
                return _result(bool(block.ok), block.error)
            case "reasoning":
                raise ValueError("reasoning is nobody's but the model's")
            case _:
                assert_never(block)

    def _image(self, block: ImageBlock, url: str) -> Line:
        """Instatic's browsers know JPEG only; any other kind would keep them from opening the conversation."""
        if self.dialect == "instatic" and block.mime_type != "image/jpeg":
            return {"kind": "text", "text": f"[{block.mime_type}]"}
        return {"kind": "image", "mimeType": block.mime_type, "url": url}


def _result(ok: bool, error: str | None) -> Line:
    return {"kind": "toolResult", "ok": ok} | ({"error": error} if error else {})
