"""Messages of a conversation, written short.

thread = Thread()
thread.user("Add a footer"); thread.model(call("a", "insertHtml")); thread.result("a", data=1)
"""

from collections.abc import Sequence
from typing import Any

from fermata.aws.desk import Desk
from fermata.aws.dynamo import pack
from fermata.conversations import rows
from fermata.conversations.recipient import Recipient
from fermata.words.blocks import Block, ImageBlock, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from fermata.words.messages import Message
from tests.pictures import base64_of, jpeg

MODEL = "claude-sonnet-4-5"
ANTHROPIC = Recipient(provider="anthropic", model=MODEL, tokens=100_000)


def call(call_id: str, name: str = "insertHtml", **given: Any) -> ToolCallBlock:
    return ToolCallBlock(tool_call_id=call_id, tool_name=name, input=given)


def picture(width: int = 40, height: int = 30) -> ImageBlock:
    return ImageBlock(mime_type="image/jpeg", data=base64_of(jpeg(width, height)))


def thought(text: str = "hm", provider: str = "anthropic", model: str = MODEL) -> ReasoningBlock:
    return ReasoningBlock(
        provider=provider, model=model, payload={"type": "thinking", "thinking": text, "signature": "s"}
    )


class Thread:
    """Each prompt begins a turn, each reply a round; results belong to the newest round."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.turn, self.round, self.position = 0, 0, 0

    def user(self, *content: str | Block) -> Message:
        self.turn, self.round = self.turn + 1, 0
        return self._add("user", *content)

    def model(self, *content: str | Block) -> Message:
        self.round += 1
        return self._add("assistant", *content)

    def result(self, call_id: str, name: str = "insertHtml", *, ok: bool = True, **parts: Any) -> Message:
        block = ToolResultBlock(ok=ok, **parts)
        return self._add("tool", block, tool_call_id=call_id, tool_name=name)

    def _add(self, role: Any, *content: str | Block, **parts: Any) -> Message:
        blocks = tuple(TextBlock(text=block) if isinstance(block, str) else block for block in content)
        made = Message(
            position=self.position, role=role, content=blocks, turn=f"turn-{self.turn}", round=self.round, **parts
        )
        self.position += 1
        self.messages.append(made)
        return made


def shape(messages: Any) -> list[str]:
    """`user: Hello`, `assistant: call a`, `tool a: ok`: what a history comes to, a line each."""
    return [_line(message) for message in messages]


def _line(message: Message) -> str:
    said = ", ".join(_said(block) for block in message.content)
    return f"{message.role} {message.tool_call_id}: {said}" if message.role == "tool" else f"{message.role}: {said}"


def _said(block: Block) -> str:
    match block.kind:
        case "text":
            return block.text
        case "toolCall":
            return f"call {block.tool_call_id}"
        case "toolResult":
            return "ok" if block.ok else f"failed {block.error}"
        case _:
            return block.kind


def store(desk: Desk, tenant: str, conversation: str, messages: Sequence[Message]) -> None:
    """As a turn would, only many at once."""
    puts = [rows.put(desk, tenant, conversation, message) for message in messages]
    for start in range(0, len(puts), 25):
        requests: Any = [{"PutRequest": {"Item": pack(put.item)}} for put in puts[start : start + 25]]
        desk.tables._client.batch_write_item(RequestItems={desk.settings.conversations_table: requests})
