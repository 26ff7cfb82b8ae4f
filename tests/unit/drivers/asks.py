"""Short ways to write a conversation down."""

from typing import Any

from fermata.words.blocks import Block, ImageBlock, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from fermata.words.messages import Message
from fermata.words.model import Ask, Reply
from fermata.words.tools import ToolSpec

MODEL = "claude-opus-4-8"
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"nodeId": {"type": "string"}}}
TOOLS = (
    ToolSpec(name="read_document", description="Reads the page.", input_schema=SCHEMA),
    ToolSpec(name="insertHtml", description="Inserts HTML.", input_schema=SCHEMA),
)


def user(*content: Block | str, turn: str = "t1") -> Message:
    blocks = tuple(TextBlock(text=block) if isinstance(block, str) else block for block in content)
    return Message(position=0, role="user", content=blocks, turn=turn)


def model(*content: Block | str, turn: str = "t1") -> Message:
    blocks = tuple(TextBlock(text=block) if isinstance(block, str) else block for block in content)
    return Message(position=0, role="assistant", content=blocks, turn=turn)


def replied(reply: Reply, turn: str = "t1") -> Message:
    return Message(position=0, role="assistant", content=reply.blocks, turn=turn)


def call(call_id: str, name: str = "read_document", **members: Any) -> ToolCallBlock:
    return ToolCallBlock(tool_call_id=call_id, tool_name=name, **members)


def result(call_id: str, data: Any = None, *, ok: bool = True, turn: str = "t1", **members: Any) -> Message:
    content = (ToolResultBlock(ok=ok, data=data, **members),)
    return Message(position=0, role="tool", content=content, turn=turn, tool_call_id=call_id, tool_name="x")


def thought(text: str, signature: str = "c2ln", *, of: str = MODEL, provider: str = "anthropic") -> ReasoningBlock:
    payload = {"type": "thinking", "thinking": text, "signature": signature}
    return ReasoningBlock(provider=provider, model=of, payload=payload)


def picture() -> ImageBlock:
    return ImageBlock(mime_type="image/png", data="aGk=")


def ask(*messages: Message, **members: Any) -> Ask:
    return Ask(**{"model": MODEL, "system": "You edit pages.", "messages": messages, "tools": TOOLS} | members)
