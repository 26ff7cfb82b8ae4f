"""Build messages, blocks and model requests in few words."""

from typing import Any

from fermata.domain.blocks import Block, ImageBlock, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from fermata.domain.messages import Message
from fermata.domain.model_io import ModelRequest, ModelResponse
from fermata.domain.tools import ToolSpec

MODEL = "claude-opus-4-8"
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"nodeId": {"type": "string"}}}
TOOLS = (
    ToolSpec(name="read_document", description="Reads the page.", input_schema=SCHEMA),
    ToolSpec(name="insertHtml", description="Inserts HTML.", input_schema=SCHEMA),
)


def user_message(*content: Block | str, turn: str = "t1") -> Message:
    blocks = tuple(TextBlock(text=block) if isinstance(block, str) else block for block in content)
    return Message(position=0, role="user", content=blocks, turn=turn)


def model_message(*content: Block | str, turn: str = "t1") -> Message:
    blocks = tuple(TextBlock(text=block) if isinstance(block, str) else block for block in content)
    return Message(position=0, role="assistant", content=blocks, turn=turn)


def message_from_response(reply: ModelResponse, turn: str = "t1") -> Message:
    return Message(position=0, role="assistant", content=reply.blocks, turn=turn)


def tool_call(call_id: str, name: str = "read_document", **members: Any) -> ToolCallBlock:
    return ToolCallBlock(tool_call_id=call_id, tool_name=name, **members)


def tool_result(call_id: str, data: Any = None, *, ok: bool = True, turn: str = "t1", **members: Any) -> Message:
    content = (ToolResultBlock(ok=ok, data=data, **members),)
    return Message(position=0, role="tool", content=content, turn=turn, tool_call_id=call_id, tool_name="x")


def thinking_block(
    text: str, signature: str = "c2ln", *, of: str = MODEL, provider: str = "anthropic"
) -> ReasoningBlock:
    payload = {"type": "thinking", "thinking": text, "signature": signature}
    return ReasoningBlock(provider=provider, model=of, payload=payload)


def image_block() -> ImageBlock:
    return ImageBlock(mime_type="image/png", data="aGk=")


def model_request(*messages: Message, **members: Any) -> ModelRequest:
    return ModelRequest(**{"model": MODEL, "system": "You edit pages.", "messages": messages, "tools": TOOLS} | members)
